#include "compiler/build/moves/places.h"

#include "runtime/base/error.h"

namespace tensormill::build {

using V = ir::ValueId;

V ordered_places(OpBuilder& builder, V x, int64_t axis, const ir::SymInt& k, bool is_ascending) {
  // Kernels of sorted rows look at all elements of a row for each.
  constexpr int64_t kSortedByKernel = 256;
  const ir::SymInt& extent = builder.type(x).shape[static_cast<size_t>(axis)];
  const bool by_host = !is_proven(ir::Relation::kLessEqual, extent, kSortedByKernel);
  return builder.add(by_host ? "sort_positions" : "arg_top_k", {x},
                     {{"axis", axis}, {"k", k}, {"largest", int64_t{!is_ascending}}});
}

V orderable(OpBuilder& builder, V x) {
  const DType dtype = builder.type(x).dtype;
  const bool is_short = !is_float(dtype) && dtype_info(dtype).bits < 32;
  return dtype == DType::kBool || is_short ? Compose(builder).cast(x, DType::kInt32) : x;
}

V batched_gather(OpBuilder& builder, V x, V indices, int64_t axis, int64_t batch) {
  Compose c(builder);
  if (batch == 0) return c.gather(x, indices, axis);
  if (batch > axis)
    builder.invalid("batch_dims is " + std::to_string(batch) + ", the axis " + std::to_string(axis));
  if (batch >= 0 && batch < axis && batch <= builder.rank(indices)) {
    // The axis goes behind the batch, and what stood between them behind it, from where it is brought back.
    const auto axes = static_cast<int64_t>(builder.rank(x)), own = builder.rank(indices) - batch;
    std::vector<int64_t> forth, back;
    const auto count = [](std::vector<int64_t>& to, int64_t from, int64_t behind) {
      for (int64_t d = from; d < behind; ++d) to.push_back(d);
    };
    count(forth, 0, batch);
    forth.push_back(axis);
    count(forth, batch, axis);
    count(forth, axis + 1, axes);
    count(back, 0, batch);
    count(back, batch + own, own + axis);
    count(back, batch, batch + own);
    count(back, own + axis, own + axes - 1);
    return c.transpose(batched_gather(builder, c.transpose(x, forth), indices, batch, batch), back);
  }
  if (batch < 0 || batch > builder.rank(indices)) builder.invalid("batch_dims is " + std::to_string(batch));
  const ir::SymShape shape = builder.type(x).shape, places = builder.type(indices).shape;
  const auto split = static_cast<std::ptrdiff_t>(batch);
  const ir::SymInt groups = num_elements(ir::SymShape(shape.begin(), shape.begin() + split));
  const ir::SymInt& extent = shape[static_cast<size_t>(batch)];
  ir::SymShape merged(shape.begin() + split + 1, shape.end());
  merged.insert(merged.begin(), groups * extent);
  const ir::SymInt each = num_elements(ir::SymShape(places.begin() + split, places.end()));
  const V flat = c.reshape(c.cast(indices, DType::kInt64), {groups, each});
  const V moved = c.add(flat, c.mul(c.iota(groups, {groups, 1}), c.dims({extent}, {1})));
  ir::SymShape result(places);
  result.insert(result.end(), shape.begin() + split + 1, shape.end());
  return c.reshape(c.gather(c.reshape(x, merged), c.reshape(moved, {groups * each}), 0), result);
}

V flat_places(OpBuilder& builder, V indices, const ir::SymShape& shape, const std::vector<int64_t>& axes) {
  Compose c(builder);
  ir::SymShape own = builder.type(indices).shape;
  own.pop_back();
  if (axes.empty()) return c.filled(DType::kInt64, own, 0);
  const int64_t last = builder.rank(indices) - 1;
  const V whole = c.cast(indices, DType::kInt64), zero = c.ints({0}, {});
  V place = ir::kAbsent, is_inside = ir::kAbsent;
  ir::SymInt count = 1;
  for (const int64_t axis : axes) {
    const ir::SymInt& most = shape[static_cast<size_t>(axis)];
    const V part = c.squeeze(c.slice(whole, last, axis, 1), last), extent = c.dims({most}, {});
    const V fits = c.binary("and", c.binary("greater_equal", part, zero), c.binary("less", part, extent));
    place = place == ir::kAbsent ? part : c.add(c.mul(place, extent), part);
    is_inside = is_inside == ir::kAbsent ? fits : c.binary("and", is_inside, fits);
    count *= most;
  }
  return c.where(is_inside, place, c.dims({count}, {}));
}

V gather_nd(OpBuilder& builder, V x, V indices) {
  Compose c(builder);
  const ir::SymShape shape = builder.type(x).shape, places = builder.type(indices).shape;
  if (places.empty() || !places.back().is_constant())
    builder.unsupported("indices", "their depth is a free dim");
  const int64_t depth = places.back().hint(), rank = builder.rank(x);
  if (depth < 0 || depth > rank)
    builder.invalid("indices of depth " + std::to_string(depth) + " for rank " + std::to_string(rank));
  if (depth == 0) builder.unsupported("indices", "indices of no axis are not implemented");
  ir::SymShape merged(shape.begin() + depth, shape.end());
  merged.insert(merged.begin(), num_elements(ir::SymShape(shape.begin(), shape.begin() + depth)));
  return c.gather(c.reshape(x, merged), flat_places(builder, indices, shape, c.count_to(depth)), 0);
}

V scattered(OpBuilder& builder, V filled, V places, V rows, const char* reduction) {
  constexpr int64_t kMostByKernel = 256;
  Compose c(builder);
  ir::SymShape along(builder.type(rows).shape.size(), 1);
  along[0] = builder.type(rows).shape[0];
  const V indices = c.expand(c.reshape(places, along), builder.type(rows).shape);
  // A kernel looks at every update for every element, of which there is one at least.
  const ir::SymInt& count = builder.type(rows).shape[0];
  const bool by_host =
      !is_proven(ir::Relation::kLessEqual, count, kMostByKernel) || !is_proven(ir::Relation::kLess, 0, count);
  return builder.add(by_host ? "scatter" : "scatter_elements", {filled, indices, rows},
                     {{"axis", int64_t{0}}, {"reduction", std::string(reduction)}});
}

V scatter_nd(OpBuilder& builder, V x, V indices, V updates, const char* reduction) {
  Compose c(builder);
  const ir::SymShape places = c.shape(indices), shape = c.shape(x);
  if (places.empty() || !places.back().is_constant())
    builder.unsupported("indices", "their depth is a free dim");
  const int64_t depth = places.back().hint();
  if (depth < 1 || depth > static_cast<int64_t>(shape.size()))
    builder.invalid("indices of depth " + std::to_string(depth) + " for shape " + to_string(shape));
  ir::SymShape rows(shape.begin() + depth, shape.end()), table = rows;
  rows.insert(rows.begin(), num_elements(ir::SymShape(places.begin(), places.end() - 1)));
  table.insert(table.begin(), num_elements(ir::SymShape(shape.begin(), shape.begin() + depth)));
  const V flat = c.reshape(flat_places(builder, indices, shape, c.count_to(depth)), {rows[0]});
  const V whole = scattered(builder, c.reshape(x, table), flat, c.reshape(updates, rows), reduction);
  return c.reshape(whole, shape);
}

V on_diagonal(OpBuilder& builder, const ir::SymShape& shape, int64_t offset) {
  Compose c(builder);
  const size_t rank = shape.size();
  V rows = c.positions(shape[rank - 2], rank - 2, rank);
  if (offset != 0) rows = c.add(rows, c.ints({offset}, {}));
  return c.binary("equal", rows, c.positions(shape[rank - 1], rank - 1, rank));
}

V reversed_sequences(OpBuilder& builder, V x, V given, int64_t time, int64_t batch) {
  Compose c(builder);
  const ir::SymShape shape = builder.type(x).shape;
  time = builder.normalize_axis(time, builder.rank(x));
  batch = builder.normalize_axis(batch, builder.rank(x));
  if (time == batch) builder.invalid("seq_dim and batch_dim are the same");
  const auto at = static_cast<size_t>(time), rows = static_cast<size_t>(batch);
  ir::SymShape along(shape.size(), 1);
  along[rows] = shape[rows];
  const V lengths = c.reshape(c.cast(given, DType::kInt64), along);
  const V place = c.positions(shape[at], at, shape.size());
  const V turned = c.sub(c.minus(lengths, 1), place);
  const V chosen = c.where(c.binary("less", place, lengths), turned, place);
  return c.gather_elements(x, c.expand(chosen, shape), time);
}

}  // namespace tensormill::build
