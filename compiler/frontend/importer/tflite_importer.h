/// TFLite files as an Importer. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes carry the mark of a TFLite file.
bool is_tflite(std::string_view bytes);
std::unique_ptr<Importer> make_tflite_importer(ModelSource source, const std::string& signature);

}  // namespace tensormill::frontend
