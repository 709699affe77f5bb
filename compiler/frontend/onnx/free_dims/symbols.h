/// Which axes of a model's inputs are symbols of its graph, and the extents at which it is looked at.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/onnx/import.h"

namespace tensormill::frontend::onnx {

/// `options` with a symbol for each dim of an input that is free in the model and not bound by them. Dims of
/// one name are one symbol; those without a name are called after their input and axis. The hints of symbols
/// are distinct, more than 1, and multiples of what networks halve extents by, so that what is asked of them
/// is answered as for most runs.
ImportOptions with_symbols(const ModelFacts& facts, ImportOptions options);

/// A name for each dim: letters, digits and underscores, no two alike.
std::vector<std::string> symbol_names(const std::vector<std::string>& dims);
/// The hint of symbol number `index`, which is an input's `axis` of `rank`.
int64_t symbol_hint(size_t index, size_t axis, size_t rank);

}  // namespace tensormill::frontend::onnx
