/// Puts a graph's nodes behind those whose results they read. The standard wants them in such an order;
/// models that tools have edited are not always, and runtimes take them.
#pragma once

#include "compiler/frontend/onnx/model/model_proto.h"

namespace tensormill::frontend::onnx {

/// Sorts the nodes of `graph`, and those of its subgraphs: a graph that is in order stays as it is, in
/// another one a node moves no further than it has to. What its subgraphs read of the graph is what a node
/// reads, too. Nodes of a cycle stay behind all others, for the check that names them.
void sort_nodes(GraphProto& graph);

}  // namespace tensormill::frontend::onnx
