// matmul(a, transpose(B)) = matmul(a, B, transpose_b), where a has few rows and the columns of the product's
// sums lie side by side in B: turning B round reads and writes all of it, as the product by few rows does.
// Where the transpose moves other dims too, as those of heads, it goes on to move them alone, whole rows at a
// time.
#include <algorithm>
#include <numeric>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"

namespace tensormill::passes {

namespace {

/// With more rows the copy pays: they share vectors of its columns.
constexpr int64_t kFewRows = 8;

class Turner {
public:
  Turner(const ir::Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), patch_(graph, "transposed_products"), reads_(count_reads(graph)) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (node.op == "matmul") visit(node);
    }
    return patch_.apply();
  }

private:
  const ir::SymShape& shape(ir::ValueId id) const { return graph_.value(id).type.shape; }

  bool has_few_rows(const ir::Node& node) const {
    const ir::SymShape& a = shape(node.inputs[0]);
    if (a.size() < 2 || ops::attr_bool(node.attrs, "transpose_a", false)) return false;
    const ir::SymInt& rows = a[a.size() - 2];
    // That a free extent is small is no reason to leave the large ones out.
    if (is_generic(context_, graph_, node)) return is_proven(ir::Relation::kEqual, rows, 1);
    return is_proven(ir::Relation::kLessEqual, rows, kFewRows);
  }

  void visit(const ir::Node& node) {
    const ir::Node* turn = match(graph_, node.inputs[1], "transpose");
    if (turn == nullptr || ops::attr_bool(node.attrs, "transpose_b", false) || !has_few_rows(node)) return;
    if (!is_float(graph_.value(node.outputs[0]).type.dtype)) return;
    if (reads_[static_cast<size_t>(node.inputs[1])] != 1) return;
    std::vector<int64_t> perm = permutation_of(graph_, *turn);
    const size_t rank = perm.size();
    if (rank < 2 || perm[rank - 2] + 1 != static_cast<int64_t>(rank)) return;
    std::swap(perm[rank - 2], perm[rank - 1]);
    std::vector<int64_t> as_it_is(rank);
    std::iota(as_it_is.begin(), as_it_is.end(), 0);
    ir::ValueId b = turn->inputs[0];
    if (perm != as_it_is) b = patch_.add_node("transpose", {b}, {{"perm", perm}}, turn->origins)[0];
    ir::Attrs attrs = node.attrs;
    attrs.set("transpose_b", int64_t{1});
    patch_.replace(node.outputs[0], patch_.add_node("matmul", {node.inputs[0], b}, attrs,
                                                    merge_origins(node.origins, turn->origins))[0]);
  }

  const ir::Graph& graph_;
  const PassContext& context_;
  ir::Patch patch_;
  const std::vector<int> reads_;
};

}  // namespace

ir::Graph transposed_products(const ir::Graph& graph, const PassContext& context) {
  return Turner(graph, context).run();
}

}  // namespace tensormill::passes
