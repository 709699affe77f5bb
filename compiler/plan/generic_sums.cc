// Of LoopBuilder: the loops of reductions.
#include "compiler/plan/generic_loop_builder.h"

#include <algorithm>

#include "compiler/te/linear.h"
#include "compiler/te/op_class.h"
#include "compiler/te/simplify.h"

namespace tensormill::plan {

using te::Expr;
using te::ForKind;
using te::Stmt;

Stmt LoopBuilder::reduce() {
  const te::Reduction& reduction = *tensor_.reduction;
  std::vector<te::Buffer> sums;
  const Expr row = tiling_.columns > 1 ? Expr(row_) * Expr(tiling_.columns) + Expr(column_) : Expr(row_);
  const Expr in_row = vectors_ > 1 || !tiling_.by_one ? row * Expr(vectors_) + Expr(vector_) : row;
  const Expr slot = in_row * Expr(static_cast<int64_t>(tiling_.lanes)) + Expr(lane_);
  std::vector<Expr> held, identities;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    sums.push_back(te::make_buffer("sum", tensor_.dtypes[i],
                                   {Expr(rows_ * tiling_.columns * vectors_ * tiling_.lanes)},
                                   te::Scope::kRegister));
    held.push_back(te::load(sums.back(), {index_of(slot)}));
    identities.push_back(reduction.identity[i]);
  }
  const std::vector<std::vector<Expr>> slots(sums.size(), {index_of(slot)});
  const std::optional<Taps> taps = taps_of(reduction, context_);
  const Stmt body = taps && are_of_rows(*taps)
                        ? sum_of_taps(*taps, sums, held, slots)
                        : loops_of(0, reduction.axes.size(),
                                   each_point(update(reduction.source, sums, held, slots), !is_whole_));
  const Stmt results = stores(outputs_, output_index(), finished(held));
  Stmt all = te::make_seq({each_point(stores(sums, slots, identities), false), body,
                           tiling_.by_one ? each_point(results, !is_whole_) : each_output(results)});
  for (size_t i = sums.size(); i-- > 0;) all = te::make_allocate(sums[i], all);
  return all;
}

Stmt LoopBuilder::loops_of(size_t begin, size_t end, Stmt body) const {
  const std::vector<te::Axis>& axes = tensor_.reduction->axes;
  for (size_t i = end; i-- > begin;)
    body = te::make_for(axes[i].var, Expr(0), axes[i].extent, ForKind::kSerial, body);
  return body;
}

bool LoopBuilder::are_of_rows(const Taps& taps) const {
  return std::none_of(taps.conditions.begin(), taps.conditions.end(), [&](const Expr& each) {
    const Expr condition = at_point(each);
    return te::mentions(condition, lane_) || te::mentions(condition, vector_) ||
           te::mentions(condition, column_);
  });
}

Stmt LoopBuilder::sum_of_taps(const Taps& taps, const std::vector<te::Buffer>& sums,
                              const std::vector<Expr>& held, const std::vector<std::vector<Expr>>& slots) {
  const std::vector<te::Axis>& axes = tensor_.reduction->axes;
  const te::BoundsContext before = context_;
  for (const Expr& each : taps.conditions) context_.assume(each);
  const Stmt sum = update({taps.value}, sums, held, slots);
  context_ = before;
  size_t last = 0;
  Expr whole, all, own;
  const auto add = [](Expr& conditions, const Expr& condition) {
    conditions = conditions ? te::logical_and(conditions, condition) : condition;
  };
  bool is_by_rows = false;
  for (const Expr& each : taps.conditions) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (te::mentions(each, axes[i].var)) last = i + 1;
    }
    const Expr condition = at_point(each);
    const bool is_of_row = te::mentions(condition, row_);
    const Expr of_all = for_all(condition, row_, rows_);
    is_by_rows = is_by_rows || is_of_row;
    add(own, condition);
    add(is_of_row ? all : whole, of_all ? of_all : te::bool_imm(false));
  }
  Stmt inner = loops_of(last, axes.size(), each_point(sum, !is_whole_));
  if (is_by_rows) {
    const Stmt by_row = loops_of(last, axes.size(), each_point(sum, !is_whole_, own));
    inner = te::make_if(all, inner, by_row);
  }
  const Stmt each = loops_of(0, last, whole ? te::make_if(whole, inner) : inner);
  // What is done for one tap alone takes no longer than to ask whether it counts.
  const bool is_short = last == axes.size() && rows_ == tiling_.block && rows_ > 1;
  const Expr inside = is_short ? all_count(taps) : Expr();
  return inside ? te::make_if(inside, unrolled(each_point(sum, !is_whole_)), each) : each;
}

