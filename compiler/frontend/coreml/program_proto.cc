#include "compiler/frontend/coreml/program_proto.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::coreml {

using wire::WireReader;

/// An entry of a map: the key, and what `read` makes of the value's message.
template <typename Made>
std::pair<std::string_view, Made> ProgramReader::map_entry(WireReader entry, const char* what,
                                                           Made (ProgramReader::*read)(WireReader)) {
  values_.spend(1);
  std::pair<std::string_view, Made> to;
  while (const int field = entry.next()) {
    if (field == 1) to.first = entry.bytes(what);
    if (field == 2) to.second = (this->*read)(entry.message(what));
  }
  if (!is_utf8(to.first)) entry.fail(std::string(what) + " whose name is not UTF-8");
  return to;
}

int64_t ProgramReader::dimension(WireReader reader) {
  int64_t size = -1;
  while (const int field = reader.next()) {
    if (field != 1) continue;
    WireReader constant = reader.message("a dimension");
    size = 0;
    while (const int constant_field = constant.next()) {
      if (constant_field == 1) size = constant.int64("a dimension's size");
    }
    if (size < 0) reader.fail("a dimension of " + std::to_string(size));
  }
  return size;
}

TensorType ProgramReader::tensor_type(WireReader reader) {
  TensorType to;
  int64_t rank = 0;
  while (const int field = reader.next()) {
    if (field == 1) to.dtype = static_cast<DataType>(reader.int32("a type of elements"));
    if (field == 2) rank = reader.int64("a rank");
    if (field == 3) {
      values_.spend(1);
      to.dims.push_back(dimension(reader.message("a dimension")));
    }
  }
  to.has_rank = rank >= 0;
  if (to.has_rank && static_cast<uint64_t>(rank) != to.dims.size())
    reader.fail("a type of rank " + std::to_string(rank) + " with " + std::to_string(to.dims.size()) +
                " dimensions");
  return to;
}

ValueType ProgramReader::value_type(WireReader reader) {
  ValueType to;
  while (const int field = reader.next()) {
    if (field == 1) to.tensor = tensor_type(reader.message("a tensor's type"));
    if (field == 2) to.kind = ValueKind::kList;
    if (field == 3) to.kind = ValueKind::kTuple;
    if (field == 4) to.kind = ValueKind::kDictionary;
    if (field == 5) {
      WireReader state = reader.message("a state's type");
      while (const int state_field = state.next()) {
        if (state_field == 1) to = value_type(state.message("a wrapped type"));
      }
      to.kind = ValueKind::kState;
    }
  }
  return to;
}

NamedType ProgramReader::named_type(WireReader reader) {
  values_.spend(1);
  NamedType to;
  while (const int field = reader.next()) {
    if (field == 1) to.name = reader.bytes("a value's name");
    if (field == 2) to.type = value_type(reader.message("a value's type"));
  }
  if (to.name.empty() || !is_utf8(to.name)) reader.fail("a value without a name in UTF-8");
  return to;
}

void ProgramReader::append(WireReader reader, int kind, Elements& to) {
  while (const int field = reader.next()) {
    if (field != 1) continue;
    const size_t before = to.floats.size() + to.doubles.size() + to.ints.size() + to.strings.size();
    switch (kind) {
      case 1:
        reader.append_floats(to.floats, "floats");
        break;
      case 4:
        to.strings.push_back(reader.bytes("a text"));
        break;
      case 6:
        reader.append_doubles(to.doubles, "doubles");
        break;
      case 7:
        to.bytes = reader.bytes("bytes");
        break;
      default:
        reader.append_varints(to.ints, "integers");
    }
    elements_.spend(to.floats.size() + to.doubles.size() + to.ints.size() + to.strings.size() - before);
  }
  // A tensor without elements has an empty list.
  if (kind == 7 && !to.bytes) to.bytes = std::string_view();
}

Elements ProgramReader::elements(WireReader reader) {
  Elements to;
  while (const int field = reader.next()) {
    if (field >= 1 && field <= 7) append(reader.message("elements"), field, to);
  }
  return to;
}

void ProgramReader::immediate(WireReader reader, Value& to) {
  while (const int field = reader.next()) {
    if (field == 1) to.data = elements(reader.message("a tensor's elements"));
    if (field == 2 || field == 3) {
      WireReader list = reader.message("a list of values");
      std::vector<Value> all;
      while (const int list_field = list.next()) {
        if (list_field == 1) all.push_back(value(list.message("a value of a list")));
      }
      to.data = std::move(all);
    }
  }
}

