/// TensorFlow.js graph models: the graph as JSON, its constants in files beside it. Thread-safety: pure
/// functions.
#pragma once

#include <memory>

#include "compiler/frontend/tensorflow/model.h"

namespace tensormill::frontend::tensorflow {

struct TfjsModel {
  SavedModel model;  ///< with one signature, "serving_default", where the file says its inputs and outputs
  /// What `model` has views of beside the files.
  std::shared_ptr<const void> owner;
};
/// The files' contents outlive what is returned. Throws Error(kInvalidModel) naming where in model.json, or
/// which file of weights; Error(kTooLarge) for a model.json of more than 64 MiB.
TfjsModel read_tfjs_model(const ModelFiles& files);
FileFacts facts_of(const TfjsModel& model);

}  // namespace tensormill::frontend::tensorflow
