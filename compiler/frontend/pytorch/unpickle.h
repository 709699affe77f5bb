/// The tensors of a file of torch.save, read by a machine of its own that knows a few opcodes and a closed
/// list of names: dictionaries of tensors, parameters and what they are made of. Anything else is an error,
/// and nothing is run. Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "compiler/frontend/pytorch/model.h"
#include "compiler/frontend/wire/zip.h"

namespace tensormill::frontend::pytorch {

/// The tensors by name of a saved dictionary. Views are of the zip. Throws Error(kInvalidModel).
std::map<std::string, StoredTensor> read_saved_tensors(wire::ZipFile& zip);

/// Throws Error(kInvalidModel) where elements lie outside of the storage.
void check_stored(const StoredTensor& tensor, const std::string& name);

}  // namespace tensormill::frontend::pytorch
