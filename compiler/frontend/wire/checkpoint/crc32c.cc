#include "compiler/frontend/wire/checkpoint/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>

namespace tensormill::frontend::wire {

uint32_t crc32c(std::string_view bytes) {
  // ISA-L counts in int, and leaves both inversions to its caller.
  constexpr size_t kPiece = size_t{1} << 30;
  uint32_t crc = ~uint32_t{0};
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, std::min(bytes.size(), kPiece));
    crc = ::crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<char*>(piece.data())),
                        static_cast<int>(piece.size()), crc);
    bytes.remove_prefix(piece.size());
  }
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

}  // namespace tensormill::frontend::wire
