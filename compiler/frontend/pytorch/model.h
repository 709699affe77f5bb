/// What a .pt2 file of torch.export says, as plain structs: the graph as it was saved (in-place operators and
/// views included), types of all values with symbolic sizes, the ranges of symbols, and weights as views of
/// the file. Schema major 8 is read, from torch 2.5 on. Thread-safety: values; views live as long as the
/// file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::pytorch {

/// Numbers of the schema.
enum class ScalarType : int64_t {
  kUnknown = 0,
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kComplex32 = 9,
  kComplex64 = 10,
  kComplex128 = 11,
  kBool = 12,
  kBFloat16 = 13,
  kUInt16 = 28,
  kFloat8E4M3FN = 29,
  kFloat8E5M2 = 30,
  kFloat8E4M3FNUZ = 31,
  kFloat8E5M2FNUZ = 32,
  kFloat8E8M0FNU = 33,
  kUInt32 = 34,
  kUInt64 = 35,
};
/// "float32" …; "" for a number that the schema does not have.
std::string_view scalar_name(ScalarType type);
/// Bytes of an element; 0 where it is not known.
int64_t scalar_bytes(ScalarType type);

/// An integer expression over symbols, as SymPy writes it: in infix form ("2*s0 + 1") or as calls
/// ("Mul(Integer(2), Symbol('s0', integer=True))").
struct SymExpr {
  enum class Kind : uint8_t { kInteger, kReal, kSymbol, kCall };
  Kind kind = Kind::kInteger;
  int64_t value = 0;
  /// Of a symbol, or the function of a call: "Add", "Mul", "Pow", "FloorDiv", "Mod", "Max" …; a real number's
  /// digits.
  std::string name;
  std::vector<SymExpr> args;
};
/// Throws Error(kInvalidModel) for what is none, longer than 64 KiB, or nested deeper than 64.
SymExpr parse_sym_expr(std::string_view text);
/// "s0", "(s0 + 1)", "Max(s0,2)".
std::string to_string(const SymExpr& expr);

/// A size: a number, or an expression with the number that it had when the program was exported.
struct SymDim {
  std::optional<int64_t> value;
  std::optional<SymExpr> expr;
  std::optional<int64_t> hint;
};
std::string to_string(const SymDim& dim);

struct TensorMeta {
  ScalarType dtype = ScalarType::kUnknown;
  std::vector<SymDim> sizes, strides;
  SymDim storage_offset;
  int64_t layout = 0;
  std::string device;
};

/// What an argument is: a row of arguments.def.
enum class ArgumentKind : uint8_t {
#define PT_ARGUMENT(enumerator, name) enumerator,
#include "compiler/frontend/pytorch/arguments.def"
#undef PT_ARGUMENT
};

struct Graph;
struct Argument {
  ArgumentKind kind = ArgumentKind::kNone;
  std::vector<std::string> names;  ///< of tensors, in order; "" for one that is absent
  Json value;  ///< of anything else, as it stands in the file; numbers that JSON lacks are texts
  std::shared_ptr<const Graph> graph;
};
struct NamedArgument {
  std::string name;
  Argument argument;
};
struct Node {
  std::string name;    ///< "" in older files
  std::string target;  ///< "torch.ops.aten.add.Tensor"
  /// Arguments at their schema's default are left out by the writer.
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::string module;  ///< where it stands in the module: "layer1.0.conv1"
};
struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta> tensors;
  std::map<std::string, SymDim> sym_ints;
};

struct InputSpec {
  /// "parameter", "buffer", "tensor_constant", "user_input", "constant_input", "custom_obj", "token"
  std::string kind;
  std::string name;    ///< of the graph's input
  std::string target;  ///< of a weight: its name in the module; of a custom object: its name
  Json value;          ///< of a constant input
};
struct OutputSpec {
  /// "user_output", "loss_output", "buffer_mutation", "parameter_mutation", "user_input_mutation", "token" …
  std::string kind;
  std::string name;    ///< of the value; "" for one that is no tensor
  std::string target;  ///< of a mutation: the buffer or the input that is written
};

struct SymbolRange {
  std::optional<int64_t> min, max;
};

/// A tensor in a storage: strides and offset in elements. Several may share one storage.
struct StoredTensor {
  ScalarType dtype = ScalarType::kUnknown;
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
  std::string_view storage;
};
/// The elements in row-major order. Throws Error(kTooLarge) past `max_bytes`.
std::string contiguous_bytes(const StoredTensor& tensor, uint64_t max_bytes);

struct Program {
  int64_t schema_major = 0, schema_minor = 0;
  std::string torch_version;
  Graph graph;
  std::vector<InputSpec> inputs;    ///< as the graph's inputs
  std::vector<OutputSpec> outputs;  ///< as the graph's outputs
  std::map<std::string, SymbolRange> ranges;
  std::map<std::string, StoredTensor> weights;  ///< parameters and buffers by their names in the module
  std::map<std::string, StoredTensor>
      constants;  ///< tensors that are neither, and buffers that are not persistent
  std::vector<std::shared_ptr<const void>> kept;  ///< what views show that does not lie in the file

  /// The tensor that a parameter, buffer or constant among the inputs is; nullptr where it has none.
  const StoredTensor* stored(const InputSpec& input) const;
};

/// Reads a file, whose bytes are a mapping that outlives the program. Throws Error(kInvalidModel) naming the
/// member and what in it, Error(kNotSupported) for another major version and for what is only in newer ones.
Program read_program(std::string_view bytes);

FileFacts facts_of(const Program& program);

}  // namespace tensormill::frontend::pytorch
