/// CRC-32C (Castagnoli), by ISA-L. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace tensormill::frontend::wire {

uint32_t crc32c(std::string_view bytes);
/// As LevelDB and TensorFlow keep it: turned right by 15 bits, plus a constant.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tensormill::frontend::wire
