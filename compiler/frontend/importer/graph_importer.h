/// Graph files (.tmg) as an Importer. Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

std::unique_ptr<Importer> make_graph_importer(ModelSource source);

}  // namespace tensormill::frontend
