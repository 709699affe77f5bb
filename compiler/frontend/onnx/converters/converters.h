/// All converters and form checks, declared for the rows of onnx_ops.def.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/onnx/graph/converter.h"

namespace tensormill::frontend::onnx {

#define TM_ONNX_CONVERTER(name) void name(NodeContext& context);
#include "compiler/frontend/onnx/converters/converters.def"
#undef TM_ONNX_CONVERTER

/// Conv's node for these operands, with the attributes of the context's node; `bias` may be kAbsent. `exact`:
/// the sums are integers that must stay so.
ir::ValueId convolution(NodeContext& context, ir::ValueId x, ir::ValueId w, ir::ValueId bias,
                        bool exact = false);

/// The reduction `op` of x, whose axes may be as long as data says; attributes axes and keepdims.
ir::ValueId reduced(NodeContext& context, const std::string& op, ir::ValueId x, const ir::Attrs& attrs);
/// AveragePool's value for `x` and the attributes of the context's node.
ir::ValueId average_pool(NodeContext& context, ir::ValueId x);
/// Gemm's value for the operands and attributes of the context's node.
ir::ValueId gemm(NodeContext& context);

struct LayerNorm {
  ir::ValueId result, mean, inverse;  ///< inverse: one over the standard deviation
};
/// (x - mean) / deviation * scale + bias over `axes`, in float32 at least; `bias` may be kAbsent. The result
/// has the type of x, mean and inverse are float32.
LayerNorm layer_normalized(NodeContext& context, ir::ValueId x, ir::ValueId scale, ir::ValueId bias,
                           const std::vector<int64_t>& axes, double epsilon);
/// x / sqrt(mean(x^2) + epsilon) * scale over `axes`, in float32 at least.
ir::ValueId rms_normalized(NodeContext& context, ir::ValueId x, ir::ValueId scale, std::vector<int64_t> axes,
                           double epsilon);

std::optional<UnsupportedForm> check_windows(const NodeProto& node, int64_t opset);
std::optional<UnsupportedForm> check_batch_norm(const NodeProto& node, int64_t opset);

}  // namespace tensormill::frontend::onnx
