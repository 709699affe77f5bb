#include "compiler/ops/channel_norm.h"

#include "compiler/ops/type_rules.h"

namespace tensormill::ops {

std::vector<ir::ValueType> channel_norm_type(const ir::InferContext& context, size_t min_rank, size_t rows) {
  const ir::ValueType& x = input_of(context, 0, kFloats);
  if (x.shape.size() < min_rank) {
    fail("input 0 has rank " + std::to_string(x.shape.size()) + ", expected at least " +
         std::to_string(min_rank));
  }
  for (size_t i = 1; i <= rows; ++i) {
    const ir::ValueType& row = input_like_first(context, i);
    if (!demand_equal(row.shape, {x.shape[1]})) {
      fail("input " + std::to_string(i) + " has shape " + to_string(row.shape) + ", expected [" +
           std::to_string(x.shape[1]) + "]");
    }
  }
  static_cast<void>(attr_float(context.attrs, "epsilon", 1e-5));
  return {made_type(x.dtype, x.shape)};
}

}  // namespace tensormill::ops
