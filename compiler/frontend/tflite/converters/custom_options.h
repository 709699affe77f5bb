/// Options of custom operators that are a map of FlexBuffers. Thread-safety: pure functions. Errors:
/// kInvalidModel naming the option.
#pragma once

#include <vector>

#include "compiler/frontend/tflite/node_context.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::frontend::tflite {

Json options_of(const NodeContext& node);
/// A finite number of at most 1e9, or a bool as 0 and 1.
double number_of(const NodeContext& node, const Json& options, const char* name);
/// A list of integers, each of 0 to `below` - 1.
ir::Ints places_of(const NodeContext& node, const Json& options, const char* name, int64_t below);
/// One such integer.
int64_t place_of(const NodeContext& node, const Json& options, const char* name, int64_t below);

}  // namespace tensormill::frontend::tflite
