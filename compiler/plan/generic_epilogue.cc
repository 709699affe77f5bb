#include "compiler/plan/generic_epilogue.h"

#include <algorithm>

#include "compiler/te/rewrite_reads.h"

namespace tensormill::plan {

namespace {

using te::Expr;

bool reads_nest(const Nest& nest, size_t index) {
  return std::any_of(nest.sources.begin(), nest.sources.end(),
                     [index](const NestSource& source) { return !source.is_input && source.index == index; });
}

bool is_only_reader(const Nests& nests, size_t last, size_t sum) {
  for (size_t i = 0; i < nests.nests.size(); ++i) {
    if (i != last && reads_nest(nests.nests[i], sum)) return false;
  }
  return std::none_of(nests.outputs.begin(), nests.outputs.end(),
                      [sum](const NestSource& output) { return !output.is_input && output.index == sum; });
}

}  // namespace

std::optional<size_t> sum_before(const Nests& nests, size_t last) {
  const te::TensorNode& tensor = *nests.nests[last].tensor;
  if (tensor.reduction || tensor.body.size() != 1) return std::nullopt;
  for (size_t i = last; i-- > 0;) {
    const te::TensorNode& sum = *nests.nests[i].tensor;
    if (sum.reduction && sum.dtypes.size() == 1 && sum.axes.size() == tensor.axes.size() &&
        reads_nest(nests.nests[last], i) && is_only_reader(nests, last, i))
      return i;
  }
  return std::nullopt;
}

std::optional<Nest> with_epilogue(const Nest& sum, const Nest& last, size_t input) {
  const te::TensorNode &tensor = *sum.tensor, &final = *last.tensor;
  const bool same_shape =
      std::equal(tensor.shape.begin(), tensor.shape.end(), final.shape.begin(), final.shape.end(),
                 [](const Expr& a, const Expr& b) { return te::equal(a, b); });
  if (!same_shape) return std::nullopt;
  Nest both = sum;
  both.epilogue = Epilogue{te::make_var("sum", tensor.dtypes[0]), {}, final.dtypes[0]};
  bool is_own_place = true;
  te::ReadRewriter rewriter([&](const Expr& read, const std::vector<Expr>& indices) {
    if (read->tensor != last.inputs[input]) return te::read(read->tensor, indices);
    for (size_t d = 0; d < indices.size(); ++d)
      is_own_place = is_own_place && te::equal(indices[d], Expr(final.axes[d].var));
    return Expr(both.epilogue->value);
  });
  Expr body = rewriter.run(final.body[0]);
  if (!is_own_place) return std::nullopt;
  for (size_t d = 0; d < final.axes.size(); ++d)
    body = te::substitute(body, final.axes[d].var, Expr(tensor.axes[d].var));
  both.epilogue->body = body;
  for (size_t i = 0; i < last.inputs.size(); ++i) {
    if (i == input) continue;
    both.inputs.push_back(last.inputs[i]);
    both.sources.push_back(last.sources[i]);
  }
  return both;
}

}  // namespace tensormill::plan
