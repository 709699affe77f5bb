/// What operators of exported programs look like: rows of aten_ops.def. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace tensormill::frontend::pytorch {

class NodeContext;
using Converter = void (*)(NodeContext& node);

struct SchemaArgument {
  std::string name;
  std::optional<Json> otherwise;  ///< what it is where the file leaves it out
  bool is_unread = false;         ///< it means nothing to a compiled model
};
struct OpRow {
  std::string target;        ///< "aten.add_.Tensor"
  std::string name;          ///< "add": without namespace, overload and the mark of operators in place
  std::string overload;      ///< "Tensor"; "" for what has none
  bool is_in_place = false;  ///< the result is written to the first argument
  std::vector<SchemaArgument> arguments;
  Converter convert = nullptr;
};

/// A node's target without "torch.ops.".
std::string_view short_target(std::string_view target);
/// The row of a target; null where there is none.
const OpRow* find_row(std::string_view target);
const std::vector<OpRow>& all_rows();
/// Why an operator that has no row is none of a package's, by its target or its name without an overload; ""
/// where there is just nothing of it.
std::string why_missing(std::string_view target);

}  // namespace tensormill::frontend::pytorch
