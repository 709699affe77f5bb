/// A graph as a file, the project's own format (.tmg): its text form and its weights, or the text alone, as
/// people write it. Extents may be expressions over the graph's dims; what must hold of them stands beside it
/// as guards. Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/file.h"

namespace tensormill::frontend::graph_file {

struct GraphFile {
  ir::Graph graph;
  std::vector<ir::Guard> guards;
};

/// Whether the bytes begin as one of the two forms.
bool is_graph_file(std::string_view bytes);
/// Writes the graph with the guards of its symbols. Throws Error(kIo) or Error(kDiskFull); then nothing is
/// left.
void write(const std::string& path, const ir::Graph& graph);
/// Weights stay mapped. Throws Error(kInvalidModel) naming the line or the part of the file.
GraphFile read(const std::shared_ptr<const MappedFile>& file, const ir::OpRegistry& ops);

struct Binding {
  std::vector<ir::SymShape> shapes;              ///< one an input of the graph
  std::map<std::string, Tensor> constants = {};  ///< inputs that are known: no inputs of the result
  std::map<std::string, Tensor> values = {};     ///< of inputs that stay
  std::vector<std::string> outputs = {};         ///< empty: all
  std::shared_ptr<ir::SymbolTable> symbols = nullptr;
};
/// The graph with the binding's extents for its own: every type is worked out anew. Throws
/// Error(kInvalidModel) where a guard does not hold, naming the node and both numbers, and
/// Error(kInvalidArgument) for an output that is none.
ir::Graph bind(const GraphFile& file, const Binding& binding);

}  // namespace tensormill::frontend::graph_file
