/// What converters share that make or read strings. Thread-safety: as the context.
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

/// Whether the value holds strings.
bool is_text(const NodeContext& context, ir::ValueId value);
/// The rank that the model sees: strings have one axis more here.
int64_t shown_rank(const NodeContext& context, ir::ValueId value);
/// The values; strings among them padded to the width of the widest.
std::vector<ir::ValueId> of_one_width(NodeContext& context, std::vector<ir::ValueId> values);
/// Strings of a STRINGS attribute; none when it is not there.
std::vector<std::string> text_values(const NodeContext& context, const char* name);
/// A constant of strings of one axis.
ir::ValueId text_constant(NodeContext& context, const std::vector<std::string>& texts);
/// Strings of numbers of any type.
ir::ValueId text_of_numbers(NodeContext& context, ir::ValueId x);
ir::ValueId numbers_of_text(NodeContext& context, ir::ValueId x, DType to);

/// Strings in the order of their bytes, once each.
struct SortedTexts {
  std::vector<std::string> keys;
  std::vector<int64_t> place;  ///< of each of the strings as they were given
};
SortedTexts sorted_texts(const std::vector<std::string>& texts);
/// Places of the strings of `x` among the keys; the number of keys for what is not there.
ir::ValueId found_text(NodeContext& context, ir::ValueId x, const SortedTexts& texts);

}  // namespace tensormill::frontend::onnx
