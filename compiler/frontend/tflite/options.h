/// An operator's options out of the verified file. Thread-safety: pure functions.
#pragma once

#include <tflite_schema_generated.h>

#include "compiler/frontend/tflite/model.h"

namespace tensormill::frontend::tflite {

/// Throws Error(kInvalidModel), which names the field, for an enumerator that the schema does not have.
Options read_options(const tflite_file::Operator& from);
/// The subgraphs that options name.
std::vector<int64_t> named_subgraphs(const Options& options);

}  // namespace tensormill::frontend::tflite
