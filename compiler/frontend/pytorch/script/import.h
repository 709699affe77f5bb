/// From a TorchScript file to the graph IR: its forward() is followed, and each operator that it calls
/// becomes a node, as those of exported programs do. Errors: kInvalidModel for code that does not fit its
/// operands, kNotSupported for what is no part of what is followed, each with file and line;
/// kOperatorNotImplemented with all operators that are not supported in its details. Thread-safety: pure
/// functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/frontend/pytorch/loaded_program.h"
#include "compiler/frontend/pytorch/script/module.h"
#include "compiler/ir/graph.h"
#include "runtime/base/file.h"

namespace tensormill::frontend::pytorch::script {

/// A tensor that forward() takes.
struct InputPort {
  std::string name;
  DType dtype = DType::kFloat32;
  size_t parameter = 0;                        ///< of forward(), self is number 0
  std::optional<size_t> element;               ///< of a parameter that is a tuple
  std::optional<std::vector<int64_t>> traced;  ///< the shape with which the module was traced
};
struct Ports {
  std::vector<InputPort> inputs;
  std::vector<std::string> outputs;
};
/// What forward() takes and returns. Its elements are of the type that it was traced with; else integers
/// where an operator takes them as indices, and float32. Throws Error(kNotSupported) for what is no tensor
/// and has no value of its own, and for results of which the code does not say how many there are.
Ports ports_of(const Module& module);

/// A file that is read once and imported at many shapes. Thread-safety: all functions may be called at once.
class LoadedModule {
public:
  /// Throws as read_module.
  explicit LoadedModule(const std::shared_ptr<const MappedFile>& file);
  const Module& module() const { return module_; }
  /// What makes constants of the file's tensors.
  const LoadedProgram& weights() const { return weights_; }

private:
  LoadedProgram weights_;
  Module module_;
};

struct ImportRequest : build::GraphRequest {
  Ports ports;
};
/// Throws as above, and Error(kInvalidArgument) for an output that the module does not have.
ir::Graph import_graph(const LoadedModule& module, const ImportRequest& request, const ir::OpRegistry& ops);

/// Operators of forward() and what it calls without a condition that are not implemented.
build::Missing missing_operators(const Module& module);

}  // namespace tensormill::frontend::pytorch::script
