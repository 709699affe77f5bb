/// equal_text, match_text, find_text, join_text, split_text, normalize_text, text_from_numbers,
/// numbers_from_text, change_text, replace_text, text_length, part_of_text, hash_text, join_row,
/// points_of_text, letters_of_points: strings, by host steps.
#include "runtime/host_ops/text_steps.h"

#include <algorithm>
#include <array>

#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/type_rules.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/pattern.h"
#include "runtime/host_ops/text_changes.h"
#include "runtime/host_ops/text_rows.h"

namespace tensormill::ops::text_step_ops {

std::vector<ir::OpDef> family();

namespace {

/// Input `index`, which holds strings.
const ir::ValueType& text_input(const ir::InferContext& context, size_t index) {
  const ir::ValueType& type = input_of(context, index, set_of(kString));
  if (type.shape.empty() || type.shape.back() < 1) fail("strings of shape " + to_string(type.shape));
  return type;
}

ir::SymShape strings_shape(const ir::ValueType& type) { return shown_shape(type.dtype, type.shape); }

/// The shape of inputs 0 and 1, which is the same.
ir::SymShape common_shape(const ir::InferContext& context) {
  const ir::SymShape a = strings_shape(text_input(context, 0)), b = strings_shape(text_input(context, 1));
  if (a != b) fail("strings of shapes " + to_string(a) + " and " + to_string(b));
  return a;
}

ir::ValueType text_type(ir::SymShape shape, const ir::SymInt& width) {
  shape.push_back(width);
  return made_type(kString, std::move(shape));
}

std::vector<ir::ValueType> infer_from_numbers(const ir::InferContext& context) {
  return {text_type(input_of(context, 0, kNumeric | kBools).shape, host_ops::kNumberWidth)};
}

std::vector<ir::ValueType> infer_to_numbers(const ir::InferContext& context) {
  const std::string name = attr_string(context.attrs, "to", "");
  const std::optional<DType> to = dtype_from_name(name);
  if (!to || (set_of(*to) & kAnyType) == 0) fail("attribute to is \"" + name + "\"");
  return {made_type(*to, strings_shape(text_input(context, 0)))};
}

std::vector<ir::ValueType> infer_equal(const ir::InferContext& context) {
  return {made_type(DType::kBool, common_shape(context))};
}

std::vector<ir::ValueType> infer_match(const ir::InferContext& context) {
  static_cast<void>(host_ops::Pattern(attr_string(context.attrs, "pattern", "")));
  return {made_type(DType::kBool, strings_shape(text_input(context, 0)))};
}

std::vector<ir::ValueType> infer_find(const ir::InferContext& context) {
  if (strings_shape(text_input(context, 1)).size() != 1) fail("keys of another rank than 1");
  return {made_type(DType::kInt64, strings_shape(text_input(context, 0)))};
}

std::vector<ir::ValueType> infer_join(const ir::InferContext& context) {
  const ir::SymShape shape = common_shape(context);
  return {text_type(shape, text_input(context, 0).shape.back() + text_input(context, 1).shape.back())};
}

/// Attribute axis is the last one of the strings; what is done with data extents needs no types then.
void check_axis(const ir::InferContext& context, const ir::SymShape& strings) {
  const int64_t axis = attr_int(context.attrs, "axis");
  if (axis != static_cast<int64_t>(strings.size()) - 1) fail("attribute axis is " + std::to_string(axis));
}

std::vector<ir::ValueType> infer_split(const ir::InferContext& context) {
  const ir::ValueType& x = text_input(context, 0);
  const auto delimiter = static_cast<int64_t>(attr_string(context.attrs, "delimiter", "").size());
  const ir::SymShape shape = strings_shape(x);
  ir::SymShape parts = shape;
  parts.push_back(host_ops::max_parts(x.shape.back(), delimiter, attr_int(context.attrs, "maxsplit")));
  check_axis(context, parts);
  return {text_type(parts, x.shape.back()), made_type(DType::kInt64, shape), made_type(DType::kInt64, {1})};
}

std::vector<ir::ValueType> infer_normalize(const ir::InferContext& context) {
  const ir::ValueType& x = text_input(context, 0);
  ir::SymShape shape = strings_shape(x);
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape[0] != 1))
    fail("strings of shape " + to_string(shape) + ", expected [c] or [1,c]");
  if (strings_shape(text_input(context, 1)).size() != 1) fail("stop words of another rank than 1");
  check_axis(context, shape);
  static_cast<void>(attr_int(context.attrs, "case"));
  static_cast<void>(attr_int(context.attrs, "case_sensitive"));
  shape.back() = max(shape.back(), 1);
  return {text_type(shape, x.shape.back()), made_type(DType::kInt64, {1})};
}

