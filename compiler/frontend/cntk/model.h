/// What a CNTK model says, as plain structs: variables, and the functions between them, those within blocks
/// beside the others. Texts are views. Thread-safety: values; views live as long as the file.
#pragma once

#include <string>
#include <utility>

#include "compiler/frontend/cntk/dictionary.h"
#include "compiler/frontend/facts/facts.h"
#include "runtime/base/dtype.h"

namespace tensormill::frontend::cntk {

enum class VariableKind : uint8_t { kInput, kOutput, kParameter, kConstant, kPlaceholder };

struct Variable {
  std::string_view uid, name;
  VariableKind kind = VariableKind::kInput;
  int64_t dtype = 0;
  Dims dims;  ///< of a sample
  std::vector<Axis> dynamic_axes;
  std::optional<Array> value;  ///< of parameters and constants
};

/// The part of a block, which is a function of other functions.
struct Block {
  std::string_view root;                                                 ///< uid of the last one of them
  std::vector<std::pair<std::string_view, std::string_view>> arguments;  ///< place holder, value
};
struct Function {
  std::string_view uid, name;
  std::string op;  ///< "Times"; of a block what it is called
  Dictionary attributes;
  std::vector<std::string_view> inputs;  ///< uids of values
  std::optional<Block> block;
};

struct Model {
  std::string_view name, root;
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

/// Throws Error(kInvalidModel).
Model read_model(std::string_view bytes);

/// Of a number of DataType; nothing for one that no tensor here has.
std::optional<DType> dtype_of(int64_t number);

FileFacts facts_of(const Model& model);

}  // namespace tensormill::frontend::cntk
