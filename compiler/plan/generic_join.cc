#include "compiler/plan/generic_join.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/schedule/conditions.h"
#include "compiler/te/linear.h"

namespace tensormill::plan {

namespace {

using schedule::simple_indices;
using te::Expr;
using te::ExprOp;

/// Two neighbouring axes of a nest as one.
class Joiner {
public:
  Joiner(const te::Axis& outer, const te::Axis& inner, TermVars& vars)
      : outer_(outer),
        inner_(inner),
        product_(vars.product(outer.extent, inner.extent)),
        both_{te::make_var(inner.var->name), product_.value_or(Expr(0))},
        is_possible_(product_.has_value()) {}

  const te::Axis& both() const { return both_; }
  bool is_possible() const { return is_possible_; }

  Expr run(const Expr& expr) {
    const Expr result = rewriter_.run(expr);
    is_possible_ = is_possible_ && !te::mentions(result, outer_.var) && !te::mentions(result, inner_.var);
    return result;
  }

  /// The input with the two extents as one, where any of what was rewritten reads it along the axes.
  te::Tensor input(const te::Tensor& input) {
    const auto found = places_.find(input.get());
    return found == places_.end() ? input : found->second.joined;
  }

private:
  struct Place {
    std::optional<size_t> dim;  ///< of the outer axis; nothing where the axes are not read along
    te::Tensor joined;
  };

  Expr replace(const Expr& read, const std::vector<Expr>& indices) {
    const Place place = place_of(*read, indices);
    const auto [known, is_new] = places_.emplace(read->tensor.get(), place);
    if (known->second.dim != place.dim) is_possible_ = false;
    if (!place.dim || !is_possible_) return te::read(read->tensor, indices, read->output);
    std::vector<Expr> joined = indices;
    joined[*place.dim] = Expr(both_.var);
    joined.erase(joined.begin() + static_cast<std::ptrdiff_t>(*place.dim) + 1);
    return te::read(known->second.joined, std::move(joined), read->output);
  }

  Place place_of(const te::ExprNode& read, const std::vector<Expr>& indices) const {
    const std::vector<Expr>& shape = read.tensor->shape;
    for (size_t d = 0; d + 1 < indices.size(); ++d) {
      const bool is_here = te::equal(indices[d], Expr(outer_.var)) &&
                           te::equal(indices[d + 1], Expr(inner_.var)) &&
                           te::equal(shape[d], outer_.extent) && te::equal(shape[d + 1], inner_.extent);
      if (!is_here) continue;
      std::vector<Expr> extents = shape;
      extents[d] = both_.extent;
      extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      return {d, te::placeholder(read.tensor->name, read.tensor->dtypes[0], std::move(extents))};
    }
    return {std::nullopt, read.tensor};
  }

  const te::Axis outer_, inner_;
  const std::optional<Expr> product_;
  const te::Axis both_;
  bool is_possible_;
  std::unordered_map<const te::TensorNode*, Place> places_;
  te::ReadRewriter rewriter_{
      [this](const Expr& read, const std::vector<Expr>& indices) { return replace(read, indices); }};
};

/// Puts one axis in the place of `axes[first]` and the next.
void put_joined(std::vector<te::Axis>& axes, size_t first, const te::Axis& both) {
  axes[first] = both;
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(first) + 1);
}

/// The nest with axis `first` (of the reduction, or of the tensor) and the next one as one.
std::optional<Nest> joined_at(const Nest& nest, size_t first, bool is_reduced, TermVars& vars) {
  auto tensor = std::make_shared<te::TensorNode>(*nest.tensor);
  std::vector<te::Axis> reduced = tensor->reduction ? tensor->reduction->axes : std::vector<te::Axis>();
  std::vector<te::Axis>& axes = is_reduced ? reduced : tensor->axes;
  const te::Axis outer = axes[first], inner = axes[first + 1];
  TermVars with_product = vars;
  Joiner joiner(outer, inner, with_product);
  put_joined(axes, first, joiner.both());
  if (!is_reduced) {
    tensor->shape[first] = joiner.both().extent;
    tensor->shape.erase(tensor->shape.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  }
  for (Expr& body : tensor->body) body = joiner.run(body);
  if (tensor->reduction) {
    auto reduction = std::make_shared<te::Reduction>(*tensor->reduction);
    reduction->axes = reduced;
    for (Expr& source : reduction->source) source = joiner.run(source);
    tensor->reduction = std::move(reduction);
  }
  Nest result = nest;
  if (result.epilogue) {
    result.epilogue->body = joiner.run(result.epilogue->body);
    result.epilogue->target = joiner.run(result.epilogue->target);
    if (result.epilogue->where) result.epilogue->where = joiner.run(result.epilogue->where);
  }
  if (!joiner.is_possible()) return std::nullopt;
  for (te::Tensor& input : result.inputs) input = joiner.input(input);
  result.tensor = std::move(tensor);
  result.joined.insert(result.joined.end(), {outer.extent, inner.extent});
  vars = std::move(with_product);
  return result;
}

/// Leaves out reduced axes of one element, of which indices are then written as those of other sums.
void drop_single_axes(Nest& nest) {
  auto reduction = std::make_shared<te::Reduction>(*nest.tensor->reduction);
  std::vector<te::Var> dropped;
  for (size_t i = reduction->axes.size(); i-- > 0 && reduction->axes.size() > 1;) {
    if (!te::is_int(reduction->axes[i].extent, 1)) continue;
    dropped.push_back(reduction->axes[i].var);
    reduction->axes.erase(reduction->axes.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (dropped.empty()) return;
  const te::BoundsContext nothing_known;
  te::ReadRewriter rewriter = simple_indices(nothing_known);
  for (Expr& source : reduction->source) {
    for (const te::Var& var : dropped) source = te::substitute(source, var, Expr(0));
    source = rewriter.run(source);
  }
  auto tensor = std::make_shared<te::TensorNode>(*nest.tensor);
  tensor->reduction = std::move(reduction);
  nest.tensor = std::move(tensor);
}

/// Joins what can be of the axes from `begin` on.
void join_all(Nest& nest, size_t begin, bool is_reduced, TermVars& vars) {
  const size_t count = is_reduced ? nest.tensor->reduction->axes.size() : nest.tensor->axes.size();
  for (size_t i = count; i-- > begin + 1;) {
    if (std::optional<Nest> joined = joined_at(nest, i - 1, is_reduced, vars)) nest = std::move(*joined);
  }
}

/// Behind the axes that threads share.
size_t first_own_axis(const te::TensorNode& tensor) {
  const auto count = [&](size_t axis) { return te::as_int(tensor.axes[axis].extent); };
  size_t first = 0;
  while (first < tensor.axes.size() && count(first) != nullptr && *count(first) == 1) ++first;
  ++first;
  if (first < tensor.axes.size() && count(first) != nullptr) ++first;
  return first;
}

}  // namespace

Nest with_joined_axes(const Nest& nest, TermVars& vars) {
  Nest result = nest;
  if (!nest.places.empty()) return result;
  if (result.tensor->reduction) drop_single_axes(result);
  join_all(result, first_own_axis(*nest.tensor), false, vars);
  if (result.tensor->reduction) join_all(result, 0, true, vars);
  return result;
}

}  // namespace tensormill::plan
