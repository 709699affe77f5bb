/// Plans of the model that a package holds, for shapes that have no kernels: each node is evaluated by its
/// operator's reference (`ir::OpDef::reference`), on one thread. Nothing is compiled, so a plan is there as
/// soon as the model is imported at the shape; runs are some hundred times as long as those of kernels.
/// Thread-safety: as package::Interpreter.
#pragma once

#include <memory>

#include "runtime/package/package_reader.h"

namespace tensormill::interpret {

/// Null where the package holds no model. The plans throw Error(kInvalidPackage), too, where that is not the
/// package's own: other free dims, other options.
std::unique_ptr<const package::Interpreter> make_interpreter(
    const std::shared_ptr<const package::Package>& package);

}  // namespace tensormill::interpret
