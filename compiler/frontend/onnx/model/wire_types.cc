#include "compiler/frontend/onnx/model/wire_types.h"

#include "runtime/base/hex.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

using wire::WireReader;

namespace {

Dim parse_dim(WireReader reader) {
  Dim dim = std::string();
  while (reader.next()) {
    if (reader.field() == 1) {
      dim = reader.int64("dim_value");
    } else if (reader.field() == 2) {
      dim = name_of(reader, "dim_param");
    } else {
      reader.skip();
    }
  }
  // A negative dim_value is how some exporters write "free".
  if (const int64_t* extent = std::get_if<int64_t>(&dim); extent != nullptr && *extent < 0)
    dim = std::string();
  return dim;
}

void parse_tensor_type(WireReader reader, ValueInfoProto& value) {
  while (reader.next()) {
    if (reader.field() == 1) {
      value.elem_type = reader.int32("elem_type");
    } else if (reader.field() == 2) {
      value.has_shape = true;
      WireReader shape = reader.message("shape");
      while (shape.next()) {
        if (shape.field() == 1) {
          value.shape.push_back(parse_dim(shape.message("dim")));
        } else {
          shape.skip();
        }
      }
    } else {
      reader.skip();
    }
  }
}

ValueKind parse_type(WireReader type, ValueInfoProto& value);

/// TypeProto.Map: key_type and value_type.
ValueKind parse_map_type(WireReader map, ValueInfoProto& value) {
  ValueKind inner = ValueKind::kOther;
  while (map.next()) {
    if (map.field() == 1) {
      value.key_type = map.int32("key type");
    } else if (map.field() == 2) {
      inner = parse_type(map.message("value type"), value);
    } else {
      map.skip();
    }
  }
  return inner == ValueKind::kTensor ? ValueKind::kMap : ValueKind::kOther;
}

/// TypeProto: tensor_type, sequence_type, map_type or optional_type; element types and shape of what is
/// inside.
ValueKind parse_type(WireReader type, ValueInfoProto& value) {
  ValueKind kind = ValueKind::kOther;
  while (type.next()) {
    if (type.field() == 1) {
      parse_tensor_type(type.message("tensor type"), value);
      kind = ValueKind::kTensor;
    } else if (type.field() == 5) {
      kind = parse_map_type(type.message("map type"), value);
    } else if (type.field() == 4 || type.field() == 9) {
      const bool is_sequence = type.field() == 4;
      WireReader holder = type.message("element type");
      ValueKind inner = ValueKind::kOther;
      while (holder.next()) {
        if (holder.field() == 1) {
          inner = parse_type(holder.message("type"), value);
        } else {
          holder.skip();
        }
      }
      if (inner == ValueKind::kTensor) kind = is_sequence ? ValueKind::kSequence : ValueKind::kOptional;
      if (inner == ValueKind::kSequence && !is_sequence) kind = ValueKind::kOptionalSequence;
    } else {
      type.skip();
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
  while (reader.next()) {
    if (reader.field() == 1) {
      value.name = name_of(reader, "value name");
    } else if (reader.field() == 2) {
      value.kind = parse_type(reader.message("value type"), value);
      value.is_tensor = value.kind == ValueKind::kTensor;
    } else {
      reader.skip();
    }
  }
  return value;
}

}  // namespace tensormill::frontend::onnx
