/// What the file says of sizes and strides, whatever numbers its symbols stand for. Thread-safety: pure
/// functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/pytorch/model.h"
#include "compiler/te/dim.h"

namespace tensormill::frontend::pytorch {

/// The size over the program's own symbols; nothing where it is made of what dims have no form for.
std::optional<te::Dim> dim_of(const SymDim& size);
/// has_view and lies_in_rows (layout.h) of all extents of 2 or more, as an export takes them; nothing where
/// that is not known.
std::optional<bool> has_view(const TensorMeta& meta, const std::vector<SymDim>& wanted);
std::optional<bool> lies_in_rows(const TensorMeta& meta);
/// Whether the tensor begins where its storage does and lies in rows: proven of all extents of 1 or more.
bool is_whole_in_rows(const TensorMeta& meta);

}  // namespace tensormill::frontend::pytorch
