#include "compiler/plan/generic_epilogue.h"

#include <algorithm>

#include "compiler/schedule/conditions.h"

namespace tensormill::plan {

namespace {

using schedule::are_equal;
using schedule::both;
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

/// Which axis of the sum an index names: an axis of the reader, or its blocks or its place in a block.
class PlaceSolver {
public:
  PlaceSolver(const std::vector<Expr>& place, const te::TensorNode& sum) : place_(place), sum_(sum) {}

  /// An axis of the reader over the sum's axes, of which each serves one axis; null: it is not known.
  Expr solved(const te::Axis& axis) {
    const Expr own(axis.var);
    for (size_t d = 0; d < place_.size(); ++d) {
      if (te::equal(place_[d], own) && te::equal(sum_.shape[d], axis.extent)) return take(d);
    }
    for (size_t d = 0; d < place_.size(); ++d) {
      const int64_t* lanes = te::as_int(sum_.shape[d]);
      if (lanes == nullptr || !te::equal(place_[d], te::floormod(own, Expr(*lanes)))) continue;
      for (size_t of = 0; of < place_.size(); ++of) {
        const int64_t *blocks = te::as_int(sum_.shape[of]), *extent = te::as_int(axis.extent);
        const bool is_all = blocks != nullptr && extent != nullptr && *blocks * *lanes >= *extent &&
                            (*blocks - 1) * *lanes < *extent;
        if (!is_all || !te::equal(place_[of], te::floordiv(own, Expr(*lanes)))) continue;
        const Expr solution = take(of) * Expr(*lanes) + take(d);
        if (*blocks * *lanes > *extent) where_ = both(where_, solution < axis.extent);
        return solution;
      }
    }
    return Expr();
  }

  size_t taken() const { return taken_; }
  /// Which of the sum's elements are read; null: all.
  const Expr& where() const { return where_; }

private:
  Expr take(size_t d) {
    ++taken_;
    return Expr(sum_.axes[d].var);
  }

  const std::vector<Expr>& place_;
  const te::TensorNode& sum_;
  size_t taken_ = 0;
  Expr where_;
};

/// The axes of `final` over those of the sum of which it reads one element each, at `place`.
struct ReadPlaces {
  std::vector<Expr> axes;
  Expr where;  ///< which of the sum's elements are read; null: all
};

/// Nothing where elements of the sum are read more than once.
std::optional<ReadPlaces> places_of(const std::vector<Expr>& place, const te::TensorNode& sum,
                                    const te::TensorNode& final) {
  PlaceSolver solver(place, sum);
  ReadPlaces places;
  for (const te::Axis& axis : final.axes) {
    places.axes.push_back(solver.solved(axis));
    if (!places.axes.back()) return std::nullopt;
  }
  if (solver.taken() != sum.axes.size()) return std::nullopt;
  places.where = solver.where();
  return places;
}

}  // namespace

std::optional<Nest> with_epilogue(const Nest& sum, const Nest& last, size_t input) {
  const te::TensorNode &tensor = *sum.tensor, &final = *last.tensor;
  Nest joined = sum;
  const te::Var value = te::make_var("sum", tensor.dtypes[0]);
  std::vector<Expr> place;
  bool is_one_place = true;
  te::ReadRewriter rewriter([&](const Expr& read, const std::vector<Expr>& indices) {
    if (read->tensor != last.inputs[input]) return te::read(read->tensor, indices);
    if (place.empty()) place = indices;
    is_one_place = is_one_place && are_equal(place, indices);
    return Expr(value);
  });
  Expr body = rewriter.run(final.body[0]);
  const std::optional<ReadPlaces> places = is_one_place ? places_of(place, tensor, final) : std::nullopt;
  if (!places) return std::nullopt;
  for (size_t d = 0; d < final.axes.size(); ++d)
    body = te::substitute(body, final.axes[d].var, places->axes[d]);
  const te::Tensor out = te::placeholder("out", final.dtypes[0], final.shape);
  joined.epilogue = Epilogue{value, body, te::read(out, places->axes), places->where};
  for (size_t i = 0; i < last.inputs.size(); ++i) {
    if (i == input) continue;
    joined.inputs.push_back(last.inputs[i]);
    joined.sources.push_back(last.sources[i]);
  }
  return joined;
}

std::optional<size_t> sum_before(const Nests& nests, size_t last) {
  const te::TensorNode& tensor = *nests.nests[last].tensor;
  if (tensor.reduction || tensor.body.size() != 1) return std::nullopt;
  std::optional<size_t> found;
  for (size_t i = last; i-- > 0;) {
    const te::TensorNode& sum = *nests.nests[i].tensor;
    if (!sum.reduction || sum.dtypes.size() != 1 || !is_only_reader(nests, last, i)) continue;
    const std::vector<NestSource>& sources = nests.nests[last].sources;
    const auto input = std::find(sources.begin(), sources.end(), NestSource{false, i, 0});
    if (input == sources.end()) continue;
    if (with_epilogue(nests.nests[i], nests.nests[last], static_cast<size_t>(input - sources.begin())))
      return i;
    if (!found) found = i;
  }
  return found;
}

}  // namespace tensormill::plan
