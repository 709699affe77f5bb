// ai.onnx.ml TreeEnsembleRegressor and TreeEnsembleClassifier: all trees of all rows go down one level at a
// time, by gathers from tables of the nodes; leaves lead to themselves.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/ml/ml.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr size_t kMaxDepth = 256;
constexpr int64_t kMaxWeights = int64_t{1} << 24;

/// What a node accepts when it compares its feature with its value.
struct Mode {
  bool less = false, equal = false, greater = false;
};

struct Forest {
  std::vector<int64_t> feature, yes, no;  ///< of each node; yes and no are its own number in a leaf
  std::vector<double> value;
  std::vector<Mode> mode;
  std::vector<bool> missing_is_yes;
  std::vector<std::vector<double>> members;  ///< further values that a node takes; empty where none has any
  std::vector<int64_t> roots;
  std::map<std::pair<int64_t, int64_t>, int64_t> number;  ///< (tree, node) -> number
  size_t depth = 0;
  int64_t size() const { return static_cast<int64_t>(feature.size()); }
};

int64_t number_of(const NodeContext& context, const Forest& forest, int64_t tree, int64_t node) {
  const auto found = forest.number.find({tree, node});
  if (found == forest.number.end())
    context.invalid("tree " + std::to_string(tree) + " has no node " + std::to_string(node));
  return found->second;
}

/// What is no number is unequal to every number.
bool is_unequal(const Mode& mode) { return mode.less && mode.greater; }

Mode read_mode(const NodeContext& context, std::string_view name) {
  if (name == "BRANCH_LEQ") return {true, true, false};
  if (name == "BRANCH_LT") return {true, false, false};
  if (name == "BRANCH_GTE") return {false, true, true};
  if (name == "BRANCH_GT") return {false, false, true};
  if (name == "BRANCH_EQ") return {false, true, false};
  if (name == "BRANCH_NEQ") return {true, false, true};
  context.invalid("nodes_modes has \"" + std::string(name) + "\"");
}

/// The depth of the deepest leaf; a node that is reached twice is no tree.
void measure_depth(const NodeContext& context, Forest& forest) {
  std::set<int64_t> seen;
  std::vector<int64_t> level = forest.roots;
  while (!level.empty()) {
    std::vector<int64_t> next;
    for (int64_t node : level) {
      const size_t at = static_cast<size_t>(node);
      if (forest.yes[at] == node) continue;
      if (!seen.insert(node).second)
        context.invalid("node " + std::to_string(node) + " of the trees is reached twice");
      next.push_back(forest.yes[at]);
      next.push_back(forest.no[at]);
    }
    if (!next.empty() && ++forest.depth > kMaxDepth)
      context.unsupported("nodes_treeids",
                          "trees deeper than " + std::to_string(kMaxDepth) + " are not implemented");
    level = std::move(next);
  }
}

