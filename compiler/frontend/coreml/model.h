/// What a Core ML model says, as plain structs: its description, and the functions of its ML Program (MIL).
/// Texts and elements are views. Thread-safety: values; views live as long as the files.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/wire/archive_files.h"

namespace tensormill::frontend::coreml {

/// Of elements; numbers of the schema.
enum class DataType : int32_t {
  kUnused = 0,
#define COREML_TYPE(enumerator, number, blob, name, bits, dtype) enumerator = number,
#include "compiler/frontend/coreml/data_types.def"
#undef COREML_TYPE
};
/// "fp16" …; "" for a number that the schema does not have.
std::string_view type_name(DataType type);
/// The reverse; kUnused for a name that it does not have.
DataType type_named(std::string_view name);
/// Bits of an element; 0 for strings and what is not known.
int type_bits(DataType type);

/// Unknown dims are -1.
struct TensorType {
  DataType dtype = DataType::kUnused;
  bool has_rank = true;
  std::vector<int64_t> dims;
};
enum class ValueKind : uint8_t { kTensor, kList, kTuple, kDictionary, kState };
/// Of a list, a tuple, a dictionary or a state the kind alone; of a state the tensor that it wraps as well.
struct ValueType {
  ValueKind kind = ValueKind::kTensor;
  TensorType tensor;
};

/// Elements of a tensor as they stand in the program: one of the lists, or raw bytes.
struct Elements {
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;  ///< also bools
  std::vector<std::string_view> strings;
  std::optional<std::string_view> bytes;
};
/// Elements in a file beside the program.
struct BlobRef {
  std::string_view file;
  uint64_t offset = 0;  ///< of the blob's metadata
};
struct Value {
  ValueType type;
  std::variant<std::monostate, Elements, BlobRef, std::vector<Value>> data;  ///< the last: a list or tuple
};

/// What stands for one operand: the name of a value, or a value of its own.
struct Binding {
  std::string_view name;
  std::shared_ptr<const Value> value;  ///< null: the name counts
};
struct NamedType {
  std::string_view name;
  ValueType type;
};
struct Block;
struct Operation {
  std::string_view type;
  std::string_view label;  ///< attribute "name"; "" where it has none
  std::map<std::string_view, std::vector<Binding>> inputs;
  std::vector<NamedType> outputs;
  std::vector<Block> blocks;
  std::map<std::string_view, Value> attributes;
};
struct Block {
  std::vector<NamedType> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Operation> operations;
};
struct Function {
  std::string_view name;
  std::vector<NamedType> inputs;
  std::string_view opset;  ///< "CoreML7": that of the block, the newest one that is known here
  Block block;
};

/// An input or output as the description has it.
struct Feature {
  std::string_view name;
  bool is_image = false, is_optional = false;
  double otherwise = 0;  ///< what all elements of an optional one are where it is not given
  /// For each axis the lowest and the highest extent, -1: no end; empty where none is said.
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::string note = {};  ///< "image RGB"
};
struct Interface {
  std::string_view name;  ///< of the function
  std::vector<Feature> inputs, outputs;
};

struct Model {
  int64_t specification = 0;
  std::string_view default_function;  ///< "" where it is not said: "main"
  std::vector<Interface> interfaces;  ///< of functions by their names; one without a name is that of "main"
  std::vector<Function> functions;    ///< in order of their names
  std::string_view author, description, version;
  const Function* find(std::string_view name) const;
  const Feature* input(std::string_view function, std::string_view name) const;
};

/// Reads the message of model.mlmodel. Throws Error(kInvalidModel) with the byte; Error(kNotSupported) for a
/// model of another kind than an ML Program, saying which and what to do.
Model read_model(std::string_view bytes);
/// 7 for "CoreML7", which came with iOS 17; 0 for an opset that is not known here.
int opset_number(std::string_view opset);

using wire::ModelFiles;
/// The files of a model.
struct Package {
  std::string_view model;  ///< model.mlmodel
  ModelFiles weights;      ///< by the names that the program has for them, "weights/weight.bin"
};
/// Of the files of an .mlpackage by their names in it, of which Manifest.json says where the model is. Throws
/// Error(kInvalidModel).
Package open_package(const ModelFiles& files);
inline constexpr const char* kManifest = "Manifest.json";
/// Where the model is in the package, "Data/com.apple.CoreML/model.mlmodel".
std::string model_path(std::string_view manifest);

/// The file below the model's folder that elements lie in, "weights/weight.bin". Throws Error(kInvalidModel)
/// for one that is not in the model.
std::string weight_file(const BlobRef& blob);
/// All of them that the program names, once each.
std::set<std::string> weight_files(const Model& model);

/// The elements of a blob of a weight file: what its metadata says, checked. Throws Error(kInvalidModel).
struct Blob {
  DataType dtype = DataType::kUnused;
  std::string_view bytes;
};
Blob read_blob(std::string_view file, uint64_t offset);
/// Bytes of elements packed without gaps.
uint64_t packed_bytes(DataType type, uint64_t elements);

/// Of the function that is imported where none is named; operators and weights of all functions.
FileFacts facts_of(const Model& model, std::string_view format);

}  // namespace tensormill::frontend::coreml
