#include "compiler/driver/seeded.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tensormill::driver {

namespace {

/// A prime: rows of no tensor end with it.
constexpr int64_t kPeriod = 65521;

/// Element i is element i - count.
void repeat(Tensor& tensor, int64_t count) {
  auto* bytes = static_cast<std::byte*>(tensor.data());
  size_t done = static_cast<size_t>(count) * dtype_bytes(tensor.dtype());
  while (done < tensor.num_bytes()) {
    const size_t next = std::min(done, tensor.num_bytes() - done);
    std::memcpy(bytes + done, bytes, next);
    done += next;
  }
}

}  // namespace

uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

Tensor seeded_tensor(const ir::ValueType& type, uint64_t seed, int64_t below, bool whole) {
  Tensor tensor(type.dtype, type.shape);
  const int64_t count = std::min(tensor.num_elements(), kPeriod);
  uint64_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = next_random(state);
    if (is_float(type.dtype)) {
      const double value = static_cast<double>(bits >> 40) * 0x1p-23 - 1.0;
      tensor.set_element(i, whole ? std::floor(2 * value) + (value < 0 ? 0 : 1) : value);
    } else {
      const auto most =
          static_cast<uint64_t>(type.dtype == DType::kBool ? std::min<int64_t>(below, 2) : below);
      tensor.set_element_int(i, static_cast<int64_t>(bits % most));
    }
  }
  if (count < tensor.num_elements()) repeat(tensor, count);
  return tensor;
}

}  // namespace tensormill::driver
