#include "server/cli/fill.h"

#include "runtime/base/error.h"

namespace tensormill::cli {

namespace {

/// splitmix64 (Steele, Lea, Flood 2014).
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

FillMode parse_fill_mode(const std::string& text) {
  if (text == "zeros") return FillMode::kZeros;
  if (text == "ones") return FillMode::kOnes;
  if (text == "random") return FillMode::kRandom;
  throw Error(ErrorCode::kInvalidArgument, "fill mode is \"" + text + "\", expected zeros, ones or random");
}

Tensor filled_tensor(DType dtype, const Shape& shape, FillMode mode, uint64_t seed) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  if (mode == FillMode::kZeros) return tensor;
  uint64_t state = seed;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (mode == FillMode::kOnes) {
      tensor.set_element(i, 1.0);
      continue;
    }
    const uint64_t bits = next_random(state) >> 40;
    if (is_float(dtype)) {
      tensor.set_element(i, static_cast<double>(bits) * 0x1p-23 - 1.0);
    } else {
      tensor.set_element_int(i, static_cast<int64_t>(dtype == DType::kBool ? bits & 1 : bits & 127));
    }
  }
  return tensor;
}

}  // namespace tensormill::cli
