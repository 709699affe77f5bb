#include "compiler/frontend/onnx/converters/run_numbers.h"

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/run_checks.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

ir::ValueId one_number(NodeContext& context, size_t index, const char* what) {
  const ir::ValueId x = context.input(index);
  const ir::ValueType& type = context.type(x);
  if (num_elements(type.shape) != 1 || type.dtype == kString || type.dtype == DType::kBool)
    context.invalid(std::string(what) + " is " + ir::to_string(type) + ", expected one number");
  return Compose(context).reshape(x, {1});
}

ir::ValueId one_integer(NodeContext& context, size_t index, const char* what) {
  return Compose(context).cast(one_number(context, index, what), DType::kInt64);
}

bool is_of_run(const NodeContext& context, size_t index) {
  return context.has_input(index) && !context.is_known(index);
}

ir::ValueId is_within(NodeContext& context, ir::ValueId x, double low, double high) {
  Compose c(context);
  return c.binary("and", c.binary("greater_equal", x, c.number(x, low)),
                  c.binary("less_equal", x, c.number(x, high)));
}

ir::ValueId count_up_to(NodeContext& context, const BoundedInt& number, int64_t limit) {
  const ir::ValueId count = as_count(context, number);
  if (number.is_known() || (number.least >= 0 && !number.grows)) return count;
  return value_if(context, count, is_within(context, count, 0, static_cast<double>(limit)));
}

}  // namespace tensormill::frontend::onnx
