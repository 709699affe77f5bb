/// Keras models as an Importer: archives (.keras) and HDF5 files. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes carry the marks of a Keras model.
bool is_keras(std::string_view bytes);
std::unique_ptr<Importer> make_keras_importer(ModelSource source);

}  // namespace tensormill::frontend
