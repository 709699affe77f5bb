#include <algorithm>

#include "compiler/frontend/onnx/converters/converters.h"
#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

const std::vector<OpRow>& op_rows() {
  static const std::vector<OpRow> rows = {
#define TM_ONNX_OP(op, since, until, convert, check) {"", op, since, until, &convert, check},
#include "compiler/frontend/onnx/operators/onnx_ops.def"
#undef TM_ONNX_OP
#define TM_DOMAIN_OP(domain, op, convert, check) {domain, op, kMinOpset, kMaxOpset, &convert, check},
#include "compiler/frontend/onnx/operators/domain_ops.def"
#undef TM_DOMAIN_OP
  };
  return rows;
}

const OpRow* find_op(std::string_view domain, std::string_view op, int64_t opset) {
  const auto found = std::find_if(op_rows().begin(), op_rows().end(), [&](const OpRow& row) {
    return row.domain == domain && row.op == op && opset >= row.since && opset <= row.until;
  });
  return found == op_rows().end() ? nullptr : &*found;
}

Converter find_text_op(std::string_view domain, std::string_view op) {
#define TM_TEXT_OP(row_domain, row_op, convert) \
  if (domain == row_domain && op == row_op) return &convert;
#include "compiler/frontend/onnx/operators/text_ops.def"
#undef TM_TEXT_OP
  return nullptr;
}

bool is_known_op(std::string_view domain, std::string_view op) {
  return std::any_of(op_rows().begin(), op_rows().end(),
                     [&](const OpRow& row) { return row.domain == domain && row.op == op; });
}

bool is_known_domain(std::string_view domain) {
  return std::any_of(op_rows().begin(), op_rows().end(),
                     [&](const OpRow& row) { return row.domain == domain; });
}

}  // namespace tensormill::frontend::onnx
