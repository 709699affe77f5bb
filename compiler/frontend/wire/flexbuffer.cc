#include "compiler/frontend/wire/flexbuffer.h"

#include <flatbuffers/flexbuffers.h>

#include <cstring>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::wire {

namespace {

constexpr size_t kMaxValues = 100'000;
constexpr int kMaxDepth = 32;

[[noreturn]] void bad_flexbuffer(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "FlexBuffer: " + what);
}

class Converter {
public:
  /// `end`: of the buffer.
  explicit Converter(const uint8_t* end) : end_(reinterpret_cast<const char*>(end)) {}

  Json convert(flexbuffers::Reference value, int depth) {
    if (++values_ > kMaxValues) bad_flexbuffer("more than " + std::to_string(kMaxValues) + " values");
    if (depth > kMaxDepth) bad_flexbuffer("nested deeper than " + std::to_string(kMaxDepth));
    if (value.IsNull()) return nullptr;
    if (value.IsBool()) return value.AsBool();
    if (value.IsInt()) return value.AsInt64();
    if (value.IsUInt()) return value.AsUInt64();
    if (value.IsFloat()) return value.AsDouble();
    if (value.IsString()) return std::string(value.AsString().c_str(), value.AsString().length());
    if (value.IsKey()) return text_of(value.AsKey());
    if (value.IsBlob()) {
      const flexbuffers::Blob blob = value.AsBlob();
      return std::string(reinterpret_cast<const char*>(blob.data()), blob.size());
    }
    if (value.IsMap()) return map(value.AsMap(), depth);
    if (value.IsTypedVector()) return list(value.AsTypedVector(), depth);
    if (value.IsFixedTypedVector()) return list(value.AsFixedTypedVector(), depth);
    if (value.IsVector()) return list(value.AsVector(), depth);
    bad_flexbuffer("a value of type " + std::to_string(value.GetType()));
  }

private:
  /// The library's verification takes a key for ended where some byte behind it is not zero.
  std::string text_of(const char* key) const {
    const void* const zero = std::memchr(key, 0, static_cast<size_t>(end_ - key));
    if (zero == nullptr) bad_flexbuffer("a key does not end");
    return {key, static_cast<const char*>(zero)};
  }

  Json map(const flexbuffers::Map& map, int depth) {
    Json object = Json::object();
    const flexbuffers::TypedVector keys = map.Keys();
    const flexbuffers::Vector values = map.Values();
    if (keys.size() != values.size()) bad_flexbuffer("a map has another number of keys than of values");
    for (size_t i = 0; i < keys.size(); ++i) object[text_of(keys[i].AsKey())] = convert(values[i], depth + 1);
    return object;
  }

  template <typename Vector>
  Json list(const Vector& vector, int depth) {
    Json array = Json::array();
    for (size_t i = 0; i < vector.size(); ++i) array.push_back(convert(vector[i], depth + 1));
    return array;
  }

  const char* end_;
  size_t values_ = 0;
};

}  // namespace

Json flexbuffer_to_json(std::string_view bytes) {
  // The root is at the end: its byte width, its type, then the value.
  if (bytes.size() < 3) bad_flexbuffer(std::to_string(bytes.size()) + " bytes");
  // Values are aligned from the buffer's start, which a file may put anywhere.
  const std::vector<uint8_t> aligned(bytes.begin(), bytes.end());
  std::vector<uint8_t> seen;
  if (!flexbuffers::VerifyBuffer(aligned.data(), aligned.size(), &seen)) bad_flexbuffer("it is broken");
  return Converter(aligned.data() + aligned.size())
      .convert(flexbuffers::GetRoot(aligned.data(), aligned.size()), 0);
}

}  // namespace tensormill::frontend::wire
