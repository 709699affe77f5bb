/// What convolutions and pools say of their windows. Thread-safety: as the context.
#pragma once

#include <vector>

#include "compiler/build/maps/windows.h"
#include "compiler/frontend/coreml/node_context.h"

namespace tensormill::frontend::coreml {

/// Strides, and of convolutions dilations, for as many axes of space; 1 where they are not given.
ir::Ints steps_of(NodeContext& node, const char* name, size_t rank);
/// The operand pad, a begin and an end each axis, as all begins, then all ends.
ir::Ints custom_pads(NodeContext& node, size_t rank);
/// "valid", "same", "same_lower" or "custom".
std::string pad_type_of(NodeContext& node);
/// The windows over map [N,C,spatial...] with what pad_type says.
build::Windows windows_over(NodeContext& node, V map, const std::vector<int64_t>& kernel,
                            std::vector<int64_t> strides, std::vector<int64_t> dilations);

}  // namespace tensormill::frontend::coreml