Forest read_forest(const NodeContext& context, int64_t columns) {
  Forest forest;
  const ir::Ints trees = context.required_ints("nodes_treeids"),
                 nodes = context.required_ints("nodes_nodeids"),
                 features = context.required_ints("nodes_featureids"),
                 yes = context.required_ints("nodes_truenodeids"),
                 no = context.required_ints("nodes_falsenodeids"),
                 missing = context.ints_attr("nodes_missing_value_tracks_true", {});
  forest.value = float_values(context, "nodes_values");
  const AttributeProto* modes = context.node().find("nodes_modes");
  const size_t count = trees.size();
  if (count == 0 || modes == nullptr || modes->strings.size() != count || nodes.size() != count ||
      features.size() != count || yes.size() != count || no.size() != count || forest.value.size() != count ||
      (!missing.empty() && missing.size() != count))
    context.invalid("the attributes of the nodes differ in length");
  for (size_t i = 0; i < count; ++i) {
    if (!forest.number.emplace(std::pair(trees[i], nodes[i]), static_cast<int64_t>(i)).second)
      context.invalid("tree " + std::to_string(trees[i]) + " has node " + std::to_string(nodes[i]) +
                      " twice");
  }
  std::set<int64_t> children;
  for (size_t i = 0; i < count; ++i) {
    const int64_t own = static_cast<int64_t>(i);
    const bool leaf = modes->strings[i] == "LEAF";
    forest.yes.push_back(leaf ? own : number_of(context, forest, trees[i], yes[i]));
    forest.no.push_back(leaf ? own : number_of(context, forest, trees[i], no[i]));
    forest.mode.push_back(leaf ? Mode{} : read_mode(context, modes->strings[i]));
    forest.feature.push_back(leaf ? 0 : features[i]);
    forest.missing_is_yes.push_back((!missing.empty() && missing[i] != 0) || is_unequal(forest.mode.back()));
    if (!leaf && (features[i] < 0 || features[i] >= columns))
      context.invalid("a node compares column " + std::to_string(features[i]) + " of " +
                      std::to_string(columns));
    if (leaf) continue;
    children.insert(forest.yes.back());
    children.insert(forest.no.back());
  }
  for (int64_t i = 0; i < forest.size(); ++i) {
    if (children.count(i) == 0) forest.roots.push_back(i);
  }
  if (forest.roots.empty()) context.invalid("no tree has a root");
  measure_depth(context, forest);
  return forest;
}

/// Where the values [N,trees] are members of the sets of the nodes `at`.
V is_member(NodeContext& context, const Forest& forest, V found, V at) {
  Compose c(context);
  size_t most = 0;
  for (const std::vector<double>& set : forest.members) most = std::max(most, set.size());
  const int64_t width = static_cast<int64_t>(most);
  if (context.product(forest.size(), width) > kMaxWeights)
    context.unsupported("membership_values",
                        "more than " + std::to_string(kMaxWeights) + " are not implemented");
  std::vector<double> table(static_cast<size_t>(forest.size() * width),
                            std::numeric_limits<double>::quiet_NaN());
  for (size_t node = 0; node < forest.members.size(); ++node)
    std::copy(forest.members[node].begin(), forest.members[node].end(),
              table.begin() + static_cast<std::ptrdiff_t>(node * most));
  const V sets = c.gather(c.doubles(c.dtype(found), table, {forest.size(), width}), at, 0);
  const V hits = c.cast(c.binary("equal", c.unsqueeze(found, 2), sets), DType::kUInt8);
  return c.cast(c.reduce("reduce_max", hits, {2}, false), DType::kBool);
}

/// The numbers of the leaves [N,trees] that the rows of x reach.
V reached_leaves(NodeContext& context, const Forest& forest, V x) {
  Compose c(context);
  const ir::SymInt rows = c.shape(x)[0], nodes = forest.size();
  const ir::SymShape per_tree{rows, static_cast<int64_t>(forest.roots.size())};
  const auto flags = [&](auto&& flag) {
    Tensor table(DType::kBool, {nodes});
    for (int64_t i = 0; i < nodes; ++i) table.set_element_int(i, flag(static_cast<size_t>(i)) ? 1 : 0);
    return context.constant(std::move(table));
  };
  const V feature = c.ints(forest.feature, {nodes}), yes = c.ints(forest.yes, {nodes}),
          no = c.ints(forest.no, {nodes});
  const V value = c.doubles(c.dtype(x), forest.value, {nodes});
  const V accepts[] = {flags([&](size_t i) { return forest.mode[i].less; }),
                       flags([&](size_t i) { return forest.mode[i].equal; }),
                       flags([&](size_t i) { return forest.mode[i].greater; })};
  const bool tracks = std::find(forest.missing_is_yes.begin(), forest.missing_is_yes.end(), true) !=
                      forest.missing_is_yes.end();
  const V missing_is_yes = tracks ? flags([&](size_t i) { return forest.missing_is_yes[i]; }) : ir::kAbsent;
  V at = c.expand(c.ints(forest.roots, {1, per_tree[1]}), per_tree);
  for (size_t level = 0; level < forest.depth; ++level) {
    const V found = c.gather_elements(x, c.gather(feature, at, 0), 1), limit = c.gather(value, at, 0);
    const char* comparisons[] = {"less", "equal", "greater"};
    V taken = ir::kAbsent;
    for (size_t i = 0; i < 3; ++i) {
      const V hit = c.binary("and", c.binary(comparisons[i], found, limit), c.gather(accepts[i], at, 0));
      taken = taken == ir::kAbsent ? hit : c.binary("or", taken, hit);
    }
    if (!forest.members.empty()) taken = c.binary("or", taken, is_member(context, forest, found, at));
    if (tracks)
      taken =
          c.binary("or", taken, c.binary("and", c.unary("is_nan", found), c.gather(missing_is_yes, at, 0)));
    at = c.where(taken, c.gather(yes, at, 0), c.gather(no, at, 0));
  }
  return at;
}

