/// What goes into a symbol and what comes out of it. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/frontend/mxnet/model.h"

namespace tensormill::frontend::mxnet {

/// A variable that is no parameter.
struct Input {
  size_t node = 0;
  std::string name;
  DType dtype = DType::kFloat32;
  bool has_rank = false;      ///< whether the symbol says how many dims it has, or what reads it does
  bool is_guess = false;      ///< other ranks are possible, too
  std::vector<int64_t> dims;  ///< -1: free
};

struct Output {
  std::string name;
  Entry entry;
};

struct Interface {
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<bool> is_used;  ///< of each node: whether an output depends on it
};

/// The label of a layer that says a loss is no input where nothing else reads it. Throws Error(kInvalidModel)
/// for names that stand twice, Error(kNotSupported) for an input of a type that is not known.
Interface interface_of(const Model& model);

/// The attribute's numbers, "(3, 3)" or "[3,3]" or "3", "None" among them as -1; nothing for what is none.
std::optional<std::vector<int64_t>> listed_numbers(std::string_view text);
/// Operands that a run does not read: labels.
bool is_label(const Node& node, size_t operand);
/// How many outputs a node of these attributes has: Node::outputs, as attributes may be long.
size_t num_outputs(const Node& node);
/// What MXNet calls one of them.
std::string output_name(const Node& node, size_t index);

}  // namespace tensormill::frontend::mxnet
