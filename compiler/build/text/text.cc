#include "compiler/build/text/text.h"

#include <algorithm>
#include <map>

#include "compiler/build/compose.h"
#include "runtime/base/text.h"

namespace tensormill::build {

using V = ir::ValueId;

bool is_text(const OpBuilder& builder, V value) { return builder.type(value).dtype == kString; }

ir::SymShape model_shape(const OpBuilder& builder, V value) {
  return shown_shape(builder.type(value).dtype, builder.type(value).shape);
}

std::vector<V> of_one_width(OpBuilder& builder, std::vector<V> values) {
  int64_t width = 1;
  for (const V x : values)
    width = is_text(builder, x) ? std::max<int64_t>(width, builder.type(x).shape.back()) : width;
  for (V& x : values) {
    const ir::SymShape shape = builder.type(x).shape;
    if (!is_text(builder, x) || shape.back() == width) continue;
    std::vector<int64_t> pads(2 * shape.size(), 0);
    pads.back() = width - shape.back();
    x = builder.add("pad", {x}, {{"pads", pads}, {"mode", std::string("constant")}, {"value", 0.0}});
  }
  return values;
}

V text_constant(OpBuilder& builder, const std::vector<std::string>& texts) {
  return text_constant(builder, {static_cast<int64_t>(texts.size())}, texts);
}

V text_constant(OpBuilder& builder, Shape shape, const std::vector<std::string>& texts) {
  return builder.constant(text_tensor(std::move(shape), texts));
}

V reshaped_text(OpBuilder& builder, V x, ir::SymShape to) {
  to.push_back(builder.type(x).shape.back());
  return builder.reshape(x, std::move(to));
}

V expanded_text(OpBuilder& builder, V x, const ir::SymShape& to) {
  if (model_shape(builder, x) == to) return x;
  MovedTexts moved(builder);
  const V positions = moved.positions_of(x);
  return moved.texts_at(Compose(builder).expand(positions, to));
}

std::pair<V, V> broadcast_texts(OpBuilder& builder, V a, V b) {
  const ir::SymShape shape = broadcast_shapes(model_shape(builder, a), model_shape(builder, b));
  return {expanded_text(builder, a, shape), expanded_text(builder, b, shape)};
}

V text_of_numbers(OpBuilder& builder, V x) {
  if (is_text(builder, x)) return x;
  const DType dtype = builder.type(x).dtype;
  if (is_narrow(dtype)) x = Compose(builder).cast(x, is_float(dtype) ? DType::kFloat32 : DType::kInt32);
  return builder.add("text_from_numbers", {x});
}

V numbers_of_text(OpBuilder& builder, V x, DType to) {
  const DType read = !is_narrow(to) ? to : is_float(to) ? DType::kFloat32 : DType::kInt32;
  const V numbers = builder.add("numbers_from_text", {x}, {{"to", std::string(dtype_name(read))}});
  return Compose(builder).cast(numbers, to);
}

V hashed_text(OpBuilder& builder, V x, int64_t buckets, const std::vector<int64_t>& key) {
  ir::Attrs attrs{{"buckets", buckets}, {"how", std::string(key.empty() ? "farm" : "sip")}};
  if (!key.empty()) attrs.set("key", key);
  return builder.add("hash_text", {x}, attrs);
}

SortedTexts sorted_texts(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> order;
  for (const std::string& text : texts) order.emplace(text, 0);
  SortedTexts sorted;
  for (auto& [text, place] : order) {
    place = static_cast<int64_t>(sorted.keys.size());
    sorted.keys.push_back(text);
  }
  for (const std::string& text : texts) sorted.place.push_back(order.at(text));
  return sorted;
}

V found_text(OpBuilder& builder, V x, const SortedTexts& texts) {
  return builder.add("find_text", {x, text_constant(builder, texts.keys)});
}

TextParts split_texts(OpBuilder& builder, V x, const std::string& delimiter, int64_t limit,
                      const std::string& space) {
  Compose c(builder);
  // What is behind a string's parts is told by their number: the table is as wide for all.
  ir::Attrs attrs{
      {"delimiter", delimiter}, {"maxsplit", limit}, {"axis", int64_t{1}}, {"keeps_all", int64_t{1}}};
  if (!space.empty()) attrs.set("space", space);
  const std::vector<V> made = builder.add_many("split_text", {x}, attrs);
  TextParts split{made[0], made[1], ir::kAbsent, c.shape(made[0])[0], c.shape(made[0])[1]};
  const V column = c.expand(c.positions(split.most, 1, 2), {split.rows, split.most});
  split.is_there = c.binary("less", column, c.unsqueeze(split.counts, 1));
  return split;
}

V of_columns(OpBuilder& builder, V table, int64_t width, V otherwise) {
  Compose c(builder);
  const ir::SymShape shape = c.shape(table);
  const int64_t own = shape[1];
  if (width <= own) return c.slice(table, 1, 0, width);
  return c.concat({table, c.expand(otherwise, {shape[0], width - own})}, 1);
}

MovedTexts::MovedTexts(OpBuilder& builder, const std::vector<std::string>& first) : builder_(builder) {
  if (first.empty()) return;
  texts_.push_back(text_constant(builder, first));
  count_ = static_cast<int64_t>(first.size());
}

V MovedTexts::positions_of(V texts) {
  const ir::SymShape shape = model_shape(builder_, texts);
  const ir::SymInt own = num_elements(shape);
  if (own.is_constant() && own.hint() > kMostMoved)
    builder_.unsupported("operand",
                         "more than " + std::to_string(kMostMoved) + " strings are not implemented");
  Compose c(builder_);
  V positions = c.iota(own, shape);
  if (!(count_.is_constant() && count_.hint() == 0)) positions = c.add(positions, c.dims({count_}, {}));
  texts_.push_back(texts);
  count_ += own;
  return positions;
}

V MovedTexts::texts_at(V positions) {
  Compose c(builder_);
  if (pool_ == ir::kAbsent) {
    std::vector<V> rows;
    for (const V x : of_one_width(builder_, texts_))
      rows.push_back(reshaped_text(builder_, x, {num_elements(model_shape(builder_, x))}));
    pool_ = rows.size() == 1 ? rows[0] : c.concat(rows, 0);
  }
  const ir::SymShape at = c.shape(positions);
  const bool is_empty = at.is_constant() && num_elements(at).hint() == 0;
  if (!is_empty) return c.gather(pool_, positions, 0);
  ir::SymShape empty = at;
  empty.push_back(c.shape(pool_).back());
  return builder_.constant(Tensor(kString, empty.hints()));
}

}  // namespace tensormill::build
