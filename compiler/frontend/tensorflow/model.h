/// What TensorFlow's files say, as plain structs: frozen graphs (GraphDef) and SavedModels, whose functions
/// stand beside the graph and whose weights lie in a checkpoint. Texts and tensors are views. Thread-safety:
/// values; views live as long as the files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/wire/archive_files.h"

namespace tensormill::frontend::tensorflow {

/// Numbers of the schema; a reference type of TensorFlow 1 is its type plus 100.
enum class DataType : int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQInt8 = 11,
  kQUInt8 = 12,
  kQInt32 = 13,
  kBFloat16 = 14,
  kQInt16 = 15,
  kQUInt16 = 16,
  kUInt16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
  kFloat8E5M2 = 24,
  kFloat8E4M3FN = 25,
  kInt4 = 29,
  kUInt4 = 30,
  kInt2 = 31,
  kUInt2 = 32,
};
/// "float32" …; "" for a number that the schema does not have.
std::string_view type_name(DataType type);
/// The reverse; kInvalid for a name that it does not have.
DataType type_named(std::string_view name);
/// Bytes of an element; 0 for strings, resources, variants and what is not known.
int64_t type_bytes(DataType type);

/// Unknown dims are -1.
struct TensorShape {
  bool has_rank = true;
  std::vector<int64_t> dims;
};

/// Elements are `content`, raw and row-major, or lists; a list that is shorter than the tensor repeats its
/// last element, and where all are empty every element is 0.
struct TensorValue {
  DataType dtype = DataType::kInvalid;
  TensorShape shape;
  std::string_view content;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;  ///< integers of all widths, bools, and the bits of half and bfloat16
  std::vector<std::string_view> strings;
};

struct AttrValue;
using Attributes = std::map<std::string_view, AttrValue>;
struct FunctionRef {
  std::string_view name;
  Attributes attributes;
};
struct AttrList {
  std::vector<std::string_view> strings;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<bool> bools;
  std::vector<DataType> types;
  std::vector<TensorShape> shapes;
  std::vector<TensorValue> tensors;
  std::vector<FunctionRef> functions;
};
/// Stands for an attribute of the function that the node is in.
struct AttrPlaceholder {
  std::string_view name;
};
struct AttrValue {
  std::variant<std::monostate, std::string_view, int64_t, float, bool, DataType,
               std::shared_ptr<const TensorShape>, std::shared_ptr<const TensorValue>,
               std::shared_ptr<const FunctionRef>, std::shared_ptr<const AttrList>, AttrPlaceholder>
      value;
};

struct Node {
  std::string_view name, op;
  /// "n", "n:1", in functions "n:output:0", and "^n" for one that only has to come before.
  std::vector<std::string_view> inputs;
  /// Attributes at their default may be left out.
  Attributes attributes;
};

struct Argument {
  std::string_view name;
  DataType type = DataType::kInvalid;
  std::string_view number_attr, type_list_attr;
};
struct Function {
  std::string_view name;
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string_view, std::string_view> results;  ///< output -> "node:output:0"
  Attributes attributes;
};

struct Graph {
  std::vector<Node> nodes;
  std::map<std::string_view, Function> functions;
  int64_t producer = 0;
};

struct TensorInfo {
  std::string name;  ///< "serving_default_x:0"
  DataType dtype = DataType::kInvalid;
  TensorShape shape;
};
struct Signature {
  std::map<std::string, TensorInfo> inputs, outputs;  ///< by the service's names
  std::string method;
};

/// A variable's elements, whose checksum was right.
struct Variable {
  DataType dtype = DataType::kInvalid;
  std::vector<int64_t> shape;
  std::string_view data;
};
/// The elements of one of strings: their lengths, a checksum of these, and their bytes behind each other.
/// Throws Error(kInvalidModel) where there are not `count` of them.
std::vector<std::string_view> variable_texts(std::string_view data, uint64_t count);

/// An object of the program: a variable, a function's captured constant …
struct SavedObject {
  bool is_variable = false;
  std::string name;            ///< of a variable
  std::string checkpoint_key;  ///< of its elements in `variables`; "" where it has none
};

/// A file of the model, "assets/NAME"; without content where it is not there.
struct SavedAsset {
  std::string name;
  std::optional<std::string_view> content;
};

struct SavedModel {
  std::vector<std::string> tags;
  std::string tensorflow_version;
  Graph graph;
  std::map<std::string, Signature> signatures;
  std::vector<SavedObject> objects;
  /// Of each function: which objects its inputs behind the user's are.
  std::map<std::string, std::vector<int64_t>> bound_inputs;
  std::map<std::string, Variable> variables;  ///< by checkpoint key
  std::map<std::string, SavedAsset> assets;   ///< files, by the node that stands for their names
  /// The node that reads the checkpoint, and the one that stands for its name; "" where there is none.
  std::string restore_node, checkpoint_node;
};

/// A GraphDef. Throws Error(kInvalidModel) with the byte; a million nodes and two million attributes at most.
Graph read_graph(std::string_view bytes);

using wire::ModelFiles;
/// A SavedModel of one meta graph, of several the one with tag "serve". Throws Error(kInvalidModel) naming
/// the file and the byte.
SavedModel read_saved_model(const ModelFiles& files);
/// The variables of a checkpoint: "PREFIX.index" and "PREFIX.data-00000-of-00001" ... The same.
std::map<std::string, Variable> read_variables(const ModelFiles& files, const std::string& prefix);

/// Nodes that nothing reads, but those that only check: the results of a graph without a signature.
std::vector<const Node*> result_nodes(const Graph& graph);
FileFacts facts_of(const Graph& graph);
FileFacts facts_of(const SavedModel& model);

}  // namespace tensormill::frontend::tensorflow
