/// The outputs of a model that has been imported: what is no tensor as tensors. Thread-safety: as the
/// builder.
#pragma once

#include <set>
#include <string>

#include "compiler/frontend/onnx/graph/builder.h"
#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// Where the values of the model's names are.
struct ImportedModel {
  const ModelSource& source;
  const ModelProto& model;
  const ImportOptions& options;
  GraphBuilder& builder;
  const Scope& scope;
};

/// Sets the outputs of the builder's graph: those that are requested, else the model's, as
/// ImportOptions::input_elements and ImportForm::ports have them. `reserved`: names of the model's values.
/// Throws Error(kInvalidArgument) for what is no value, or requested twice, and Error(kNotSupported) where
/// all are empty sequences or optional values.
void set_outputs(const ImportedModel& imported, const std::set<std::string>& reserved);

}  // namespace tensormill::frontend::onnx