/// A condition under which all taps of all rows count; null where none is known.
Expr LoopBuilder::all_count(const Taps& taps) const {
  std::vector<Expr> parts;
  for (const Expr& each : taps.conditions) {
    Expr condition = for_all(at_point(each), row_, rows_);
    for (const te::Axis& axis : tensor_.reduction->axes) {
      const int64_t* extent = te::as_int(axis.extent);
      if (condition && te::mentions(condition, axis.var))
        condition = extent != nullptr ? for_all(condition, axis.var, *extent) : Expr();
    }
    if (!condition) return Expr();
    parts.push_back(condition);
  }
  Expr all = parts.at(0);
  for (size_t i = 1; i < parts.size(); ++i) all = te::logical_and(all, parts[i]);
  return all;
}

/// The loops of the reduced axes, the inner ones unrolled while that is not much: what neighbouring taps read
/// is then loaded once.
Stmt LoopBuilder::unrolled(Stmt body) const {
  constexpr int64_t kMostPoints = 256;
  const std::vector<te::Axis>& axes = tensor_.reduction->axes;
  int64_t points = rows_ * tiling_.columns * vectors_;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t* extent = te::as_int(axes[i].extent);
    points = extent != nullptr && points <= kMostPoints ? points * *extent : kMostPoints + 1;
    const ForKind kind = points <= kMostPoints ? ForKind::kUnrolled : ForKind::kSerial;
    body = te::make_for(axes[i].var, Expr(0), axes[i].extent, kind, body);
  }
  return body;
}

Stmt LoopBuilder::reduce_by_lanes() {
  const te::Reduction& reduction = *tensor_.reduction;
  const auto lanes = static_cast<int64_t>(tiling_.reduced_lanes);
  const te::Axis& inner = reduction.axes.back();
  const te::Buffer sum =
      te::make_buffer("sum", tensor_.dtypes[0], {Expr(rows_ * lanes)}, te::Scope::kRegister);
  const Expr first = Expr(row_) * Expr(lanes), slot = first + Expr(lane_);
  const auto rows = [&](const Stmt& body) {
    return rows_ > 1 ? te::make_for(row_, Expr(0), Expr(rows_), ForKind::kUnrolled, body)
                     : te::substitute(body, row_, Expr(0));
  };
  const auto each = [&](const Stmt& body) {
    return rows(te::make_for(lane_, Expr(0), Expr(lanes), ForKind::kVectorized, body));
  };
  const Expr whole = te::floordiv(inner.extent, Expr(lanes));
  reduced_at_ = Expr(reduced_) * Expr(lanes) + Expr(lane_);
  Stmt body = te::make_for(reduced_, Expr(0), whole, ForKind::kSerial,
                           each(update(reduction.source, {sum}, {te::load(sum, {slot})}, {{slot}})));
  const int64_t* count = te::as_int(inner.extent);
  if (count == nullptr || *count % lanes != 0) {
    reduced_at_ = whole * Expr(lanes) + Expr(rest_);
    const Stmt added = rows(update(reduction.source, {sum}, {te::load(sum, {first})}, {{first}}));
    body = te::make_seq(
        {body, te::make_for(rest_, Expr(0), inner.extent - whole * Expr(lanes), ForKind::kSerial, added)});
  }
  reduced_at_.reset();
  for (size_t i = reduction.axes.size() - 1; i-- > 0;)
    body = te::make_for(reduction.axes[i].var, Expr(0), reduction.axes[i].extent, ForKind::kSerial, body);
  // Halves are added up: one lane after the other takes longer than the sums of short axes.
  const Expr held = te::load(sum, {te::ramp(first, Expr(1), tiling_.reduced_lanes)});
  const Expr total = te::make(te::lane_reduction_by(reduction.combine[0]->op), {held});
  body = te::make_seq({each(te::make_store(sum, {slot}, reduction.identity[0])), body,
                       rows(stores(outputs_, output_index(), finished({total})))});
  return te::make_allocate(sum, body);
}

