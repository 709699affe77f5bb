/// What the file says of sizes and strides, whatever numbers its symbols stand for. Thread-safety: pure
/// functions.
#pragma once

#include <optional>

#include "compiler/frontend/pytorch/model.h"
#include "compiler/te/dim.h"

namespace tensormill::frontend::pytorch {

/// The size over the program's own symbols; nothing where it is made of what dims have no form for.
std::optional<te::Dim> dim_of(const SymDim& size);
/// Whether the tensor begins where its storage does and its elements lie row after row, none apart: proven of
/// all extents of 1 or more.
bool lies_in_rows(const TensorMeta& meta);

}  // namespace tensormill::frontend::pytorch
