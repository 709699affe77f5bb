/// Strings of a graph: what moves them, finds them in a list and makes them of numbers. A value of strings
/// has an axis more than its model says, the bytes of a string (runtime/base/text.h). Thread-safety: as the
/// graph.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// Whether the value holds strings.
bool is_text(const OpBuilder& builder, ir::ValueId value);
/// The shape that the model sees, of values of any type.
ir::SymShape model_shape(const OpBuilder& builder, ir::ValueId value);
/// The values; strings among them padded to the width of the widest.
std::vector<ir::ValueId> of_one_width(OpBuilder& builder, std::vector<ir::ValueId> values);
/// A constant of strings; of one axis where no shape is given.
ir::ValueId text_constant(OpBuilder& builder, const std::vector<std::string>& texts);
ir::ValueId text_constant(OpBuilder& builder, Shape shape, const std::vector<std::string>& texts);
/// Strings in the shape `to` of as many of them, or broadcast to it.
ir::ValueId reshaped_text(OpBuilder& builder, ir::ValueId x, ir::SymShape to);
ir::ValueId expanded_text(OpBuilder& builder, ir::ValueId x, const ir::SymShape& to);
/// Both in the shape that they broadcast to.
std::pair<ir::ValueId, ir::ValueId> broadcast_texts(OpBuilder& builder, ir::ValueId a, ir::ValueId b);
/// Strings of numbers of any type; strings as they are.
ir::ValueId text_of_numbers(OpBuilder& builder, ir::ValueId x);
ir::ValueId numbers_of_text(OpBuilder& builder, ir::ValueId x, DType to);

/// A bucket i64 of `buckets` for each string, by FarmHash's fingerprint, or, with a key of two numbers, by
/// SipHash; where there are 0 of them, all bits of the hash.
ir::ValueId hashed_text(OpBuilder& builder, ir::ValueId x, int64_t buckets,
                        const std::vector<int64_t>& key = {});

/// Strings in the order of their bytes, once each.
struct SortedTexts {
  std::vector<std::string> keys;
  std::vector<int64_t> place;  ///< of each of the strings as they were given
};
SortedTexts sorted_texts(const std::vector<std::string>& texts);
/// Places i64 of the strings of `x` among the keys; the number of keys for what is not there.
ir::ValueId found_text(OpBuilder& builder, ir::ValueId x, const SortedTexts& texts);

/// The parts of strings, one row a string: strings [rows,most], how many each has (i64 [rows]), and where
/// parts are (bool [rows,most]).
struct TextParts {
  ir::ValueId parts = ir::kAbsent, counts = ir::kAbsent, is_there = ir::kAbsent;
  ir::SymInt rows = 0, most = 0;
};
/// Of x [rows], whose parts stand between delimiters, or, where that is empty, between the bytes of `space`,
/// white space where there are none, however many follow each other; the first `limit` delimiters count,
/// unless that is negative.
TextParts split_texts(OpBuilder& builder, ir::ValueId x, const std::string& delimiter, int64_t limit,
                      const std::string& space = "");
/// Columns 0 ... width - 1 of a table of numbers [rows,n]; `otherwise`, a scalar, where it has none.
ir::ValueId of_columns(OpBuilder& builder, ir::ValueId table, int64_t width, ir::ValueId otherwise);

/// Numbers that stand for strings while an operator moves them: what it does to these is done to the strings.
/// As many strings as kMostMoved at most, where their number is known: UnsupportedForm for more.
class MovedTexts {
public:
  static constexpr int64_t kMostMoved = int64_t{1} << 20;
  /// `first`: strings that stand at the first positions.
  explicit MovedTexts(OpBuilder& builder, const std::vector<std::string>& first = {});
  /// i64 in the shape that the model sees; all of them before the first `texts_at`.
  ir::ValueId positions_of(ir::ValueId texts);
  /// The strings at positions that an operator has moved.
  ir::ValueId texts_at(ir::ValueId positions);

private:
  OpBuilder& builder_;
  std::vector<ir::ValueId> texts_;
  ir::ValueId pool_ = ir::kAbsent;
  ir::SymInt count_ = 0;
};

}  // namespace tensormill::build
