#include "compiler/build/text/grams.h"

#include <algorithm>

#include "compiler/build/compose.h"

namespace tensormill::build {

using V = ir::ValueId;

namespace {

/// Which columns hold parts, of their counts.
TextParts with_places(OpBuilder& builder, V parts, V counts) {
  Compose c(builder);
  TextParts made{parts, counts, ir::kAbsent, c.shape(parts)[0], c.shape(parts)[1]};
  const V column = c.expand(c.positions(made.most, 1, 2), {made.rows, made.most});
  made.is_there = c.binary("less", column, c.unsqueeze(counts, 1));
  return made;
}

}  // namespace

PlacedGrams placed_grams(OpBuilder& builder, V places, const std::vector<V>& counts) {
  Compose c(builder);
  const V zero = c.number(places, 0);
  PlacedGrams made{c.number(places, static_cast<double>(counts.size())), zero};
  V rest = places;
  for (size_t i = 0; i < counts.size(); ++i) {
    const V is_here =
        c.binary("and", c.binary("greater_equal", rest, zero), c.binary("less", rest, counts[i]));
    made.which = c.where(is_here, c.number(places, static_cast<double>(i)), made.which);
    made.index = c.where(is_here, rest, made.index);
    rest = c.sub(rest, counts[i]);
  }
  return made;
}

V joined_rows(OpBuilder& builder, V table, V counts, const std::string& separator) {
  return builder.add("join_row", {table, counts}, {{"separator", separator}});
}

TextParts letter_parts(OpBuilder& builder, V x) {
  const std::vector<V> made = builder.add_many("points_of_text", {x});
  return with_places(builder, builder.add("letters_of_points", {made[0]}), made[1]);
}

TextParts gram_parts(OpBuilder& builder, const TextParts& parts, const std::vector<int64_t>& lengths,
                     const std::string& separator) {
  Compose c(builder);
  if (lengths.empty()) builder.invalid("n-grams of no length");
  std::vector<V> counts, columns;
  V all = c.filled(DType::kInt64, {parts.rows}, 0);
  ir::SymInt most = 0;
  int64_t longest = 0;
  for (const int64_t length : lengths) {
    if (length < 1) builder.invalid("n-grams of " + std::to_string(length) + " parts");
    const V count = c.plus(parts.counts, static_cast<double>(1 - length));
    counts.push_back(c.binary("max", count, c.number(count, 0)));
    columns.push_back(c.unsqueeze(counts.back(), 1));
    all = c.add(all, counts.back());
    most = most + max(parts.most - (length - 1), 0);
    longest = std::max(longest, length);
  }
  const ir::SymShape places{parts.rows, most};
  const PlacedGrams grams = placed_grams(builder, c.expand(c.positions(most, 1, 2), places), columns);
  // Behind the last n-gram stands one of no parts.
  std::vector<int64_t> sizes = lengths;
  sizes.push_back(0);
  const V size = c.gather(c.ints(sizes, {static_cast<int64_t>(sizes.size())}), grams.which, 0);
  const V last = c.dims({parts.most - 1}, {});
  const V at = c.binary("min", c.add(c.unsqueeze(grams.index, 2), c.positions(longest, 2, 3)), last);
  const V row = c.mul(c.positions(parts.rows, 0, 3), c.dims({parts.most}, {}));
  const ir::SymInt count = parts.rows * most;
  MovedTexts texts(builder);
  const V pool = c.reshape(texts.positions_of(parts.parts), {parts.rows * parts.most});
  const V table = texts.texts_at(c.gather(pool, c.reshape(c.add(row, at), {count, longest}), 0));
  const V joined = joined_rows(builder, table, c.reshape(size, {count}), separator);
  return with_places(builder, reshaped_text(builder, joined, places), all);
}

}  // namespace tensormill::build
