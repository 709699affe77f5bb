/// Maps whose channels stand last, [N,spatial...,C], as most formats but ONNX have them. Convolutions and
/// pools are computed with the channels first; what is computed there stays there, and is transposed only
/// where something asks for the other order, so that no transpose stands between convolutions. Thread-safety:
/// as the graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

class ChannelsLast {
public:
  /// x as [N,C,spatial...]: what it was made of, else transposed once.
  ir::ValueId first(OpBuilder& builder, ir::ValueId x);
  /// y [N,C,spatial...] as [N,spatial...,C]. The transpose is dead where all readers take y itself.
  ir::ValueId last(OpBuilder& builder, ir::ValueId y);
  /// Whether x was made by `last`.
  bool is_made(ir::ValueId x) const { return first_.count(x) != 0; }

  /// The elementwise `op` with numpy's broadcasting: with the channels first where an operand is computed so.
  ir::ValueId elementwise(OpBuilder& builder, const std::string& op, const std::vector<ir::ValueId>& operands,
                          const ir::Attrs& attrs = {});
  /// Where axis `axis` of the map stands when its channels are first.
  static int64_t axis_first(int64_t axis, int64_t rank);

private:
  ir::ValueId broadcast_first(OpBuilder& builder, ir::ValueId x, size_t rank);

  std::map<ir::ValueId, ir::ValueId> first_;       ///< by what `last` made
  std::map<ir::ValueId, ir::ValueId> transposed_;  ///< by what `first` was asked for
};

}  // namespace tensormill::build