/// The operand as rows [N,F] of float64 or float32.
V tree_rows(NodeContext& context) {
  Compose c(context);
  V x = context.input(0);
  if (c.shape(x).size() == 1) x = c.unsqueeze(x, 0);
  if (c.shape(x).size() != 2) context.invalid("the input has shape " + to_string(c.shape(x)));
  return c.dtype(x) == DType::kFloat64 ? x : c.cast(x, DType::kFloat32);
}

/// What trees' weights become: their sum, mean, least or largest.
enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

/// Weights of the nodes [nodes,columns] in which only some stand.
class WeightTable {
public:
  WeightTable(int64_t nodes, int64_t columns, Aggregate aggregate)
      : nodes_(nodes), columns_(columns), aggregate_(aggregate) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    none_ = aggregate == Aggregate::kMin ? kInfinity : aggregate == Aggregate::kMax ? -kInfinity : 0;
    values_.assign(static_cast<size_t>(nodes * columns), none_);
  }

  void add(int64_t node, int64_t column, double weight) {
    double& own = values_[static_cast<size_t>(node * columns_ + column)];
    own = aggregate_ == Aggregate::kMin   ? std::min(own, weight)
          : aggregate_ == Aggregate::kMax ? std::max(own, weight)
                                          : own + weight;
  }

  /// Of the leaves [N,trees]: [N,columns]; 0 in a column of which no leaf has a weight.
  V aggregated(NodeContext& context, V leaves, DType dtype) const {
    Compose c(context);
    const V parts = c.gather(c.doubles(dtype, values_, {nodes_, columns_}), leaves, 0);
    static constexpr const char* kReductions[] = {"reduce_mean", "reduce_sum", "reduce_min", "reduce_max"};
    const V result = c.reduce(kReductions[static_cast<size_t>(aggregate_)], parts, {1}, false);
    if (none_ == 0) return result;
    return c.where(c.binary("equal", result, c.number(result, none_)), c.number(result, 0), result);
  }

private:
  int64_t nodes_, columns_;
  Aggregate aggregate_;
  double none_ = 0;
  std::vector<double> values_;
};

Aggregate aggregate_of(const NodeContext& context) {
  const std::string name = context.string_attr("aggregate_function", "SUM");
  if (name == "AVERAGE") return Aggregate::kAverage;
  if (name == "SUM") return Aggregate::kSum;
  if (name == "MIN") return Aggregate::kMin;
  if (name == "MAX") return Aggregate::kMax;
  context.invalid("aggregate_function is \"" + name + "\"");
}

