/// The model as a package holds it, for shapes that none of its plans takes. Thread-safety: pure functions; a
/// KeptImport may be used from many threads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/frontend/onnx/free_dims.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// Files and options of an import; the files' bytes stay where they are mapped.
ir::KeptModel keep_model(const ModelSource& source, const ImportOptions& options, bool stacks_elements);

/// What a package says of its model.
struct KeptFiles {
  std::vector<std::pair<std::string, std::shared_ptr<const MappedFile>>> files;  ///< as keep_model's
  std::string options;
  std::vector<std::string> free_dims;
  std::vector<std::string> outputs;  ///< of the package
};

/// Imports a kept model, one shape after the other.
class KeptImport {
public:
  /// Throws Error(kInvalidPackage) for what keep_model does not write, Error(kInvalidModel).
  KeptImport(const KeptFiles& kept, const ir::OpRegistry& ops);

  /// `dims`: of the package's free dims; `values`: as ImportOptions::run_values. Throws what import_model
  /// throws.
  ir::Graph at(const std::vector<int64_t>& dims, const std::map<std::string, Tensor>& values = {}) const;
  const ModelSource& source() const { return source_; }
  const ImportOptions& options() const { return options_; }

private:
  SharedRooms rooms() const;

  ModelSource source_;
  ImportOptions options_;
  bool stacks_elements_ = false;
  std::vector<std::string> outputs_;
  const ir::OpRegistry& ops_;
  std::optional<Signature> signature_;
  mutable std::mutex mutex_;
  mutable std::optional<SharedRooms> rooms_;  ///< of several, found when they are first needed
};

}  // namespace tensormill::frontend::onnx
