// Groups operators into kernels. Nodes are visited in order; a node joins the group of each of its producers
// that it can be computed with:
//   * the producer's value has no reader outside of the group, so that no cycle can arise; several readers
//   are
//     elementwise, as all behind them in the group, so that nothing is computed twice (x * sigmoid(x));
//   * both are in the same loop, if any: what a body does not change is computed once;
//   * injective or elementwise behind injective or elementwise: always;
//   * elementwise of the same shape behind an anchor (complex or reduction): the epilogue;
//   * a reduction behind elementwise: the prologue, evaluated where the reduction reads it;
//   * a pointwise convolution behind the depthwise convolution or the channel moves that feed it
//     (compiler/schedule/templates/conv_bands.cc).
// But for the last, a group has at most one anchor. What only renames bytes stays alone (ir/storage.h):
// it is no kernel.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/ir/storage.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

/// More inputs than this make a kernel's argument list and index arithmetic slower than a second kernel.
constexpr size_t kMaxGroupInputs = 48;
constexpr size_t kMaxGroupNodes = 64;
constexpr int64_t kFloatBytes = 4;
/// An element of what feeds a convolution takes the time of so many products; made by each core, it may take
/// one part in so many of the convolution's.
constexpr int64_t kFeedProducts = 12, kFeedShare = 16;

struct Group {
  std::vector<ir::NodeId> nodes;  ///< ascending
  bool anchored = false;
  bool reduction = false;  ///< the anchor is a reduction
  size_t inputs = 0;
};

class Fuser {
public:
  Fuser(const ir::Graph& graph, const PassContext& context)
      : graph_(graph),
        facts_(context.facts),
        storage_(graph),
        reads_(count_reads(graph)),
        loops_(ir::loops_around(graph)),
        branches_(ir::branches_around(graph)),
        group_of_(graph.nodes().size()),
        groups_(graph.nodes().size()) {}

  ir::Graph run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) place(static_cast<ir::NodeId>(i));
    ir::Patch patch(graph_, "fuse_operators");
    // A group is emitted when its last node is reached, so that the groups it reads are emitted before.
    for (const Group& group : groups_) {
      if (group.nodes.size() > 1) emit(patch, group);
    }
    return patch.apply();
  }

