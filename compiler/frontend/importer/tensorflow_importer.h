/// Models of TensorFlow: frozen graphs and SavedModels, which are folders, or lie in a tar or a zip.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are those of a frozen graph, of saved_model.pb, or of an archive with one.
bool is_tensorflow(std::string_view bytes);
/// Of these, saved_model.pb alone, beside which variables may lie.
bool is_saved_model_file(std::string_view bytes);
/// A model's folder, or its saved_model.pb with what lies beside it. Throws kNotFound, kInvalidModel.
ModelSource open_saved_model(const std::string& path);
/// `signature`: "": serving_default, or the first one. Throws as make_importer.
std::unique_ptr<Importer> make_tensorflow_importer(ModelSource source, const std::string& signature);

}  // namespace tensormill::frontend
