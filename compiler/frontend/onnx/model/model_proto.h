/// The parts of onnx.proto that import reads, as plain structs over the mapped file: bytes are views, never
/// copies. Field numbers are those of the ONNX standard (onnx.proto3, IR versions 3 to 12). Thread-safety:
/// values; views live as long as the mapping.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/onnx/graph/value_kind.h"
#include "runtime/base/shape.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::onnx {

struct GraphProto;
struct SparseParts;

struct TensorProto {
  std::string name;
  int32_t data_type = 0;  ///< TensorProto.DataType
  Shape dims;
  std::optional<std::string_view> raw_data;
  std::vector<float> float_data;
  std::vector<int64_t> int_data;  ///< int32_data and int64_data
  std::vector<uint64_t> uint64_data;
  std::vector<double> double_data;
  std::vector<std::string_view> string_data;
  bool external = false;
  std::map<std::string, std::string> external_data;
  std::shared_ptr<const SparseParts> sparse;  ///< set: the elements of a SparseTensorProto of these dims
};

/// What a sparse tensor holds: values [n], and their indices [n] in the flat tensor or [n,rank].
struct SparseParts {
  TensorProto values, indices;
};

enum class AttributeType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

struct AttributeProto {
  std::string name;
  AttributeType type = AttributeType::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::optional<TensorProto> t;                           ///< t or sparse_tensor
  std::vector<std::shared_ptr<const GraphProto>> graphs;  ///< g and graphs
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::string ref_attr_name;
};

struct ValueInfoProto {
  std::string name;
  bool is_tensor = false;
  ValueKind kind = ValueKind::kOther;
  int32_t elem_type = 0;  ///< of a map: of its values
  int32_t key_type = 0;   ///< of a map
  bool has_shape = false;
  DimShape shape;
};

struct NodeProto {
  std::vector<std::string> inputs;   ///< "" for an absent operand
  std::vector<std::string> outputs;  ///< "" for an output that is not wanted
  std::string name;
  std::string op_type;
  std::string domain;
  std::string overload;
  std::vector<AttributeProto> attributes;
  const AttributeProto* find(std::string_view attribute) const;
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;  ///< sparse ones, too
  std::vector<ValueInfoProto> inputs;
  std::vector<ValueInfoProto> outputs;
};

/// A function that the model defines; its body's inputs and outputs have names and no types.
struct FunctionProto {
  std::string domain;
  std::string name;
  std::string overload;
  GraphProto body;
  std::vector<std::string> attributes;   ///< without a default; a call may leave one out
  std::vector<AttributeProto> defaults;  ///< of those that it may leave out
  std::map<std::string, int64_t> opsets;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  ///< "" is ai.onnx
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

/// Reads the wire format. Throws Error(kInvalidModel) with the byte offset for anything that is not a model:
/// bad varints, lengths past the end, nesting past a bound, wire types that a field cannot have.
ModelProto parse_model(std::string_view bytes);

/// The element type of TensorProto.DataType; nothing for types that tensors here cannot have.
std::optional<DType> dtype_of(int32_t data_type);
/// "FLOAT8E4M3FN" and so on, for messages.
std::string data_type_name(int32_t data_type);

}  // namespace tensormill::frontend::onnx
