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
/// Whether the tensor begins where its storage does and its elements lie row after row, none apart: proven of
/// all extents of 1 or more.
bool lies_in_rows(const TensorMeta& meta);
/// Whether torch looks at the tensor in other sizes without a copy (has_view in views.h), of all extents of 2
/// or more, as an export takes them; nothing where that is not known.
std::optional<bool> has_view(const TensorMeta& meta, const std::vector<SymDim>& wanted);
/// The same in one axis of all elements.
std::optional<bool> has_flat_view(const TensorMeta& meta);

}  // namespace tensormill::frontend::pytorch
