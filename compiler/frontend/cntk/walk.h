/// How the functions of a model hang together: which of them compute its results, in order, what they read,
/// and what goes in and out. Blocks are the functions within them, but for those that an operator of the
/// graph stands for (blocks.def). Thread-safety: values.
#pragma once

#include <tuple>

#include "compiler/frontend/cntk/model.h"
#include "compiler/frontend/facts/file_graph.h"

namespace tensormill::frontend::cntk {

/// A variable, or what a function makes.
struct Source {
  bool is_variable = false;
  size_t index = 0;   ///< in the model
  size_t output = 0;  ///< of a function
  bool operator<(const Source& other) const {
    return std::tie(is_variable, index, output) < std::tie(other.is_variable, other.index, other.output);
  }
};

struct Input {
  std::string name;
  size_t variable = 0;
};
struct Output {
  std::string name;
  Source source;
};

struct Walk {
  std::vector<size_t> order;                  ///< functions, each behind those that it reads; no Combine
  std::vector<std::vector<Source>> operands;  ///< by function, of those in the order
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool has_cycle = false;  ///< a function reads what is made of its own result: steps of a sequence
};

/// Throws Error(kInvalidModel) for a value that nothing makes.
Walk walk(const Model& model);
FileGraph file_graph(const Model& model, const Walk& walk);

/// How many values a function of the order makes.
size_t count_outputs(const Function& function);
/// "Times12_Output_0".
std::string output_uid(const Function& function, size_t index);

/// What is read of a shape of an input's samples, -1 for a dim that is free, in the order in which the axes
/// stand in a tensor: first the batch, where there is one.
std::vector<int64_t> tensor_dims(const Variable& variable);
/// "f32[?,3]"; "" for one of a type that no tensor has.
std::string shown_type_of(const Variable& variable);

}  // namespace tensormill::frontend::cntk
