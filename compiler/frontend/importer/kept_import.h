/// The model that a package holds, for shapes that none of its plans takes. Thread-safety: may be used from
/// many threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/importer/importer.h"
#include "compiler/frontend/onnx/free_dims/free_dims.h"

namespace tensormill::frontend {

/// What a package says of its model.
struct KeptFiles {
  std::vector<std::pair<std::string, std::shared_ptr<const MappedFile>>> files;  ///< as onnx::keep_model's
  std::string options;
  std::vector<std::string> free_dims;
  std::vector<std::string> outputs;  ///< of the package
};

/// Imports a stored model, one shape after the other.
class KeptImport {
public:
  /// Throws Error(kInvalidPackage) for what onnx::keep_model does not write, Error(kInvalidModel).
  KeptImport(const KeptFiles& kept, const ir::OpRegistry& ops);

  /// `dims`: of the package's free dims; `values`: as ImportOptions::run_values. Throws what Importer::import
  /// throws.
  ir::Graph at(const std::vector<int64_t>& dims, const std::map<std::string, Tensor>& values = {}) const;
  const ModelSource& source() const { return importer_->source(); }
  const ImportOptions& options() const { return options_; }

private:
  std::unique_ptr<Importer> importer_;
  ImportOptions options_;
  bool stacks_elements_ = false;
  std::vector<std::string> outputs_;
  const ir::OpRegistry& ops_;
  std::optional<onnx::Signature> signature_;
};

}  // namespace tensormill::frontend