private:
  const ir::OpDef& def(ir::NodeId id) const { return graph_.ops().get(graph_.node(id).op); }

  bool fusible(ir::NodeId id) const {
    const ir::Node& node = graph_.node(id);
    return node.op != "fused" && node.outputs.size() == 1 && !storage_.is_view(id) &&
           def(id).pattern != ir::Pattern::kOpaque;
  }

  ir::NodeId loop_of(ir::NodeId id) const {
    return loops_.empty() ? ir::kAbsent : loops_[static_cast<size_t>(id)];
  }

  bool runs_with(ir::NodeId id, ir::NodeId other) const {
    return loop_of(id) == loop_of(other) &&
           (branches_.empty() || branches_[static_cast<size_t>(id)] == branches_[static_cast<size_t>(other)]);
  }

  void place(ir::NodeId id) {
    const size_t index = static_cast<size_t>(id);
    group_of_[index] = index;
    Group& own = groups_[index];
    own.nodes = {id};
    if (!fusible(id)) return;
    const ir::Pattern pattern = def(id).pattern;
    own.reduction = pattern == ir::Pattern::kReduction;
    own.anchored = own.reduction || pattern == ir::Pattern::kComplex;
    own.inputs = graph_.node(id).inputs.size();
    for (ir::ValueId input : graph_.node(id).inputs) {
      if (input == ir::kAbsent || graph_.value(input).producer == ir::kAbsent) continue;
      const size_t other = group_of_[static_cast<size_t>(graph_.value(input).producer)];
      if (other != index && can_join(id, own, input, groups_[other])) merge(index, other);
    }
    while (const std::optional<size_t> other = read_by_several(index)) merge(index, *other);
  }

  /// A group whose value several nodes of the group read, and no others, or one node several times.
  std::optional<size_t> read_by_several(size_t index) const {
    const Group& own = groups_[index];
    std::map<ir::ValueId, int> reads;
    for (const ir::NodeId id : own.nodes) {
      for (const ir::ValueId input : graph_.node(id).inputs) {
        if (input != ir::kAbsent && graph_.value(input).producer != ir::kAbsent) ++reads[input];
      }
    }
    for (const auto& [value, count] : reads) {
      const size_t other = group_of_[static_cast<size_t>(graph_.value(value).producer)];
      if (other != index && count > 1 && count == reads_[static_cast<size_t>(value)] &&
          can_join_readers(own, value, groups_[other]))
        return other;
    }
    return std::nullopt;
  }

  bool can_join_readers(const Group& own, ir::ValueId value, const Group& producer) const {
    if (own.anchored || !fits(own, producer) || !fusible(graph_.value(value).producer)) return false;
    std::set<ir::ValueId> behind = {value};
    for (const ir::NodeId id : own.nodes) {
      const ir::Node& node = graph_.node(id);
      if (std::none_of(node.inputs.begin(), node.inputs.end(),
                       [&](ir::ValueId input) { return behind.count(input) != 0; }))
        continue;
      if (def(id).pattern != ir::Pattern::kElementwise || !runs_with(graph_.value(value).producer, id) ||
          graph_.value(node.outputs[0]).type.shape != graph_.value(value).type.shape)
        return false;
      behind.insert(node.outputs[0]);
    }
    return true;
  }

  static bool fits(const Group& own, const Group& producer) {
    return own.nodes.size() + producer.nodes.size() <= kMaxGroupNodes &&
           own.inputs + producer.inputs <= kMaxGroupInputs;
  }

  bool can_join(ir::NodeId id, const Group& own, ir::ValueId input, const Group& producer) const {
    const ir::NodeId from = graph_.value(input).producer;
    if (!fusible(from) || reads_[static_cast<size_t>(input)] != 1 || !runs_with(from, id)) return false;
    if (!fits(own, producer)) return false;
    if (is_fed(id, own, input, producer)) return true;
    const ir::Pattern pattern = def(id).pattern;
    if (producer.anchored) {
      const bool same_shape =
          graph_.value(input).type.shape == graph_.value(graph_.node(id).outputs[0]).type.shape;
      return pattern == ir::Pattern::kElementwise && same_shape && !own.anchored;
    }
    if (pattern == ir::Pattern::kElementwise || pattern == ir::Pattern::kInjective) return true;
    return pattern == ir::Pattern::kReduction && own.nodes.front() == id && all_elementwise(producer);
  }

  /// Whether the group is one operator of this kind, with what follows it element by element.
  bool is_one(const Group& group, std::string_view op) const {
    return graph_.node(group.nodes.front()).op == op &&
           std::all_of(group.nodes.begin() + 1, group.nodes.end(),
                       [&](ir::NodeId node) { return def(node).pattern == ir::Pattern::kElementwise; });
  }

  /// A pointwise convolution on blocks whose input is made by a depthwise convolution, with what follows it,
  /// or by channel moves alone. Where cores share the image by rows, each reads all weights, so they should
  /// fit a part of its L2 cache; else each core makes the whole input for its part of the result, which
  /// should take a small share of the time and read no more than the convolution would.
  bool is_fed(ir::NodeId id, const Group& own, ir::ValueId input, const Group& producer) const {
    const ir::Node& node = graph_.node(id);
    if (own.nodes.size() != 1 || node.op != "conv_blocked" || node.inputs[0] != input) return false;
    const bool moves = producer.nodes.size() == 1 && is_one(producer, "gather_channels");
    if (!moves && !is_one(producer, "conv_depthwise")) return false;
    const ir::SymShape& image = graph_.value(input).type.shape;
    // Which of the two is better only the extents say.
    if (!image.is_constant()) return false;
    const Shape x = image, w = graph_.value(node.inputs[1]).type.shape;
    const Shape out = graph_.value(node.outputs[0]).type.shape;
    if (x.size() != 5 || w[2] * w[3] != 1 || x[2] != out[2] || x[3] != out[3] || num_elements(out) == 0 ||
        w[1] != x[1])
      return false;
    const int64_t cores = std::max(facts_.num_cores, 1);
    if (x[0] * x[2] % cores == 0) return kFloatBytes * num_elements(w) <= facts_.l2_bytes / 4;
    const ir::Node& feed = graph_.node(producer.nodes.front());
    const bool strided = graph_.value(feed.inputs[0]).type.shape[2] != x[2];
    return !strided && (cores - 1) * kFeedProducts * kFeedShare <= out[1] * out[4];
  }

  bool all_elementwise(const Group& group) const {
    return std::all_of(group.nodes.begin(), group.nodes.end(),
                       [&](ir::NodeId node) { return def(node).pattern == ir::Pattern::kElementwise; });
  }

  void merge(size_t into, size_t from) {
    Group& target = groups_[into];
    Group& source = groups_[from];
    for (ir::NodeId node : source.nodes) group_of_[static_cast<size_t>(node)] = into;
    target.nodes.insert(target.nodes.end(), source.nodes.begin(), source.nodes.end());
    std::sort(target.nodes.begin(), target.nodes.end());
    target.anchored = target.anchored || source.anchored;
    target.reduction = target.reduction || source.reduction;
    target.inputs += source.inputs;
    source.nodes.clear();
  }

  void emit(ir::Patch& patch, const Group& group) {
    auto region = std::make_shared<ir::Graph>(graph_.ops());
    std::vector<ir::ValueId> inputs;
    std::vector<std::pair<ir::ValueId, ir::ValueId>> inner;  // value of the graph -> of the region
    std::vector<std::string> origins;
    const auto lookup = [&](ir::ValueId value) -> ir::ValueId {
      for (const auto& [outside, inside] : inner) {
        if (outside == value) return inside;
      }
      const ir::Value& source = graph_.value(value);
      // Constants of one element become immediates of the kernel.
      const bool immediate = source.constant && source.constant->num_elements() == 1;
      const ir::ValueId made = immediate ? region->add_constant(source.name, *source.constant)
                                         : region->add_input(source.name, source.type);
      if (!immediate) inputs.push_back(value);
      inner.emplace_back(value, made);
      return made;
    };
    for (ir::NodeId id : group.nodes) {
      const ir::Node& node = graph_.node(id);
      std::vector<ir::ValueId> args;
      for (ir::ValueId input : node.inputs) args.push_back(input == ir::kAbsent ? input : lookup(input));
      const ir::Value& output = graph_.value(node.outputs[0]);
      const ir::ValueId made =
          region->add_node(node.op, std::move(args), node.attrs, node.origins, {output.name})[0];
      inner.emplace_back(node.outputs[0], made);
      origins = merge_origins(std::move(origins), node.origins);
    }
    const ir::ValueId result = graph_.node(group.nodes.back()).outputs[0];
    region->set_outputs({inner.back().second});
    patch.replace(result, patch.add_fused(std::move(inputs), region, std::move(origins))[0]);
  }

  const ir::Graph& graph_;
  const target::CpuFacts& facts_;
  const ir::Storage storage_;
  std::vector<int> reads_;
  const std::vector<ir::NodeId> loops_;
  const std::vector<ir::BranchChain> branches_;
  std::vector<size_t> group_of_;
  std::vector<Group> groups_;
};

}  // namespace

ir::Graph fuse_operators(const ir::Graph& graph, const PassContext& context) {
  return Fuser(graph, context).run();
}

}  // namespace tensormill::passes
