#include "compiler/frontend/onnx/converter.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

const std::vector<OpRow>& op_rows() {
  static const std::vector<OpRow> rows = {
#define TM_ONNX_OP(op, since, until, convert, check) {op, since, until, &convert, check},
#include "compiler/frontend/onnx/onnx_ops.def"
#undef TM_ONNX_OP
  };
  return rows;
}

const OpRow* find_op(std::string_view op, int64_t opset) {
  for (const OpRow& row : op_rows()) {
    if (row.op == op && opset >= row.since && opset <= row.until) return &row;
  }
  return nullptr;
}

bool is_known_op(std::string_view op) {
  for (const OpRow& row : op_rows()) {
    if (row.op == op) return true;
  }
  return false;
}

}  // namespace tensormill::frontend::onnx
