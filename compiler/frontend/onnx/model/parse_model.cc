#include <array>

#include "compiler/frontend/onnx/model/model_proto.h"
#include "compiler/frontend/onnx/model/wire_types.h"
#include "compiler/frontend/wire/protobuf.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

using wire::WireReader;

void parse_external_entry(WireReader reader, TensorProto& tensor) {
  std::string key;
  std::string value;
  while (const int field = reader.next()) {
    if (field == 1) key = reader.string("external data key");
    if (field == 2) value = reader.string("external data value");
  }
  tensor.external_data[key] = value;
}

TensorProto parse_tensor(WireReader reader) {
  TensorProto tensor;
  while (const int field = reader.next()) {
    if (field == 1) reader.append_varints(tensor.dims, "tensor dims");
    if (field == 2) tensor.data_type = reader.int32("tensor data_type");
    if (field == 3) reader.fail("tensor segments are not supported");
    if (field == 4) reader.append_floats(tensor.float_data, "tensor float_data");
    if (field == 5 || field == 7) reader.append_varints(tensor.int_data, "tensor int data");
    if (field == 6) tensor.string_data.push_back(reader.bytes("tensor string_data"));
    if (field == 8) tensor.name = name_of(reader, "tensor name");
    if (field == 9) tensor.raw_data = reader.bytes("tensor raw_data");
    if (field == 10) reader.append_doubles(tensor.double_data, "tensor double_data");
    if (field == 11) reader.append_uint64s(tensor.uint64_data, "tensor uint64_data");
    if (field == 13) parse_external_entry(reader.message("tensor external_data"), tensor);
    if (field == 14) tensor.external = reader.varint("tensor data_location") == 1;
  }
  return tensor;
}

TensorProto parse_sparse_tensor(WireReader reader) {
  TensorProto tensor;
  const auto parts = std::make_shared<SparseParts>();
  while (const int field = reader.next()) {
    if (field == 1) parts->values = parse_tensor(reader.message("sparse tensor values"));
    if (field == 2) parts->indices = parse_tensor(reader.message("sparse tensor indices"));
    if (field == 3) reader.append_varints(tensor.dims, "sparse tensor dims");
  }
  tensor.name = parts->values.name;
  tensor.data_type = parts->values.data_type;
  tensor.sparse = parts;
  return tensor;
}

GraphProto parse_graph(WireReader reader);

AttributeProto parse_attribute(WireReader reader) {
  AttributeProto attribute;
  const auto add_graph = [&](GraphProto graph) {
    attribute.graphs.push_back(std::make_shared<const GraphProto>(std::move(graph)));
  };
  while (const int field = reader.next()) {
    if (field == 1) attribute.name = name_of(reader, "attribute name");
    if (field == 2) attribute.f = reader.fixed_float("attribute f");
    if (field == 3) attribute.i = reader.int64("attribute i");
    if (field == 4) attribute.s = reader.bytes("attribute s");
    if (field == 5) attribute.t = parse_tensor(reader.message("attribute t"));
    if (field == 6) add_graph(parse_graph(reader.message("attribute g")));
    if (field == 7) reader.append_floats(attribute.floats, "attribute floats");
    if (field == 8) reader.append_varints(attribute.ints, "attribute ints");
    if (field == 9) attribute.strings.push_back(reader.bytes("attribute strings"));
    if (field == 11) add_graph(parse_graph(reader.message("attribute graphs")));
    if (field == 20) attribute.type = static_cast<AttributeType>(reader.int32("attribute type"));
    if (field == 21) attribute.ref_attr_name = name_of(reader, "attribute ref_attr_name");
    if (field == 22) attribute.t = parse_sparse_tensor(reader.message("attribute sparse_tensor"));
  }
  return attribute;
}

