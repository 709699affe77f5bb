/// Models of TensorFlow: frozen graphs, and SavedModels and graph models of TensorFlow.js, which are folders,
/// or lie in a tar or a zip.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are those of a frozen graph, of saved_model.pb, of a graph model's model.json, or of an
/// archive with one of the latter.
bool is_tensorflow(std::string_view bytes);
/// Of these, saved_model.pb alone, beside which variables may lie.
bool is_saved_model_file(std::string_view bytes);
/// model.json of a model of TensorFlow.js alone, beside which weights lie.
bool is_tfjs_file(std::string_view bytes);
/// The folder of a model of TensorFlow.js, or its model.json with the files that it names beside it. Throws
/// kNotFound, kInvalidModel.
ModelSource open_tfjs_model(const std::string& path);
/// A model's folder, or its saved_model.pb with what lies beside it. Throws kNotFound, kInvalidModel.
ModelSource open_saved_model(const std::string& path);
/// `signature`: "": serving_default, or the first one. Throws as make_importer.
std::unique_ptr<Importer> make_tensorflow_importer(ModelSource source, const std::string& signature);

}  // namespace tensormill::frontend
