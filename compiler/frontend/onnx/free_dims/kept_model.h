/// The model as a package holds it, for shapes that none of its plans takes (importer/kept_import.h reads
/// it). Thread-safety: pure functions.
#pragma once

#include <string>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// Files and options of an import; the files' bytes stay where they are mapped.
ir::KeptModel keep_model(const ModelSource& source, const ImportOptions& options, bool stacks_elements);

/// What the options' text of a stored model says.
struct KeptOptions {
  ImportOptions options;
  Digest digest;
  bool stacks_elements = false;
};
/// Throws Error(kInvalidPackage) for what keep_model does not write.
KeptOptions parse_kept_options(const std::string& text);

}  // namespace tensormill::frontend::onnx
