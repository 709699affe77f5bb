/// TensorFlow.js graph models: the graph as JSON, its constants in files beside it. Thread-safety: pure
/// functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/tensorflow/model.h"

namespace tensormill::frontend::tensorflow {

/// The file that such a model is known by.
inline constexpr const char* kTfjsFile = "model.json";

struct TfjsModel {
  SavedModel model;  ///< with one signature, "serving_default", where the file says its inputs and outputs
  /// What `model` has views of beside the files.
  std::shared_ptr<const void> owner;
};
/// The files' contents outlive what is returned. Throws Error(kInvalidModel) naming where in model.json, or
/// which file of weights; Error(kTooLarge) for a model.json of more than 64 MiB.
TfjsModel read_tfjs_model(const ModelFiles& files);
/// The files of weights that a model.json names: each a plain name. Throws Error(kInvalidModel).
std::vector<std::string> tfjs_weight_files(std::string_view model_json);
FileFacts facts_of(const TfjsModel& model);

}  // namespace tensormill::frontend::tensorflow
