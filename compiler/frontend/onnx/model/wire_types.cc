#include "compiler/frontend/onnx/model/wire_types.h"

#include "runtime/base/hex.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

using wire::WireReader;

namespace {

Dim parse_dim(WireReader reader) {
  Dim dim = std::string();
  while (const int field = reader.next()) {
    if (field == 1) dim = reader.int64("dim_value");
    if (field == 2) dim = name_of(reader, "dim_param");
  }
  // A negative dim_value is how some exporters write "free".
  if (const int64_t* extent = std::get_if<int64_t>(&dim); extent != nullptr && *extent < 0)
    dim = std::string();
  return dim;
}

void parse_tensor_type(WireReader reader, ValueInfoProto& value) {
  while (const int field = reader.next()) {
    if (field == 1) value.elem_type = reader.int32("elem_type");
    if (field == 2) {
      value.has_shape = true;
      WireReader shape = reader.message("shape");
      while (const int shape_field = shape.next()) {
        if (shape_field == 1) value.shape.push_back(parse_dim(shape.message("dim")));
      }
    }
  }
}

ValueKind parse_type(WireReader type, ValueInfoProto& value);

/// TypeProto.Map: key_type and value_type.
ValueKind parse_map_type(WireReader map, ValueInfoProto& value) {
  ValueKind inner = ValueKind::kOther;
  while (const int field = map.next()) {
    if (field == 1) value.key_type = map.int32("key type");
    if (field == 2) inner = parse_type(map.message("value type"), value);
  }
  return inner == ValueKind::kTensor ? ValueKind::kMap : ValueKind::kOther;
}

/// TypeProto: tensor_type, sequence_type, map_type or optional_type; element types and shape of what is
/// inside.
ValueKind parse_type(WireReader type, ValueInfoProto& value) {
  ValueKind kind = ValueKind::kOther;
  while (const int field = type.next()) {
    if (field == 1) {
      parse_tensor_type(type.message("tensor type"), value);
      kind = ValueKind::kTensor;
    }
    if (field == 5) kind = parse_map_type(type.message("map type"), value);
    if (field == 4 || field == 9) {
      const bool is_sequence = field == 4;
      WireReader holder = type.message("element type");
      ValueKind inner = ValueKind::kOther;
      while (const int holder_field = holder.next()) {
        if (holder_field == 1) inner = parse_type(holder.message("type"), value);
      }
      if (inner == ValueKind::kTensor) kind = is_sequence ? ValueKind::kSequence : ValueKind::kOptional;
      if (inner == ValueKind::kSequence && !is_sequence) kind = ValueKind::kOptionalSequence;
    }
  }
  return kind;
}

}  // namespace

std::string name_of(WireReader& reader, const char* what) {
  std::string name = reader.string(what);
  if (is_utf8(name)) return name;
  std::string text;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x80) {
      text += c;
    } else {
      text += "\\x";
      append_hex(text, static_cast<uint8_t>(c));
    }
  }
  return text;
}

ValueInfoProto parse_value_info(WireReader reader) {
  ValueInfoProto value;
  while (const int field = reader.next()) {
    if (field == 1) value.name = name_of(reader, "value name");
    if (field == 2) {
      value.kind = parse_type(reader.message("value type"), value);
      value.is_tensor = value.kind == ValueKind::kTensor;
    }
  }
  return value;
}

}  // namespace tensormill::frontend::onnx
