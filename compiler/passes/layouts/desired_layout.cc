#include "compiler/passes/layouts/desired_layout.h"

#include <algorithm>
#include <map>

#include "compiler/ir/op_def.h"
#include "compiler/passes/layouts/layout_converter.h"
#include "runtime/base/error.h"

namespace tensormill::passes {

namespace {

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

}  // namespace

bool has_layout(const std::string& op) {
  static const std::set<std::string> names = {
      "avg_pool",       "batch_norm",    "conv", "conv_integer", "conv_transpose",
      "depth_to_space", "instance_norm", "lrn",  "max_pool"};
  return names.count(op) != 0;
}

bool is_convolution(const std::string& op) {
  return op == "conv" || op == "conv_integer" || op == "conv_transpose";
}

bool follows_layout(const ir::OpRegistry& registry, const std::string& op) {
  return LayoutConverter::is_follower(registry, op);
}

bool DesiredLayout::asks_for(const ir::Node& node) const {
  if (ops.empty() || ops.count(node.op) != 0) return true;
  if (!is_convolution(node.op)) return false;
  return std::any_of(node.origins.begin(), node.origins.end(),
                     [&](const std::string& origin) { return origins.count(origin) != 0; });
}

std::optional<DesiredLayout> parse_desired_layout(const std::string& layout,
                                                  const std::vector<std::string>& ops,
                                                  const ir::OpRegistry& registry) {
  if (layout.empty()) {
    if (!ops.empty()) refuse("operators of a desired layout are given, but no layout: NCHW or NHWC");
    return std::nullopt;
  }
  if (layout != "NCHW" && layout != "NHWC")
    refuse("the desired layout is \"" + layout + "\", expected NCHW or NHWC");
  DesiredLayout desired{layout == "NHWC" ? MapLayout::kChannelsLast : MapLayout::kChannelsFirst, {}, {}};
  for (const std::string& op : ops) {
    if (registry.find(op) == nullptr)
      refuse("desired layout: there is no operator \"" + op +
             "\" of graphs; their names are as conv and max_pool");
    if (!has_layout(op) && !follows_layout(registry, op))
      refuse("desired layout: operator " + op + " is the same in every layout");
    desired.ops.insert(op);
  }
  return desired;
}

DesiredLayout bind_desired_layout(DesiredLayout desired, const ir::Graph& imported) {
  std::set<std::string> present, laid_out;
  for (const ir::Node& node : imported.nodes()) {
    if (has_layout(node.op)) laid_out.insert(node.op);
    if (has_layout(node.op) || follows_layout(imported.ops(), node.op)) present.insert(node.op);
    if (is_convolution(node.op) && desired.ops.count(node.op) != 0)
      desired.origins.insert(node.origins.begin(), node.origins.end());
  }
  for (const std::string& op : desired.ops) {
    if (present.count(op) == 0)
      refuse("desired layout: the model has no operator " + op + "; it has " +
             (present.empty() ? "none that layouts are something to" : listed(present)));
  }
  if (laid_out.empty())
    refuse(
        "desired layout: the model has no operator that has a layout: no convolution, pool or "
        "normalization of channels");
  return desired;
}

void require_layout(const DesiredLayout& desired, const LayoutLog& log) {
  if (log.converted > 0) return;
  const std::string why = log.stayed.empty() ? "" : "; " + line_of(log.stayed.front(), desired.name());
  refuse("desired layout: nothing can be computed in " + desired.name() + why);
}

std::string line_of(const StayedNode& node, const std::string& layout) {
  return node.node + " (" + node.op + ") is not computed in " + layout + ": " + node.reason;
}

}  // namespace tensormill::passes
