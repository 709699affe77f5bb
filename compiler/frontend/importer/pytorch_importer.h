/// PyTorch's exported programs as an Importer. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are an archive with such a program.
bool is_pt2(std::string_view bytes);
std::unique_ptr<Importer> make_pytorch_importer(ModelSource source);

}  // namespace tensormill::frontend
