/// CNTK models as an Importer. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are those of a function that CNTK 2 has saved.
bool is_cntk(std::string_view bytes);
/// Throws as make_importer.
std::unique_ptr<Importer> make_cntk_importer(ModelSource source);

}  // namespace tensormill::frontend
