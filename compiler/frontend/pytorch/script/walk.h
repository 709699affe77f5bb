/// Calls that stand in the code, without following it. Thread-safety: pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "compiler/frontend/pytorch/script/module.h"

namespace tensormill::frontend::pytorch::script {

/// A function, and the object that it is a method of.
struct Scope {
  const Function* function = nullptr;
  const PickleValue* self = nullptr;
};
/// One call in a scope: of an operator, by its name, or of a function whose scope is known.
struct FoundCall {
  const Expr* expr = nullptr;
  std::string name = {};  ///< "torch.relu", "ops.prim.device"; "" of a function
  Scope callee = {};
};

/// "aten.relu" of a call of torch.relu, "prim.device" of ops.prim.device.
std::string operator_name(const FoundCall& call);

/// Visits each call of the scope's own code; with `all`, also those that a condition decides about.
void for_each_call(const Module& module, const Scope& scope, bool all,
                   const std::function<void(const FoundCall&)>& visit);

}  // namespace tensormill::frontend::pytorch::script
