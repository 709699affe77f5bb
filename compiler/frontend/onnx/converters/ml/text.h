/// What converters share that make or read strings. Thread-safety: as the context.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/text/text.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

using build::found_text;
using build::is_text;
using build::numbers_of_text;
using build::of_one_width;
using build::sorted_texts;
using build::SortedTexts;
using build::text_constant;
using build::text_of_numbers;

/// The rank that the model sees: strings have one axis more here.
int64_t shown_rank(const NodeContext& context, ir::ValueId value);
/// Strings of a STRINGS attribute; none when it is not there.
ir::CheckedList<std::string> text_values(const NodeContext& context, const char* name);

}  // namespace tensormill::frontend::onnx
