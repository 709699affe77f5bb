/// A file of torch.jit.save as plain structs: the code, the object whose forward() is the model, constants.
/// Nothing of it is run here. Thread-safety: values; views live as long as the file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/pytorch/script/syntax.h"
#include "compiler/frontend/pytorch/unpickle.h"

namespace tensormill::frontend::pytorch::script {

struct Module {
  std::string version;  ///< of the file's format: "3", "10"
  Code code;
  std::shared_ptr<const PickleValue> root;                    ///< an object
  std::vector<std::shared_ptr<const PickleValue>> constants;  ///< CONSTANTS.c0, CONSTANTS.c1 ...
  /// What forward() was traced with, where it was, and the file says it.
  std::vector<std::shared_ptr<const PickleValue>> examples;
  std::shared_ptr<const void> kept;  ///< what views show that does not lie in the file

  const Class& root_class() const;
  const Function& forward() const;
};

/// Reads a file, whose bytes are a mapping that outlives the module. Throws Error(kInvalidModel) naming the
/// member and what in it, Error(kNotSupported) for a module without forward() or of another form.
Module read_module(std::string_view bytes);

/// An object's attributes by their names.
using Attributes = std::map<std::string_view, const PickleValue*, std::less<>>;
Attributes attributes_of(const PickleValue& object);
/// "Sequential" of "__torch__.torch.nn.modules.container.___torch_mangle_1.Sequential".
std::string short_name(std::string_view name);

FileFacts facts_of(const Module& module);

}  // namespace tensormill::frontend::pytorch::script
