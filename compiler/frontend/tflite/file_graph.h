/// The operators of a .tflite file as they stand there, and what errors call them. Thread-safety: pure
/// functions.
#pragma once

#include <string>

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/tflite/import.h"

namespace tensormill::frontend::tflite {

/// The name of the first output that has one, or "CONV_2D#3".
std::string operator_label(const Model& model, const Subgraph& graph, size_t index);
/// Where it is: subgraph and number, which no other has.
std::string operator_path(const Model& model, const Subgraph& graph, size_t index);

/// Of the entry point's subgraph: what is within those that it calls belongs to the operators that call them.
FileGraph file_graph(const Model& model, const EntryPoint& entry);

}  // namespace tensormill::frontend::tflite
