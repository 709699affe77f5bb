// Of LoopBuilder: the loops of reductions.
#include "compiler/plan/generic_loop_builder.h"

#include <algorithm>

#include "compiler/schedule/conditions.h"
#include "compiler/te/linear.h"
#include "compiler/te/op_class.h"
#include "compiler/te/simplify.h"

namespace tensormill::plan {

using schedule::both;
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
  Stmt all = te::make_seq({each_point(stores(sums, slots, identities), false), body, results_of(held)});
  for (size_t i = sums.size(); i-- > 0;) all = te::make_allocate(sums[i], all);
  return all;
}

Stmt LoopBuilder::stores_of(const std::vector<Expr>& values) {
  const te::BoundsContext before = context_;
  if (nest_.epilogue && nest_.epilogue->where) context_.assume(nest_.epilogue->where);
  Stmt results = stores(outputs_, output_index(), finished(values));
  context_ = before;
  return results;
}

Stmt LoopBuilder::results_of(const std::vector<Expr>& held) {
  const auto each = [this](const Stmt& results) {
    return tiling_.by_one ? each_point(results, !is_whole_) : each_output(results);
  };
  const Stmt results = stores_of(held);
  if (!nest_.epilogue || !nest_.epilogue->where) return each(results);
  // Asked once where all elements of a tile are stored: masked stores take several times as long.
  const Expr where = at_point(nest_.epilogue->where);
  Expr all = where;
  const std::pair<te::Var, int64_t> points[] = {
      {lane_, tiling_.lanes}, {vector_, vectors_}, {column_, tiling_.columns}, {row_, rows_}};
  for (const auto& [var, count] : points) {
    if (all) all = for_all(all, var, count);
  }
  const Stmt some = each(te::make_if(where, results));
  return all ? te::make_if(all, each(results), some) : some;
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
  TapSum sum{update({taps.value}, sums, held, slots), {}, 0};
  context_ = before;
  for (const Expr& each : taps.conditions) {
    TapCondition condition{at_point(each), Expr(), 0};
    condition.of_rows = for_all(condition.of_row, row_, rows_);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (te::mentions(each, axes[i].var)) condition.depth = i + 1;
    }
    sum.depth = std::max(sum.depth, condition.depth);
    sum.conditions.push_back(condition);
  }
  return taps_within(sum, 0, Expr());
}

/// The loops from reduced axis `depth` on, around which those before it stand. What that leaves to ask about
/// is asked there, for all rows of a block at once; `own`: what must still be asked for each row by itself.
Stmt LoopBuilder::taps_within(const TapSum& sum, size_t depth, const Expr& own) const {
  const std::vector<te::Axis>& axes = tensor_.reduction->axes;
  Expr all, of_rows, of_row;
  for (const TapCondition& each : sum.conditions) {
    if (each.depth != depth) continue;
    if (!te::mentions(each.of_row, row_)) {
      all = both(all, each.of_row);
      continue;
    }
    of_row = both(of_row, each.of_row);
    of_rows = both(of_rows, each.of_rows ? each.of_rows : te::bool_imm(false));
  }
  const auto inner = [&](const Expr& of_each) {
    if (depth == sum.depth) return loops_of(depth, axes.size(), each_point(sum.body, !is_whole_, of_each));
    const Stmt asked = te::make_for(axes[depth].var, Expr(0), axes[depth].extent, ForKind::kSerial,
                                    taps_within(sum, depth + 1, of_each));
    // What is done for one tap alone takes no longer than to ask whether it counts.
    const bool is_short =
        sum.depth == axes.size() && !of_each && (depth > 0 || rows_ == tiling_.block) && rows_ > 1;
    const Expr inside = is_short ? all_count(sum, depth) : Expr();
    return inside ? te::make_if(inside, unrolled(depth, each_point(sum.body, !is_whole_)), asked) : asked;
  };
  Stmt result = of_row ? te::make_if(of_rows, inner(own), inner(both(own, of_row))) : inner(own);
  return all ? te::make_if(all, result) : result;
}

/// A condition under which all taps count that the loops from reduced axis `depth` on have, for all rows;
/// null where none is known.
Expr LoopBuilder::all_count(const TapSum& sum, size_t depth) const {
  Expr all;
  for (const TapCondition& each : sum.conditions) {
    if (each.depth <= depth) continue;
    Expr condition = each.of_rows;
    for (size_t i = depth; i < tensor_.reduction->axes.size(); ++i) {
      const te::Axis& axis = tensor_.reduction->axes[i];
      const int64_t* extent = te::as_int(axis.extent);
      if (condition && te::mentions(condition, axis.var))
        condition = extent != nullptr ? for_all(condition, axis.var, *extent) : Expr();
    }
    if (!condition) return Expr();
    all = both(all, condition);
  }
  return all;
}

/// The loops of the reduced axes from `begin` on, the inner ones unrolled while that is not much: what
/// neighbouring taps read is then loaded once.
Stmt LoopBuilder::unrolled(size_t begin, Stmt body) const {
  constexpr int64_t kMostPoints = 256;
  const std::vector<te::Axis>& axes = tensor_.reduction->axes;
  int64_t points = rows_ * tiling_.columns * vectors_;
  for (size_t i = axes.size(); i-- > begin;) {
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
  const Stmt results = stores_of({total});
  const Expr where = nest_.epilogue ? nest_.epilogue->where : Expr();
  body = te::make_seq({each(te::make_store(sum, {slot}, reduction.identity[0])), body,
                       rows(where ? te::make_if(at_point(where), results) : results)});
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
      value = te::substitute(value, reduction.right[k], at_point(reads_.run(source[k])));
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
