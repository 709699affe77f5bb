/// Values that follow from constants, where folding leaves them alone: widened weights take four times the
/// bytes. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::passes {

/// The value where it follows from constants by a few steps of the operators named, else nothing; nothing
/// when a step refuses its data.
std::optional<Tensor> constant_by(const ir::Graph& graph, ir::ValueId id,
                                  const std::vector<std::string_view>& operators);

}  // namespace tensormill::passes
