/// What operators of TensorFlow look like: rows of tf_ops.def. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::frontend::tensorflow {

class NodeContext;
using Converter = void (*)(NodeContext& node);

struct OpRow {
  std::string_view name;
  /// Names of the outputs, by which nodes of functions are read; empty: one, whatever its name.
  std::vector<std::string_view> outputs;
  /// Attributes that the converter reads, and those that mean nothing to a compiled model.
  std::vector<std::string_view> attributes, unread;
  Converter convert = nullptr;

  bool knows(std::string_view attribute) const;
};

/// Whether an operator fills a table, which a model does when it is loaded.
bool fills_table(std::string_view op);
/// The row of an operator; null where there is none.
const OpRow* find_row(std::string_view op);

}  // namespace tensormill::frontend::tensorflow