std::vector<ir::ValueType> infer_tokenize(const ir::InferContext& context) {
  const ir::ValueType& x = text_input(context, 0);
  if (strings_shape(text_input(context, 1)).size() != 1) fail("patterns of another rank than 1");
  ir::SymShape tokens = strings_shape(x);
  tokens.push_back(host_ops::max_tokens(x.shape.back(), attr_int(context.attrs, "mark") != 0));
  check_axis(context, tokens);
  const auto pad = static_cast<int64_t>(attr_string(context.attrs, "pad", "").size());
  static_cast<void>(attr_int(context.attrs, "least"));
  return {text_type(tokens, max(x.shape.back(), pad)), made_type(DType::kInt64, {1})};
}

std::vector<ir::ValueType> infer_change(const ir::InferContext& context) {
  constexpr std::array<std::string_view, 5> kChanges = {"lower", "upper", "strip", "ascii_lower",
                                                        "ascii_upper"};
  const std::string how = attr_string(context.attrs, "how", "");
  if (std::find(kChanges.begin(), kChanges.end(), how) == kChanges.end())
    fail("attribute how is \"" + how + "\"");
  const ir::ValueType& x = text_input(context, 0);
  return {text_type(strings_shape(x), x.shape.back())};
}

std::vector<ir::ValueType> infer_replace(const ir::InferContext& context) {
  const std::string rewrite = attr_string(context.attrs, "rewrite", "");
  static_cast<void>(host_ops::Pattern(attr_string(context.attrs, "pattern", "")).replaced("", rewrite, true));
  const host_ops::RewriteParts parts = host_ops::parts_of_rewrite(rewrite);
  const ir::ValueType& x = text_input(context, 0);
  const ir::SymInt width = x.shape.back();
  // Between any two bytes there may be a match of nothing.
  const ir::SymInt matches = attr_int(context.attrs, "all") != 0 ? width + 1 : ir::SymInt(1);
  return {text_type(strings_shape(x), width * std::max<int64_t>(parts.groups, 1) + matches * parts.bytes)};
}

std::vector<ir::ValueType> infer_measure(const ir::InferContext& context) {
  return {made_type(DType::kInt64, strings_shape(text_input(context, 0)))};
}

std::vector<ir::ValueType> infer_length(const ir::InferContext& context) {
  static_cast<void>(attr_int(context.attrs, "letters"));
  return infer_measure(context);
}

std::vector<ir::ValueType> infer_hash(const ir::InferContext& context) {
  if (const int64_t buckets = attr_int(context.attrs, "buckets"); buckets < 0)
    fail("attribute buckets is " + std::to_string(buckets));
  const std::string how = attr_string(context.attrs, "how", "");
  if (how != "farm" && how != "murmur" && how != "sip") fail("attribute how is \"" + how + "\"");
  if (how == "sip" && attr_ints(context.attrs, "key").size() != 2)
    fail("attribute key is not of two numbers");
  return infer_measure(context);
}

std::vector<ir::ValueType> infer_join_row(const ir::InferContext& context) {
  const auto separator = static_cast<int64_t>(attr_string(context.attrs, "separator", "").size());
  const ir::ValueType& x = text_input(context, 0);
  const ir::SymShape shape = strings_shape(x);
  if (shape.size() != 2) fail("strings of shape " + to_string(shape) + ", expected rows");
  if (!demand_equal(input_of(context, 1, set_of(DType::kInt64)).shape, {shape[0]}))
    fail("counts of shape " + to_string(input(context, 1).shape) + " for strings of " + to_string(shape));
  return {text_type({shape[0]}, max(shape[1] * (x.shape.back() + separator), 1))};
}

std::vector<ir::ValueType> infer_points(const ir::InferContext& context) {
  const ir::ValueType& x = text_input(context, 0);
  const ir::SymShape shape = strings_shape(x);
  if (shape.size() != 1) fail("strings of shape " + to_string(shape) + ", expected a row");
  const ir::ValueType each = made_type(DType::kInt64, {shape[0], x.shape.back()});
  return {each, made_type(DType::kInt64, shape), each};
}

std::vector<ir::ValueType> infer_letters(const ir::InferContext& context) {
  return {text_type(input_of(context, 0, set_of(DType::kInt64)).shape, host_ops::kLetterWidth)};
}