Value ProgramReader::value(WireReader reader) {
  values_.spend(1);
  Value to;
  while (const int field = reader.next()) {
    if (field == 2) to.type = value_type(reader.message("a value's type"));
    if (field == 3) immediate(reader.message("an immediate value"), to);
    if (field == 5) {
      BlobRef blob;
      WireReader file = reader.message("a value in a file");
      while (const int file_field = file.next()) {
        if (file_field == 1) blob.file = file.bytes("a file's name");
        if (file_field == 2) blob.offset = file.varint("an offset");
      }
      if (!is_utf8(blob.file)) file.fail("a file whose name is not UTF-8");
      to.data = blob;
    }
  }
  return to;
}

std::vector<Binding> ProgramReader::argument(WireReader reader) {
  std::vector<Binding> to;
  while (const int field = reader.next()) {
    if (field != 1) continue;
    values_.spend(1);
    Binding binding;
    WireReader each = reader.message("an operand");
    while (const int each_field = each.next()) {
      if (each_field == 1) binding.name = each.bytes("an operand's name");
      if (each_field == 2)
        binding.value = std::make_shared<const Value>(value(each.message("an operand's value")));
    }
    if (!is_utf8(binding.name)) each.fail("an operand whose name is not UTF-8");
    to.push_back(std::move(binding));
  }
  return to;
}

Operation ProgramReader::operation(WireReader reader) {
  operations_.spend(1);
  Operation to;
  while (const int field = reader.next()) {
    if (field == 1) to.type = reader.bytes("an operation's type");
    if (field == 2)
      to.inputs.insert(map_entry(reader.message("an operand"), "an operand", &ProgramReader::argument));
    if (field == 3) to.outputs.push_back(named_type(reader.message("an operation's output")));
    if (field == 4) to.blocks.push_back(block(reader.message("an operation's block")));
    if (field == 5)
      to.attributes.insert(map_entry(reader.message("an attribute"), "an attribute", &ProgramReader::value));
  }
  if (to.type.empty() || !is_utf8(to.type)) reader.fail("an operation without a type in UTF-8");
  const auto name = to.attributes.find("name");
  const auto* texts = name == to.attributes.end() ? nullptr : std::get_if<Elements>(&name->second.data);
  if (texts != nullptr && texts->strings.size() == 1 && is_utf8(texts->strings[0]))
    to.label = texts->strings[0];
  return to;
}

Block ProgramReader::block(WireReader reader) {
  operations_.spend(1);
  Block to;
  while (const int field = reader.next()) {
    if (field == 1) to.inputs.push_back(named_type(reader.message("a block's input")));
    if (field == 2) {
      values_.spend(1);
      to.outputs.push_back(reader.bytes("a block's output"));
      if (!is_utf8(to.outputs.back())) reader.fail("a block's output whose name is not UTF-8");
    }
    if (field == 3) to.operations.push_back(operation(reader.message("an operation")));
  }
  return to;
}

Function ProgramReader::function(WireReader reader) {
  operations_.spend(1);
  Function to;
  bool has_block = false;
  std::string others;
  while (const int field = reader.next()) {
    if (field == 1) to.inputs.push_back(named_type(reader.message("a function's input")));
    if (field == 3) {
      auto [opset, made] = map_entry(reader.message("a block"), "a block", &ProgramReader::block);
      if (opset_number(opset) == 0) others += (others.empty() ? "" : ", ") + std::string(opset.substr(0, 40));
      if (opset_number(opset) <= opset_number(to.opset)) continue;
      to.opset = opset;
      to.block = std::move(made);
      has_block = true;
    }
  }
  if (!has_block && others.empty()) reader.fail("a function without a block");
  if (!has_block)
    throw Error(ErrorCode::kNotSupported, "a function has blocks for " + others.substr(0, 200) +
                                              " alone, and operations of CoreML5 to CoreML9 are known");
  return to;
}

std::vector<Function> ProgramReader::functions(WireReader reader) {
  std::map<std::string_view, Function> all;
  while (const int field = reader.next()) {
    if (field != 2) continue;
    auto [name, made] = map_entry(reader.message("a function"), "a function", &ProgramReader::function);
    made.name = name;
    if (name.empty() || !is_utf8(name) || !all.emplace(name, std::move(made)).second)
      reader.fail("a function has no name in UTF-8, or stands twice");
  }
  if (all.empty()) reader.fail("the program has no function");
  std::vector<Function> to;
  for (auto& [name, made] : all) to.push_back(std::move(made));
  return to;
}

}  // namespace tensormill::frontend::coreml
