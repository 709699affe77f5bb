// ai.onnx.ml TreeEnsembleRegressor and TreeEnsembleClassifier: all trees of all rows go down one level at a
// time, by gathers from tables of the nodes; leaves lead to themselves.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler/frontend/onnx/converters/compose.h"
#include "compiler/frontend/onnx/converters/ml.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

constexpr size_t kMaxDepth = 256;
constexpr int64_t kMaxWeights = int64_t{1} << 24;

/// What a node accepts when it compares its feature with its value.
struct Mode {
  bool less, equal, greater;
};

struct Forest {
  std::vector<int64_t> feature, yes, no;  ///< of each node; yes and no are its own number in a leaf
  std::vector<double> value;
  std::vector<Mode> mode;
  std::vector<bool> missing_is_yes;
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
      if (!seen.insert(node).second)
        context.invalid("node " + std::to_string(node) + " of the trees is reached twice");
      const size_t at = static_cast<size_t>(node);
      if (forest.yes[at] == node) continue;
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
  const std::vector<int64_t> trees = context.required_ints("nodes_treeids"),
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
    forest.missing_is_yes.push_back(!missing.empty() && missing[i] != 0);
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

/// The numbers of the leaves [N,trees] that the rows of x reach.
V reached_leaves(NodeContext& context, const Forest& forest, V x) {
  Compose c(context);
  const int64_t rows = c.shape(x)[0], nodes = forest.size();
  const Shape per_tree{rows, static_cast<int64_t>(forest.roots.size())};
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
    if (tracks)
      taken =
          c.binary("or", taken, c.binary("and", c.unary("is_nan", found), c.gather(missing_is_yes, at, 0)));
    at = c.where(taken, c.gather(yes, at, 0), c.gather(no, at, 0));
  }
  return at;
}

/// Sums of the leaves' weights [N,columns]; `kind` is "target" or "class".
V leaf_sums(NodeContext& context, const std::string& kind, int64_t columns, bool one_column) {
  Compose c(context);
  V x = context.input(0);
  if (c.shape(x).size() == 1) x = c.unsqueeze(x, 0);
  if (c.shape(x).size() != 2) context.invalid("the input has shape " + to_string(c.shape(x)));
  if (c.dtype(x) != DType::kFloat64) x = c.cast(x, DType::kFloat32);
  const Forest forest = read_forest(context, c.shape(x)[1]);
  const std::vector<int64_t> ids = context.required_ints((kind + "_ids").c_str()),
                             trees = context.required_ints((kind + "_treeids").c_str()),
                             nodes = context.required_ints((kind + "_nodeids").c_str());
  const std::vector<double> weights = float_values(context, (kind + "_weights").c_str());
  if (ids.size() != weights.size() || trees.size() != ids.size() || nodes.size() != ids.size())
    context.invalid("the attributes of the weights differ in length");
  if (context.product(forest.size(), columns) > kMaxWeights)
    context.unsupported(kind + "_weights",
                        "more than " + std::to_string(kMaxWeights) + " are not implemented");
  std::vector<double> table(static_cast<size_t>(forest.size() * columns), 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t column = one_column ? 0 : ids[i];
    if (column < 0 || column >= columns) context.invalid(kind + "_ids has " + std::to_string(ids[i]));
    table[static_cast<size_t>(number_of(context, forest, trees[i], nodes[i]) * columns + column)] +=
        weights[i];
  }
  const std::string aggregate = context.string_attr("aggregate_function", "SUM");
  if (aggregate != "SUM" && aggregate != "AVERAGE")
    context.unsupported("aggregate_function", "value \"" + aggregate + "\" is not implemented");
  const V leaves = reached_leaves(context, forest, x);
  const V parts = c.gather(c.doubles(DType::kFloat32, table, {forest.size(), columns}), leaves, 0);
  V sums = c.reduce(aggregate == "SUM" ? "reduce_sum" : "reduce_mean", parts, {1}, false);
  std::vector<double> base = float_values(context, "base_values");
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
  const std::vector<int64_t> labels = integer_labels(context, "classlabels_int64s", "classlabels_strings");
  const std::vector<int64_t> ids = context.required_ints("class_ids");
  const bool one_column = labels.size() == 2 && std::set<int64_t>(ids.begin(), ids.end()).size() == 1;
  const V sums =
      leaf_sums(context, "class", one_column ? 1 : static_cast<int64_t>(labels.size()), one_column);
  if (!one_column) {
    set_class_outputs(context, sums, labels);
    return;
  }
  // Weights that are all positive are probabilities.
  const std::vector<double> weights = float_values(context, "class_weights");
  const bool positive =
      std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
  const bool logistic = context.string_attr("post_transform", "NONE") == "LOGISTIC";
  set_binary_outputs(context, sums, labels, positive && !logistic ? 0.5 : 0, positive);
}

}  // namespace tensormill::frontend::onnx
