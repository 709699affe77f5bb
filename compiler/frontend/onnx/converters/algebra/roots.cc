#include "compiler/frontend/onnx/converters/algebra/roots.h"

#include <algorithm>
#include <cmath>

#include "compiler/build/compose.h"

namespace tensormill::frontend::onnx {

ir::ValueId inverse_root(NodeContext& context, ir::ValueId like, const ir::SymInt& extent) {
  Compose c(context);
  if (extent.is_constant())
    return c.number(like, 1 / std::sqrt(static_cast<double>(std::max<int64_t>(extent.hint(), 1))));
  // float16 ends at 65,504: the root is taken of a wider type.
  const DType dtype = c.dtype(like) == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const ir::ValueId size = c.cast(c.binary("max", c.dims({extent}, {}), c.ints({1}, {})), dtype);
  return c.cast(c.unary("reciprocal", c.unary("sqrt", size)), c.dtype(like));
}

}  // namespace tensormill::frontend::onnx
