/// The layout that a caller asks maps to be computed in, instead of what the compiler would choose, and what
/// became of that. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::passes {

enum class MapLayout : uint8_t {
  kChannelsFirst,  ///< "NCHW": [N,C,spatial...], without blocks of channels
  kChannelsLast,   ///< "NHWC": [N,spatial...,C]
};

struct DesiredLayout {
  MapLayout layout = MapLayout::kChannelsFirst;
  /// Operators that it is for; empty: all of them. A convolution that is not asked for is computed as the
  /// compiler chooses; what comes between follows what it reads.
  std::set<std::string> ops = {};
  /// Names of the model's convolutions among those: passes make other nodes of them.
  std::set<std::string> origins = {};

  std::string name() const { return layout == MapLayout::kChannelsLast ? "NHWC" : "NCHW"; }
  /// Whether the node is one that it is for.
  bool asks_for(const ir::Node& node) const;
};

/// A node that is not computed in the layout, and why.
struct StayedNode {
  std::string node;  ///< the model's name of it
  std::string op;
  std::string reason;
};

struct LayoutLog {
  int64_t converted = 0;  ///< nodes that are computed in the layout
  std::vector<StayedNode> stayed;
};

/// "NCHW" or "NHWC", and names of operators; nothing where `layout` is empty. Throws Error(kInvalidArgument)
/// for another layout, for operators without one, and for an operator that there is not or that layouts are
/// nothing to.
std::optional<DesiredLayout> parse_desired_layout(const std::string& layout,
                                                  const std::vector<std::string>& ops,
                                                  const ir::OpRegistry& registry);
/// The same, with what it needs to know of the model. Throws Error(kInvalidArgument) where it asks for an
/// operator that the model has not, or where nothing in the model has a layout.
DesiredLayout bind_desired_layout(DesiredLayout desired, const ir::Graph& imported);

/// Throws Error(kInvalidArgument) where no node is computed in the layout: an option that changes nothing is
/// a mistake.
void require_layout(const DesiredLayout& desired, const LayoutLog& log);
/// "conv_3 (conv) is not computed in NHWC: its weights are no constants"
std::string line_of(const StayedNode& node, const std::string& layout);

/// Convolutions, pools, normalizations of channels and moves between channels and pixels: operators with an
/// attribute that says which axis the channels are.
bool has_layout(const std::string& op);
bool is_convolution(const std::string& op);
/// Whether the operator takes axes in any order, so that it follows what it reads.
bool follows_layout(const ir::OpRegistry& registry, const std::string& op);

}  // namespace tensormill::passes
