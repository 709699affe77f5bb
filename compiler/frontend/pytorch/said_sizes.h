/// What the file says of sizes and strides, whatever numbers its symbols stand for. Thread-safety: pure
/// functions.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/pytorch/layout.h"
#include "compiler/frontend/pytorch/model.h"
#include "compiler/te/dim.h"

namespace tensormill::frontend::pytorch {

/// The size over the program's own symbols; nothing where it is made of what dims have no form for.
std::optional<te::Dim> dim_of(const SymDim& size);
/// What layout.h says of all extents of 2 or more, as an export takes them; nothing where that is not known.
std::optional<bool> has_view(const TensorMeta& meta, const std::vector<SymDim>& wanted);
/// `axes`: as many as the tensor has, in the order in which its elements are to lie row after row.
std::optional<bool> lies_in(const TensorMeta& meta, const std::vector<int64_t>& axes);
std::optional<MemoryFormat> suggested_format(const TensorMeta& meta);
/// The order of its axes in which the tensor lies row after row from where its storage begins, where that is
/// proven of all extents of 1 or more.
std::optional<std::vector<int64_t>> axes_of_whole(const TensorMeta& meta);

}  // namespace tensormill::frontend::pytorch
