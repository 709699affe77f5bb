#include "compiler/frontend/formats/protobuf_format.h"

#include <algorithm>
#include <cctype>

namespace tensormill::frontend {

namespace {

constexpr size_t kMaxFields = 4096;
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

struct Field {
  uint64_t number = 0;
  int type = 0;
  uint64_t value = 0;      ///< of a varint
  std::string_view bytes;  ///< of a field with a length, as far as they are there
};

struct Fields {
  std::vector<Field> all;
  bool is_whole = false;  ///< they end where the bytes do
  const Field* find(uint64_t number, int type) const {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Field& field) {
      return field.number == number && field.type == type;
    });
    return found == all.end() ? nullptr : &*found;
  }
};

bool take_varint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < 10 && i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      bytes.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

/// The first fields, until something is none; a field that is cut off is the last.
Fields first_fields(std::string_view bytes) {
  Fields fields;
  uint64_t tag = 0;
  while (!bytes.empty() && fields.all.size() < kMaxFields && take_varint(bytes, tag)) {
    Field field{tag >> 3, static_cast<int>(tag & 7), 0, {}};
    const size_t fixed = field.type == kFixed64 ? 8 : 4;
    if (field.number == 0 || field.number > (1u << 29)) return fields;
    if (field.type == kVarint) {
      if (!take_varint(bytes, field.value)) return fields;
    } else if (field.type == kBytes) {
      if (!take_varint(bytes, field.value)) return fields;
      field.bytes = bytes.substr(0, field.value);
      bytes.remove_prefix(field.bytes.size());
      if (field.bytes.size() < field.value) {
        fields.all.push_back(field);
        return fields;
      }
    } else if (field.type == kFixed64 || field.type == kFixed32) {
      if (bytes.size() < fixed) return fields;
      bytes.remove_prefix(fixed);
    } else {
      return fields;
    }
    fields.all.push_back(field);
  }
  fields.is_whole = bytes.empty();
  return fields;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() < 1024 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
}

/// NodeDef: a name and an operator, and no field beyond the inputs, the device, attributes and debug
/// information.
bool is_node_def(std::string_view bytes) {
  const Fields node = first_fields(bytes);
  const Field* name = node.find(1, kBytes);
  const Field* op = node.find(2, kBytes);
  return name != nullptr && op != nullptr && is_word(name->bytes) && is_word(op->bytes) &&
         std::all_of(node.all.begin(), node.all.end(),
                     [](const Field& field) { return field.type == kBytes && field.number <= 8; });
}

/// MetaGraphDef: what it is made of, and the graph.
bool is_meta_graph(std::string_view bytes) {
  const Fields graph = first_fields(bytes);
  return (graph.find(2, kBytes) != nullptr || graph.find(1, kBytes) != nullptr) &&
         std::all_of(graph.all.begin(), graph.all.end(),
                     [](const Field& field) { return field.type == kBytes && field.number <= 7; });
}

/// OperatorDef of Caffe2: operands, results, a name and, as field 4, the type.
bool is_caffe2_operator(std::string_view bytes) {
  const Fields node = first_fields(bytes);
  const Field* type = node.find(4, kBytes);
  return node.is_whole && type != nullptr && is_word(type->bytes);
}

/// Dictionary of CNTK: entries of a key and a value, which begins with a version and a type; those of a
/// function among them.
bool is_cntk_dictionary(const Fields& fields) {
  bool is_function = false;
  for (const Field& field : fields.all) {
    if (field.number == 1 && field.type == kVarint) continue;
    if (field.number != 2 || field.type != kBytes) return false;
    const Fields entry = first_fields(field.bytes);
    const Field* key = entry.find(1, kBytes);
    const Field* value = entry.find(2, kBytes);
    if (key == nullptr || value == nullptr || !is_word(key->bytes)) return false;
    const Fields parts = first_fields(value->bytes);
    if (parts.find(2, kVarint) == nullptr) return false;
    is_function = is_function || key->bytes == "primitive_functions" || key->bytes == "root";
  }
  return is_function;
}

}  // namespace

FileFormat protobuf_format(std::string_view bytes) {
  const Fields fields = first_fields(bytes);
  if (fields.all.empty()) return FileFormat::kUnknown;
  const Field& first = fields.all.front();
  if (is_cntk_dictionary(fields)) return FileFormat::kCntk;
  if (first.number == 1 && first.type == kVarint) {
    const bool has_model = std::any_of(fields.all.begin(), fields.all.end(), [](const Field& field) {
      return field.number >= 200 && field.number <= 3000 && field.type == kBytes;
    });
    if (fields.find(7, kBytes) != nullptr || fields.find(8, kBytes) != nullptr) return FileFormat::kOnnx;
    if (has_model && fields.find(2, kBytes) != nullptr) return FileFormat::kCoreMl;
    const Field* second = fields.find(2, kBytes);
    if (first.value == 1 && second != nullptr && is_meta_graph(second->bytes)) return FileFormat::kSavedModel;
    return FileFormat::kUnknown;
  }
  // A net without a name begins with its first operator.
  if (first.number == 2 && first.type == kBytes && is_caffe2_operator(first.bytes))
    return FileFormat::kCaffe2;
  if (first.number != 1 || first.type != kBytes)
    return fields.find(7, kBytes) != nullptr && fields.find(1, kVarint) != nullptr ? FileFormat::kOnnx
                                                                                   : FileFormat::kUnknown;
  if (is_node_def(first.bytes)) return FileFormat::kFrozenGraph;
  const Field* second = fields.find(2, kBytes);
  const bool is_named = first.bytes.empty() || is_word(first.bytes);
  if (is_named && second != nullptr && is_caffe2_operator(second->bytes)) return FileFormat::kCaffe2;
  return FileFormat::kUnknown;
}

}  // namespace tensormill::frontend
