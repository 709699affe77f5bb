/// Command-line form of a desired layout of maps, and the report of what it was applied to.
/// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/passes/layouts/desired_layout.h"
#include "runtime/base/json_fwd.h"

namespace CLI {  // CLI11's NOLINT(readability-identifier-naming)
class App;
}

namespace tensormill::cli {

struct LayoutArguments {
  std::string layout;
  std::string ops;  ///< "A,B"
};
/// --desired-layout and --desired-layout-ops.
void add_layout_options(CLI::App& app, LayoutArguments& arguments);
/// Throws Error(kUsage) for what no model could have.
std::optional<passes::DesiredLayout> layout_of(const LayoutArguments& arguments);
/// Members "desired_layout" and "desired_layout_ops" of a request to a child, each of which may be missing.
std::optional<passes::DesiredLayout> layout_of(const Json& request);

/// {"desired":"NHWC","converted":21,"stayed":[{"node","op","reason"}]}
Json layout_json(const passes::DesiredLayout& desired, const passes::LayoutLog& log);

}  // namespace tensormill::cli
