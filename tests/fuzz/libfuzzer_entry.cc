// The entry of libFuzzer for the target that TM_FUZZ_TARGET names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tensormill::fuzz::attempt([&] { tensormill::fuzz::TM_FUZZ_TARGET(bytes); });
  return 0;
}