NodeProto parse_node(WireReader reader) {
  NodeProto node;
  while (const int field = reader.next()) {
    if (field == 1) node.inputs.push_back(name_of(reader, "node input"));
    if (field == 2) node.outputs.push_back(name_of(reader, "node output"));
    if (field == 3) node.name = name_of(reader, "node name");
    if (field == 4) node.op_type = name_of(reader, "node op_type");
    if (field == 5) node.attributes.push_back(parse_attribute(reader.message("node attribute")));
    if (field == 7) node.domain = name_of(reader, "node domain");
    if (field == 8) node.overload = name_of(reader, "node overload");
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

GraphProto parse_graph(WireReader reader) {
  GraphProto graph;
  while (const int field = reader.next()) {
    if (field == 1) graph.nodes.push_back(parse_node(reader.message("node")));
    if (field == 2) graph.name = name_of(reader, "graph name");
    if (field == 5) graph.initializers.push_back(parse_tensor(reader.message("initializer")));
    if (field == 11) graph.inputs.push_back(parse_value_info(reader.message("graph input")));
    if (field == 12) graph.outputs.push_back(parse_value_info(reader.message("graph output")));
    if (field == 15) graph.initializers.push_back(parse_sparse_tensor(reader.message("sparse_initializer")));
  }
  return graph;
}

void parse_opset(WireReader reader, std::map<std::string, int64_t>& opsets) {
  std::string domain;
  int64_t version = 0;
  while (const int field = reader.next()) {
    if (field == 1) domain = name_of(reader, "opset domain");
    if (field == 2) version = reader.int64("opset version");
  }
  if (domain == "ai.onnx") domain.clear();
  opsets[domain] = version;
}

FunctionProto parse_function(WireReader reader) {
  FunctionProto function;
  const auto value = [](std::string name) {
    ValueInfoProto info;
    info.name = std::move(name);
    return info;
  };
  while (const int field = reader.next()) {
    if (field == 1) function.name = name_of(reader, "function name");
    if (field == 4) function.body.inputs.push_back(value(name_of(reader, "function input")));
    if (field == 5) function.body.outputs.push_back(value(name_of(reader, "function output")));
    if (field == 6) function.attributes.push_back(name_of(reader, "function attribute"));
    if (field == 7) function.body.nodes.push_back(parse_node(reader.message("function node")));
    if (field == 9) parse_opset(reader.message("function opset_import"), function.opsets);
    if (field == 10) function.domain = name_of(reader, "function domain");
    if (field == 11) function.defaults.push_back(parse_attribute(reader.message("function attribute_proto")));
    if (field == 13) function.overload = name_of(reader, "function overload");
  }
  function.body.name = function.name;
  if (function.domain == "ai.onnx") function.domain.clear();
  return function;
}

struct DataTypeRow {
  int32_t value;
  const char* name;
  std::optional<DType> dtype;
};

const std::array<DataTypeRow, 27>& data_types() {
  static const std::array<DataTypeRow, 27> rows = {{
      {0, "UNDEFINED", {}},
      {1, "FLOAT", DType::kFloat32},
      {2, "UINT8", DType::kUInt8},
      {3, "INT8", DType::kInt8},
      {4, "UINT16", DType::kUInt16},
      {5, "INT16", DType::kInt16},
      {6, "INT32", DType::kInt32},
      {7, "INT64", DType::kInt64},
      {8, "STRING", kString},
      {9, "BOOL", DType::kBool},
      {10, "FLOAT16", DType::kFloat16},
      {11, "DOUBLE", DType::kFloat64},
      {12, "UINT32", DType::kUInt32},
      {13, "UINT64", DType::kUInt64},
      {14, "COMPLEX64", {}},
      {15, "COMPLEX128", {}},
      {16, "BFLOAT16", DType::kBFloat16},
      {17, "FLOAT8E4M3FN", kFloat8E4M3FN},
      {18, "FLOAT8E4M3FNUZ", kFloat8E4M3FNUZ},
      {19, "FLOAT8E5M2", kFloat8E5M2},
      {20, "FLOAT8E5M2FNUZ", kFloat8E5M2FNUZ},
      {21, "UINT4", kUInt4},
      {22, "INT4", kInt4},
      {23, "FLOAT4E2M1", kFloat4E2M1},
      {24, "FLOAT8E8M0", kFloat8E8M0},
      {25, "UINT2", kUInt2},
      {26, "INT2", kInt2},
  }};
  return rows;
}

}  // namespace

const AttributeProto* NodeProto::find(std::string_view attribute) const {
  for (const AttributeProto& candidate : attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

ModelProto parse_model(std::string_view bytes) {
  constexpr size_t kLimit = (size_t{1} << 31) - 1;
  if (bytes.size() > kLimit) {
    throw Error(ErrorCode::kInvalidModel, "the model file has " + std::to_string(bytes.size()) +
                                              " bytes; more than " + std::to_string(kLimit) +
                                              " need external data");
  }
  if (bytes.empty()) throw Error(ErrorCode::kInvalidModel, "the model file is empty");
  ModelProto model;
  bool has_graph = false;
  WireReader reader(bytes, bytes.data(), 0);
  while (const int field = reader.next()) {
    if (field == 1) model.ir_version = reader.int64("ir_version");
    if (field == 2) model.producer = name_of(reader, "producer_name");
    if (field == 7) {
      model.graph = parse_graph(reader.message("graph"));
      has_graph = true;
    }
    if (field == 8) parse_opset(reader.message("opset_import"), model.opsets);
    if (field == 25) model.functions.push_back(parse_function(reader.message("function")));
  }
  if (!has_graph) throw Error(ErrorCode::kInvalidModel, "the file has no graph: not an ONNX model");
  return model;
}

std::optional<DType> dtype_of(int32_t data_type) {
  if (data_type < 0 || static_cast<size_t>(data_type) >= data_types().size()) return std::nullopt;
  return data_types()[static_cast<size_t>(data_type)].dtype;
}

std::string data_type_name(int32_t data_type) {
  if (data_type < 0 || static_cast<size_t>(data_type) >= data_types().size())
    return "type " + std::to_string(data_type);
  return data_types()[static_cast<size_t>(data_type)].name;
}

}  // namespace tensormill::frontend::onnx