std::vector<ir::ValueType> infer_part(const ir::InferContext& context) {
  static_cast<void>(attr_int(context.attrs, "letters"));
  const ir::ValueType& x = text_input(context, 0);
  const ir::SymShape shape = strings_shape(x);
  for (const size_t operand : {1, 2}) {
    const ir::SymShape& own = input_of(context, operand, set_of(DType::kInt64)).shape;
    if (own != shape) fail("strings of shape " + to_string(shape) + ", numbers of " + to_string(own));
  }
  return {text_type(shape, x.shape.back())};
}

template <host_ops::HostFunction function>
void reference(const ir::ReferenceContext& context) {
  run_host(function, context);
}

template <host_ops::HostFunction function>
ir::OpDef text_op(std::string_view name, int inputs,
                  std::vector<ir::ValueType> (*infer)(const ir::InferContext&), std::string_view doc) {
  ir::OpDef def;
  def.name = name;
  def.min_inputs = def.max_inputs = inputs;
  def.infer = infer;
  def.reference = &reference<function>;
  def.doc = doc;
  return def;
}

}  // namespace

std::vector<ir::OpDef> family() {
  return {
      text_op<&host_ops::text_from_numbers>("text_from_numbers", 1, &infer_from_numbers,
                                            "the decimal forms of numbers"),
      text_op<&host_ops::numbers_from_text>("numbers_from_text", 1, &infer_to_numbers,
                                            "the numbers that strings say, of attribute to (a type's name)"),
      text_op<&host_ops::equal_text>("equal_text", 2, &infer_equal, "whether strings are the same (bool)"),
      text_op<&host_ops::find_text>("find_text", 2, &infer_find,
                                    "positions (i64) of strings in sorted keys [k]; k for what is not there"),
      text_op<&host_ops::match_text>("match_text", 1, &infer_match,
                                     "whether strings match attribute pattern (string) whole (bool)"),
      text_op<&host_ops::join_text>("join_text", 2, &infer_join, "strings, each with another behind it"),
      text_op<&host_ops::split_text>("split_text", 1, &infer_split,
                                     "parts [...,most] of strings, how many each has (i64) and the largest "
                                     "count; attributes delimiter (string; empty: white space, or the bytes "
                                     "of attribute space), maxsplit (int), keeps_all (where it is "
                                     "there, what is behind a string's parts belongs to the result)"),
      text_op<&host_ops::normalize_text>(
          "normalize_text", 2, &infer_normalize,
          "the strings [c] or [1,c] that are no stop words [s], and their "
          "count; attributes case (0: kept, 1: lower, 2: upper), case_sensitive"),
      text_op<&host_ops::tokenize_text>(
          "tokenize_text", 2, &infer_tokenize,
          "tokens [...,most] of strings by patterns [p], and their largest count; attributes form "
          "(expression, separators, letters), pad (string), least (letters of a token), mark (int)"),
      text_op<&host_ops::change_text>(
          "change_text", 1, &infer_change,
          "strings, changed as attribute how says: lower, upper, ascii_lower, ascii_upper, strip"),
      text_op<&host_ops::replace_text>(
          "replace_text", 1, &infer_replace,
          "strings with attribute rewrite in place of what matches attribute pattern; attribute all (int)"),
      text_op<&host_ops::text_length>(
          "text_length", 1, &infer_length,
          "bytes (i64) of strings, or their code points; attribute letters (int)"),
      text_op<&host_ops::part_of_text>("part_of_text", 3, &infer_part,
                                       "parts of strings from a position on (i64), so many (i64) bytes or, "
                                       "with attribute letters, code points"),
      text_op<&host_ops::hash_text>(
          "hash_text", 1, &infer_hash,
          "hashes of strings modulo attribute buckets (i64; 0: all bits), by attribute how (string): farm "
          "(Fingerprint64), murmur (MurmurHash64A), or sip (SipHash-2-4) with attribute key (ints [2])"),
      text_op<&host_ops::join_row>(
          "join_row", 2, &infer_join_row,
          "the first strings of each row [n,k], as many as counts (i64 [n]) say, with attribute separator "
          "(string) between them"),
      text_op<&host_ops::points_of_text>(
          "points_of_text", 1, &infer_points,
          "the code points (i64 [n,width]) of strings [n], how many each has (i64 [n]), and at which byte "
          "each begins (i64 [n,width])"),
      text_op<&host_ops::letters_of_points>("letters_of_points", 1, &infer_letters,
                                            "the strings of code points (i64)")};
}

}  // namespace tensormill::ops::text_step_ops