/// Sums of the leaves' weights [N,columns], or what aggregate_function says; `kind` is "target" or "class".
V leaf_sums(NodeContext& context, const std::string& kind, int64_t columns, bool one_column) {
  Compose c(context);
  const V x = tree_rows(context);
  const Forest forest = read_forest(context, c.shape(x)[1]);
  const ir::Ints ids = context.required_ints((kind + "_ids").c_str()),
                 trees = context.required_ints((kind + "_treeids").c_str()),
                 nodes = context.required_ints((kind + "_nodeids").c_str());
  const ir::CheckedList<double> weights = float_values(context, (kind + "_weights").c_str());
  if (ids.size() != weights.size() || trees.size() != ids.size() || nodes.size() != ids.size())
    context.invalid("the attributes of the weights differ in length");
  if (context.product(forest.size(), columns) > kMaxWeights)
    context.unsupported(kind + "_weights",
                        "more than " + std::to_string(kMaxWeights) + " are not implemented");
  WeightTable table(forest.size(), columns, aggregate_of(context));
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t column = one_column ? 0 : ids[i];
    if (column < 0 || column >= columns) context.invalid(kind + "_ids has " + std::to_string(ids[i]));
    table.add(number_of(context, forest, trees[i], nodes[i]), column, weights[i]);
  }
  V sums = table.aggregated(context, reached_leaves(context, forest, x), DType::kFloat32);
  ir::CheckedList<double> base = float_values(context, "base_values");
  if (one_column && base.size() == 2) base.erase(base.begin());
  if (!base.empty() && base.size() != 1 && static_cast<int64_t>(base.size()) != columns)
    context.invalid("base_values has " + std::to_string(base.size()) + " values");
  if (!base.empty())
    sums = c.add(sums, c.doubles(DType::kFloat32, base, {static_cast<int64_t>(base.size())}));
  return sums;
}

}  // namespace

void convert_tree_ensemble_regressor(NodeContext& context) {
  const V sums = leaf_sums(context, "target", context.int_attr("n_targets", 1), false);
  context.set_output(0, post_transformed(context, sums));
}

void convert_tree_ensemble_classifier(NodeContext& context) {
  const ClassLabels labels = class_labels(context, "classlabels_int64s", "classlabels_strings");
  const ir::Ints ids = context.required_ints("class_ids");
  const bool one_column = labels.count == 2 && std::set<int64_t>(ids.begin(), ids.end()).size() == 1;
  const V sums = leaf_sums(context, "class", one_column ? 1 : labels.count, one_column);
  if (!one_column) {
    set_class_outputs(context, sums, labels);
    return;
  }
  // Weights that are all positive are probabilities.
  const ir::CheckedList<double> weights = float_values(context, "class_weights");
  const bool positive =
      std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
  const bool logistic = context.string_attr("post_transform", "NONE") == "LOGISTIC";
  set_binary_outputs(context, sums, labels, positive && !logistic ? 0.5 : 0, positive);
}

namespace {

ir::CheckedList<double> numbers_of(const NodeContext& context, const char* name) {
  if (!context.has_attr(name)) return {};
  const Tensor tensor = context.tensor_attr(name);
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_double(i));
  return values;
}

/// Sets of values one after the other, a NaN behind each, for the nodes of mode 6.
void read_members(const NodeContext& context, const std::vector<double>& modes, Forest& forest) {
  constexpr double kMember = 6;
  const ir::CheckedList<double> values = numbers_of(context, "membership_values");
  size_t next = 0;
  for (size_t node = 0; node < modes.size(); ++node) {
    if (modes[node] != kMember) continue;
    forest.members.resize(static_cast<size_t>(forest.size()));
    for (; next < values.size() && values[next] == values[next]; ++next)
      forest.members[node].push_back(values[next]);
    ++next;
  }
}