Expr LoopBuilder::index_of(const Expr& slot) const {
  if (tiling_.lanes == 1 && rows_ == 1) return Expr(0);
  if (tiling_.lanes == 1) return Expr(row_);
  return rows_ == 1 ? te::substitute(slot, row_, Expr(0)) : slot;
}

Stmt LoopBuilder::update(const std::vector<Expr>& source, const std::vector<te::Buffer>& sums,
                         const std::vector<Expr>& held, const std::vector<std::vector<Expr>>& slots) {
  const te::Reduction& reduction = *tensor_.reduction;
  std::vector<Expr> values;
  for (size_t i = 0; i < sums.size(); ++i) {
    Expr value = reduction.combine[i];
    for (size_t k = 0; k < sums.size(); ++k) {
      value = te::substitute(value, reduction.left[k], held[k]);
      value = te::substitute(value, reduction.right[k], at_point(loads(source[k])));
    }
    values.push_back(value);
  }
  if (sums.size() == 1) return stores(sums, slots, values);
  std::vector<te::Var> next;
  std::vector<Expr> taken;
  for (const te::Buffer& sum : sums) {
    next.push_back(te::make_var("next", sum->dtype));
    taken.emplace_back(next.back());
  }
  Stmt body = stores(sums, slots, taken);
  for (size_t i = sums.size(); i-- > 0;) body = te::make_let(next[i], values[i], body);
  return body;
}

Stmt LoopBuilder::reduce_tile() {
  if (!tiling_.by_one) return reduce();
  const int64_t rows = rows_;
  is_whole_ = true;
  const Stmt whole = each_block(reduce());
  is_whole_ = false;
  vectors_ = 1;
  if (tiling_.blocks % 2 == 0) rows_ *= 2;
  const Expr begin = tile_begin() + Expr(vector_) * Expr(static_cast<int64_t>(tiling_.lanes));
  const Stmt rest = te::make_for(vector_, Expr(0), Expr(tiling_.vectors), ForKind::kSerial,
                                 te::make_if(begin < count_along_vectors(), each_block(reduce())));
  vectors_ = tiling_.vectors;
  rows_ = rows;
  const Expr next = tile_begin() + Expr(tiling_.vectors * tiling_.lanes);
  return te::make_if(next <= count_along_vectors(), whole, rest);
}

Stmt LoopBuilder::each_block(const Stmt& body) const {
  const int64_t count = tiling_.blocks * tiling_.block / rows_;
  return tiling_.blocks > 1 ? te::make_for(block_, Expr(0), Expr(count), ForKind::kSerial, body) : body;
}

/// Of a tile as large as it has to be for a core to start a sum while others are not done; less than a block.
int64_t LoopBuilder::fewest_rows() const {
  constexpr int64_t kEnoughSums = 8;
  int64_t rows = 1;
  while (rows * 2 < tiling_.block && rows * tiling_.columns * tiling_.vectors < kEnoughSums) rows *= 2;
  return rows;
}

Stmt LoopBuilder::reduce_ragged() {
  const Expr first = Expr(outer_[*tiling_.block_axis]) * Expr(tiling_.block),
             &end = extent(*tiling_.block_axis);
  const Stmt whole = reduce_tile();
  std::vector<Stmt> parts;
  rows_ = fewest_rows();
  const int64_t most = rows_;
  for (; tiling_.block > 1 && rows_ > 0; rows_ /= 2) {
    // Where larger ones have ended: one of the places that a block has, as the loop over them shows. Which
    // one it is helps no proof: a choice of numbers is no fact, as an equation would be, which proofs get
    // lost in.
    const te::Var at = te::make_var("at");
    const Expr begin = te::floordiv(end - first, Expr(rows_ * 2)) * Expr(2);
    const Expr is_here = te::select(Expr(at) == begin, Expr(1), Expr(0));
    rows_begin_ = first + Expr(at) * Expr(rows_);
    const Stmt part = te::make_if(rows_begin_ + Expr(rows_) <= end, reduce_tile());
    parts.push_back(te::make_for(at, Expr(0), Expr(tiling_.block / rows_), ForKind::kSerial,
                                 rows_ == most ? part : te::make_if(is_here != Expr(0), part)));
  }
  rows_begin_ = Expr();
  rows_ = tiling_.block;
  return te::make_if(first + Expr(tiling_.block) <= end, whole, te::make_seq(std::move(parts)));
}

}  // namespace tensormill::plan
