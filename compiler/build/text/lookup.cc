#include "compiler/build/text/lookup.h"

#include <algorithm>
#include <string>

#include "compiler/build/compose.h"
#include "compiler/build/text/text.h"
#include "runtime/base/text.h"

namespace tensormill::build {

namespace {

using V = ir::ValueId;

/// A table of places by key, where keys lie so close together that it is short; empty elsewhere.
std::vector<int64_t> table_of(const std::vector<int64_t>& keys, int64_t& least) {
  constexpr uint64_t kLongestTable = 1 << 16, kTimesTheKeys = 16;
  if (keys.empty()) return {};
  const auto [low, high] = std::minmax_element(keys.begin(), keys.end());
  const uint64_t span = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
  if (span >= kLongestTable || span >= kTimesTheKeys * keys.size()) return {};
  least = *low;
  std::vector<int64_t> table(span + 1, static_cast<int64_t>(keys.size()));
  // The first of equal keys is written last.
  for (size_t i = keys.size(); i-- > 0;)
    table[static_cast<size_t>(keys[i] - least)] = static_cast<int64_t>(i);
  return table;
}

V found(OpBuilder& builder, V x, const Tensor& keys) {
  if (is_text(builder, x)) {
    const Texts texts({kString, keys.shape(), keys.data()});
    std::vector<std::string> strings;
    for (int64_t i = 0; i < texts.count(); ++i) strings.emplace_back(texts[i]);
    return found_string(builder, x, strings);
  }
  std::vector<int64_t> integers;
  for (int64_t i = 0; i < keys.num_elements(); ++i) integers.push_back(keys.element_as_int(i));
  return found_integer(builder, x, integers);
}

}  // namespace

V found_integer(OpBuilder& builder, V x, const std::vector<int64_t>& keys) {
  Compose c(builder);
  const auto count = static_cast<int64_t>(keys.size());
  int64_t least = 0;
  const V key = c.cast(x, DType::kInt64);
  if (const std::vector<int64_t> table = table_of(keys, least); !table.empty()) {
    const auto span = static_cast<int64_t>(table.size());
    const V inside = c.binary("and", c.binary("greater_equal", key, c.ints({least}, {})),
                              c.binary("less_equal", key, c.ints({least + span - 1}, {})));
    const V row = c.where(inside, c.sub(key, c.ints({least}, {})), c.ints({0}, {}));
    return c.where(inside, c.gather(c.ints(table, {span}), row, 0), c.ints({count}, {}));
  }
  if (keys.empty()) return c.filled(DType::kInt64, c.shape(x), 0);
  const int64_t axis = builder.rank(x);
  const V equal = c.cast(c.binary("equal", c.unsqueeze(key, axis), c.ints(keys, {count})), DType::kInt32);
  const V known = c.cast(c.reduce("reduce_max", equal, {axis}, false), DType::kBool);
  return c.where(known, c.arg_max(equal, axis, false), c.ints({count}, {}));
}

V found_string(OpBuilder& builder, V x, const std::vector<std::string>& keys) {
  const auto count = static_cast<int64_t>(keys.size());
  const SortedTexts sorted = sorted_texts(keys);
  std::vector<int64_t> first(sorted.keys.size() + 1, count);
  for (size_t i = keys.size(); i-- > 0;)
    first[static_cast<size_t>(sorted.place[i])] = static_cast<int64_t>(i);
  Compose c(builder);
  return c.gather(c.ints(first, {static_cast<int64_t>(first.size())}), found_text(builder, x, sorted), 0);
}

V looked_up(OpBuilder& builder, V x, const Tensor& keys, V values, V otherwise) {
  Compose c(builder);
  const bool has_texts = keys.dtype() == kString;
  if (has_texts != is_text(builder, x) || is_float(keys.dtype()) || is_float(c.dtype(x)))
    builder.invalid("keys of type " + std::string(dtype_name(keys.dtype())) +
                    " are looked up in a table of " + std::string(dtype_name(c.dtype(x))));
  const ir::SymShape own = model_shape(builder, values);
  const ir::SymShape row(own.empty() ? own.end() : own.begin() + 1, own.end());
  const ir::SymShape count = shown_shape(keys.dtype(), ir::SymShape(keys.shape()));
  if (c.dtype(values) != c.dtype(otherwise) || own.empty() || count.size() != 1 ||
      !ir::demand(ir::Relation::kEqual, own[0], count[0]) ||
      num_elements(model_shape(builder, otherwise)) != num_elements(row))
    builder.invalid("a table of values " + ir::to_string(builder.type(values)) + " for keys " +
                    ir::to_string(ir::ValueType{keys.dtype(), keys.shape()}) + ", otherwise " +
                    ir::to_string(builder.type(otherwise)));
  const std::vector<V> both = of_one_width(builder, {values, otherwise});
  ir::SymShape last = row;
  last.insert(last.begin(), 1);
  if (is_text(builder, values)) last.push_back(c.shape(both[0]).back());
  return c.gather(c.concat({both[0], c.reshape(both[1], last)}, 0), found(builder, x, keys), 0);
}

}  // namespace tensormill::build
