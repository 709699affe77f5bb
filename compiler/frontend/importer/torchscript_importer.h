/// TorchScript modules behind the importer's interface. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are a file of torch.jit.save, by the names of its members.
bool is_torchscript(std::string_view bytes);
/// Throws Error(kInvalidModel), Error(kNotSupported). The file says no shapes: each input needs one in the
/// options, which replaces that of the facts.
std::unique_ptr<Importer> make_torchscript_importer(ModelSource source);

}  // namespace tensormill::frontend
