/// Substitutes numbers for the symbols of a graph. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

/// The graph with `values` for its symbols, by name: the same nodes in the same order, of constant extents
/// and attributes, and without symbols. Throws what a type rule throws where the model does not take them,
/// Error(kInvalidModel) for an extent that has no value.
Graph bind_symbols(const Graph& graph, const std::map<std::string, int64_t>& values);

}  // namespace tensormill::ir
