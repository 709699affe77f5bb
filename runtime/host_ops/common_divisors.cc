#include "runtime/base/error.h"
#include "runtime/host_ops/dense_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

uint64_t size_of(int64_t x) { return x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x); }

/// By Euclid's algorithm.
uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (a != 0) {
    b %= a;
    std::swap(a, b);
  }
  return b;
}

}  // namespace

void common_divisors(const HostCall& call) {
  expect(call, 2, 1);
  const TensorView &first = call.inputs[0], &second = call.inputs[1];
  if (first.dtype != DType::kInt64 || second.dtype != DType::kInt64 || first.shape != second.shape)
    throw Error(ErrorCode::kInvalidPackage,
                "a host step takes divisors of what are no integers of one shape");
  const Tensor x = copied(first), y = copied(second);
  const auto of_x = x.values<int64_t>(), of_y = y.values<int64_t>();
  int64_t* const out = integers(call, 0, x.num_elements());
  for (size_t i = 0; i < of_x.size(); ++i)
    out[i] = static_cast<int64_t>(common_divisor(size_of(of_x[i]), size_of(of_y[i])));
}

}  // namespace tensormill::host_ops