/// The operator of ai.onnx.ml 5: inner nodes and leaves have numbers of their own; leaves come behind here.
Forest read_split_forest(const NodeContext& context, int64_t columns) {
  static constexpr Mode kModes[] = {{true, true, false},
                                    {true, false, false},
                                    {false, true, true},
                                    {false, false, true},
                                    {false, true, false},
                                    {true, false, true},
                                    {}};
  Forest forest;
  const ir::Ints features = context.required_ints("nodes_featureids"),
                 yes = context.required_ints("nodes_truenodeids"),
                 no = context.required_ints("nodes_falsenodeids"),
                 yes_leaf = context.required_ints("nodes_trueleafs"),
                 no_leaf = context.required_ints("nodes_falseleafs"),
                 missing = context.ints_attr("nodes_missing_value_tracks_true", {});
  const ir::CheckedList<double> splits = numbers_of(context, "nodes_splits"),
                                modes = numbers_of(context, "nodes_modes");
  const size_t count = features.size();
  const int64_t inner = static_cast<int64_t>(count);
  const int64_t leaves = static_cast<int64_t>(context.required_ints("leaf_targetids").size());
  for (const size_t size :
       {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), splits.size(), modes.size()}) {
    if (size != count) context.invalid("the attributes of the nodes differ in length");
  }
  if (!missing.empty() && missing.size() != count)
    context.invalid("the attributes of the nodes differ in length");
  const auto target = [&](int64_t id, int64_t is_leaf) {
    if (id < 0 || id >= (is_leaf != 0 ? leaves : inner))
      context.invalid("a node leads to " + std::to_string(id));
    return is_leaf != 0 ? inner + id : id;
  };
  for (size_t i = 0; i < count; ++i) {
    if (features[i] < 0 || features[i] >= columns || !(modes[i] >= 0 && modes[i] <= 6))
      context.invalid("node " + std::to_string(i) + " compares column " + std::to_string(features[i]) +
                      " of " + std::to_string(columns) + " by mode " + std::to_string(modes[i]));
    forest.feature.push_back(features[i]);
    forest.yes.push_back(target(yes[i], yes_leaf[i]));
    forest.no.push_back(target(no[i], no_leaf[i]));
    forest.value.push_back(splits[i]);
    forest.mode.push_back(kModes[static_cast<size_t>(modes[i])]);
    forest.missing_is_yes.push_back((!missing.empty() && missing[i] != 0) || is_unequal(forest.mode.back()));
  }
  for (int64_t leaf = inner; leaf < inner + leaves; ++leaf) {
    forest.feature.push_back(0);
    forest.yes.push_back(leaf);
    forest.no.push_back(leaf);
    forest.value.push_back(0);
    forest.mode.push_back({});
    forest.missing_is_yes.push_back(false);
  }
  forest.roots = context.required_ints("tree_roots");
  for (const int64_t root : forest.roots) target(root, 0);
  if (forest.roots.empty()) context.invalid("no tree has a root");
  read_members(context, modes, forest);
  measure_depth(context, forest);
  return forest;
}

}  // namespace

void convert_tree_ensemble(NodeContext& context) {
  Compose c(context);
  const V x = tree_rows(context);
  const Forest forest = read_split_forest(context, c.shape(x)[1]);
  const ir::Ints ids = context.required_ints("leaf_targetids");
  const ir::CheckedList<double> weights = numbers_of(context, "leaf_weights");
  const int64_t columns = context.int_attr("n_targets", 1),
                inner = forest.size() - static_cast<int64_t>(ids.size());
  if (weights.size() != ids.size()) context.invalid("leaf_weights differ in length from leaf_targetids");
  if (columns < 1 || context.product(forest.size(), columns) > kMaxWeights)
    context.unsupported("n_targets",
                        "more than " + std::to_string(kMaxWeights) + " weights are not implemented");
  const int64_t aggregate = context.int_attr("aggregate_function", static_cast<int64_t>(Aggregate::kSum)),
                transform = context.int_attr("post_transform", 0);
  constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (aggregate < 0 || aggregate > static_cast<int64_t>(Aggregate::kMax) || transform < 0 || transform > 4)
    context.invalid("aggregate_function is " + std::to_string(aggregate) + ", post_transform " +
                    std::to_string(transform));
  WeightTable table(forest.size(), columns, static_cast<Aggregate>(aggregate));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= columns) context.invalid("leaf_targetids has " + std::to_string(ids[i]));
    table.add(inner + static_cast<int64_t>(i), ids[i], weights[i]);
  }
  const V scores = table.aggregated(context, reached_leaves(context, forest, x), c.dtype(x));
  const V result = transformed(context, scores, kTransforms[static_cast<size_t>(transform)]);
  context.set_output(0, c.cast(result, c.dtype(context.input(0))));
}

}  // namespace tensormill::frontend::onnx
