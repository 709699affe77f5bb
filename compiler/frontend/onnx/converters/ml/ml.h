/// What the classic models of ai.onnx.ml share. Thread-safety: pure functions of the context.
#pragma once

#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

/// The numbers of a FLOATS attribute; none when it is not there.
ir::CheckedList<double> float_values(const NodeContext& context, const char* name);
/// A transform of scores by its name.
ir::ValueId transformed(NodeContext& context, ir::ValueId scores, const std::string& name);
/// The classes that a model distinguishes, and their labels: a constant of integers or strings.
struct ClassLabels {
  int64_t count = 0;
  ir::ValueId table = ir::kAbsent;
};
ClassLabels class_labels(NodeContext& context, const char* integers, const char* strings);
/// Attribute post_transform on scores [N,outputs].
ir::ValueId post_transformed(NodeContext& context, ir::ValueId scores);
/// Output 0 is the label of the largest score, output 1 the transformed scores [N,labels].
void set_class_outputs(NodeContext& context, ir::ValueId scores, const ClassLabels& labels);
/// Two labels of one score [N,1]: the second where it is above `threshold`. The first one's score is the
/// complement to 1, or else the negative; of post_transform LOGISTIC always the complement.
void set_binary_outputs(NodeContext& context, ir::ValueId score, const ClassLabels& labels, double threshold,
                        bool complement);

}  // namespace tensormill::frontend::onnx
