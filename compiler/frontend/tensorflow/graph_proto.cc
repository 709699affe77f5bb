#include "compiler/frontend/tensorflow/graph_proto.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

using wire::WireReader;

TensorShape GraphProtoReader::shape(WireReader reader) {
  TensorShape to;
  while (const int field = reader.next()) {
    if (field == 2) {
      WireReader dim = reader.message("a dim");
      int64_t size = 0;
      while (const int dim_field = dim.next()) {
        if (dim_field == 1) size = dim.int64("a dim's size");
      }
      if (size < -1) reader.fail("a dim of " + std::to_string(size));
      elements_.spend(1);
      to.dims.push_back(size);
    }
    if (field == 3) to.has_rank = reader.varint("unknown_rank") == 0;
  }
  return to;
}

TensorValue GraphProtoReader::tensor(WireReader reader) {
  TensorValue to;
  while (const int field = reader.next()) {
    const size_t before = to.floats.size() + to.doubles.size() + to.ints.size() + to.strings.size();
    if (field == 1) to.dtype = static_cast<DataType>(reader.int32("dtype"));
    if (field == 2) to.shape = shape(reader.message("tensor_shape"));
    if (field == 4) to.content = reader.bytes("tensor_content");
    if (field == 5) reader.append_floats(to.floats, "float_val");
    if (field == 6) reader.append_doubles(to.doubles, "double_val");
    if (field == 7 || field == 10 || field == 11 || field == 13 || field == 16 || field == 17)
      reader.append_varints(to.ints, "int_val");
    if (field == 8) to.strings.push_back(reader.bytes("string_val"));
    if (field == 9) reader.append_floats(to.floats, "scomplex_val");
    if (field == 12) reader.append_doubles(to.doubles, "dcomplex_val");
    elements_.spend(to.floats.size() + to.doubles.size() + to.ints.size() + to.strings.size() - before);
  }
  uint64_t bytes = static_cast<uint64_t>(type_bytes(to.dtype));
  for (const int64_t dim : to.shape.dims)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      reader.fail("a constant without a shape");
  if (!to.content.empty() && type_bytes(to.dtype) > 0 && to.content.size() != bytes)
    reader.fail("a constant of " + std::to_string(to.content.size()) + " bytes, its shape and type say " +
                std::to_string(bytes));
  return to;
}

FunctionRef GraphProtoReader::function_ref(WireReader reader) {
  FunctionRef to;
  while (const int field = reader.next()) {
    if (field == 1) to.name = reader.bytes("a function's name");
    if (field == 2) attribute(reader.message("an attribute"), to.attributes);
  }
  return to;
}

AttrList GraphProtoReader::attr_list(WireReader reader) {
  AttrList to;
  std::vector<int64_t> types, bools;
  while (const int field = reader.next()) {
    const size_t before = to.ints.size() + to.floats.size() + types.size() + bools.size();
    if (field == 2) to.strings.push_back(reader.bytes("a text of a list"));
    if (field == 3) reader.append_varints(to.ints, "integers of a list");
    if (field == 4) reader.append_floats(to.floats, "floats of a list");
    if (field == 5) reader.append_varints(bools, "bools of a list");
    if (field == 6) reader.append_varints(types, "types of a list");
    if (field == 7) to.shapes.push_back(shape(reader.message("a shape of a list")));
    if (field == 8) to.tensors.push_back(tensor(reader.message("a tensor of a list")));
    if (field == 9) to.functions.push_back(function_ref(reader.message("a function of a list")));
    elements_.spend(1 + to.ints.size() + to.floats.size() + types.size() + bools.size() - before);
  }
  for (const int64_t type : types) to.types.push_back(static_cast<DataType>(type));
  for (const int64_t each : bools) to.bools.push_back(each != 0);
  return to;
}

AttrValue GraphProtoReader::attr_value(WireReader reader) {
  AttrValue to;
  while (const int field = reader.next()) {
    if (field == 1) to.value = std::make_shared<const AttrList>(attr_list(reader.message("a list")));
    if (field == 2) to.value = reader.bytes("a text");
    if (field == 3) to.value = reader.int64("an integer");
    if (field == 4) to.value = reader.fixed_float("a float");
    if (field == 5) to.value = reader.varint("a bool") != 0;
    if (field == 6) to.value = static_cast<DataType>(reader.int32("a type"));
    if (field == 7) to.value = std::make_shared<const TensorShape>(shape(reader.message("a shape")));
    if (field == 8) to.value = std::make_shared<const TensorValue>(tensor(reader.message("a tensor")));
    if (field == 9) to.value = AttrPlaceholder{reader.bytes("a placeholder")};
    if (field == 10)
      to.value = std::make_shared<const FunctionRef>(function_ref(reader.message("a function")));
  }
  return to;
}

