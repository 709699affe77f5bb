#include "server/cli/layout_options.h"

#include <CLI/CLI.hpp>

#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/model_input.h"

namespace tensormill::cli {

void add_layout_options(CLI::App& app, LayoutArguments& arguments) {
  app.add_option("--desired-layout", arguments.layout,
                 "layout that maps are computed in, NCHW or NHWC; default: the compiler chooses")
      ->check(CLI::IsMember({"NCHW", "NHWC"}));
  app.add_option("--desired-layout-ops", arguments.ops,
                 "operators of the graph that --desired-layout is for: conv,max_pool; default: all that have "
                 "a layout");
}

std::optional<passes::DesiredLayout> layout_of(const LayoutArguments& arguments) {
  try {
    return passes::parse_desired_layout(arguments.layout, split_list(arguments.ops), ops::standard_ops());
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, error.message());
  }
}

std::optional<passes::DesiredLayout> layout_of(const Json& request) {
  return passes::parse_desired_layout(request.value("desired_layout", std::string()),
                                      request.value("desired_layout_ops", std::vector<std::string>()),
                                      ops::standard_ops());
}

Json layout_json(const passes::DesiredLayout& desired, const passes::LayoutLog& log) {
  Json stayed = Json::array();
  for (const passes::StayedNode& node : log.stayed)
    stayed.push_back({{"node", node.node}, {"op", node.op}, {"reason", node.reason}});
  return {{"desired", desired.name()}, {"converted", log.converted}, {"stayed", std::move(stayed)}};
}

}  // namespace tensormill::cli
