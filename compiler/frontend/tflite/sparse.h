/// Sparse constants: how they are stored. Thread-safety: pure functions.
#pragma once

#include <tflite_schema_generated.h>

#include "compiler/frontend/tflite/model.h"
#include "compiler/frontend/wire/work_budget.h"

namespace tensormill::frontend::tflite {

using wire::WorkBudget;

/// Throws Error(kInvalidModel) for dims that do not fit each other or the tensor's shape.
Sparsity read_sparsity(const tflite_file::SparsityParameters& from, const Tensor& tensor, WorkBudget& budget);
/// How many elements are stored; nothing past 64 bits.
std::optional<uint64_t> stored_elements(const Sparsity& sparsity);

}  // namespace tensormill::frontend::tflite