/// An entry of a map: a key and a value.
void GraphProtoReader::attribute(WireReader entry, Attributes& to) {
  attributes_.spend(1);
  std::string_view name;
  AttrValue value;
  while (const int field = entry.next()) {
    if (field == 1) name = entry.bytes("an attribute's name");
    if (field == 2) value = attr_value(entry.message("an attribute's value"));
  }
  to[name] = std::move(value);
}

Node GraphProtoReader::node(WireReader reader) {
  Node to = fields_of_node(reader);
  if (to.name.empty() || to.op.empty()) reader.fail("a node without a name or an operator");
  return to;
}

Node GraphProtoReader::single_node(std::string_view bytes) {
  WireReader reader(bytes, bytes.data(), 0);
  Node to = fields_of_node(reader);
  if (to.op.empty()) reader.fail("a node without an operator");
  if (to.name.empty()) to.name = to.op;
  return to;
}

Node GraphProtoReader::fields_of_node(WireReader& reader) {
  nodes_.spend(1);
  Node to;
  while (const int field = reader.next()) {
    if (field == 1) to.name = reader.bytes("a node's name");
    if (field == 2) to.op = reader.bytes("a node's operator");
    if (field == 3) {
      elements_.spend(1);
      to.inputs.push_back(reader.bytes("a node's input"));
    }
    if (field == 5) attribute(reader.message("an attribute"), to.attributes);
  }
  if (!is_utf8(to.name) || !is_utf8(to.op)) reader.fail("a node whose name or operator is not UTF-8");
  return to;
}

Argument GraphProtoReader::argument(WireReader reader) {
  elements_.spend(1);
  Argument to;
  while (const int field = reader.next()) {
    if (field == 1) to.name = reader.bytes("an argument's name");
    if (field == 3) to.type = static_cast<DataType>(reader.int32("an argument's type"));
    if (field == 5) to.number_attr = reader.bytes("number_attr");
    if (field == 6) to.type_list_attr = reader.bytes("type_list_attr");
  }
  return to;
}

void GraphProtoReader::signature(WireReader reader, Function& to) {
  while (const int field = reader.next()) {
    if (field == 1) to.name = reader.bytes("a function's name");
    if (field == 2) to.inputs.push_back(argument(reader.message("input_arg")));
    if (field == 3) to.outputs.push_back(argument(reader.message("output_arg")));
  }
}

Function GraphProtoReader::function(WireReader reader) {
  nodes_.spend(1);
  Function to;
  while (const int field = reader.next()) {
    if (field == 1) signature(reader.message("a function's signature"), to);
    if (field == 3) to.nodes.push_back(node(reader.message("a node")));
    if (field == 4) {
      elements_.spend(1);
      WireReader entry = reader.message("a result");
      std::string_view name, value;
      while (const int entry_field = entry.next()) {
        if (entry_field == 1) name = entry.bytes("a result's name");
        if (entry_field == 2) value = entry.bytes("a result's value");
      }
      to.results[name] = value;
    }
    if (field == 5) attribute(reader.message("an attribute"), to.attributes);
  }
  return to;
}

Graph GraphProtoReader::graph(WireReader reader) {
  Graph to;
  while (const int field = reader.next()) {
    if (field == 1) to.nodes.push_back(node(reader.message("a node")));
    if (field == 2) {
      WireReader library = reader.message("the library of functions");
      while (const int library_field = library.next()) {
        if (library_field != 1) continue;
        Function made = function(library.message("a function"));
        const std::string_view name = made.name;
        if (name.empty() || !to.functions.emplace(name, std::move(made)).second)
          library.fail("function \"" + std::string(name.substr(0, 200)) + "\" has no name, or stands twice");
      }
    }
    if (field == 4) {
      WireReader versions = reader.message("versions");
      while (const int versions_field = versions.next()) {
        if (versions_field == 1) to.producer = versions.int64("producer");
      }
    }
  }
  return to;
}

Graph read_graph(std::string_view bytes) {
  Graph graph = GraphProtoReader().graph(WireReader(bytes, bytes.data(), 0));
  if (graph.nodes.empty()) throw Error(ErrorCode::kInvalidModel, "the graph has no node");
  return graph;
}

}  // namespace tensormill::frontend::tensorflow
