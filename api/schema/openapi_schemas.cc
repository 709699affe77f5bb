#include "api/schema/openapi_schemas.h"

#include <array>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::schema {
namespace {

struct Row {
  std::string_view name;
  std::string_view type;
};

constexpr std::array kRows = {
#define TM_SCHEMA(name, type) Row{name, type},
#include "api/schema/schemas.def"
#undef TM_SCHEMA
};

Json text_like(std::string_view pattern) { return {{"type", "string"}, {"pattern", pattern}}; }

Json named(std::string_view name) {
  for (const std::string_view plain : {"string", "integer", "number", "boolean", "null"}) {
    if (name == plain) return {{"type", plain}};
  }
  if (name == "any") return Json::object();
  if (name == "digest") return text_like("^sha256:[0-9a-f]{64}$");
  if (name == "time") return text_like("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$");
  if (name == "uuid") return text_like("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$");
  bool known = name == "ErrorCode";
  for (const Row& row : kRows) known = known || row.name == name;
  TM_CHECK(known, "schemas.def has no type \"" + std::string(name) + "\"");
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}

/// Reads one type by recursive descent; a function a rule of the notation.
class Reader {
public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json whole() {
    Json schema = alternatives();
    TM_CHECK(at_ == text_.size(), "schemas.def: more than a type in " + std::string(text_));
    return schema;
  }

private:
  Json alternatives() {
    Json list = Json::array({one()});
    while (take('|')) list.push_back(one());
    return list.size() == 1 ? list.front() : Json{{"anyOf", std::move(list)}};
  }

  Json one() {
    Json schema = plain();
    if (!take('?')) return schema;
    return {{"anyOf", Json::array({std::move(schema), named("null")})}};
  }

  Json plain() {
    if (take('(')) {
      Json schema = alternatives();
      expect(')');
      return schema;
    }
    if (take('[')) {
      Json schema = {{"type", "array"}, {"items", alternatives()}};
      expect(']');
      return schema;
    }
    if (take('{')) return object();
    if (take('\'')) {
      const size_t end = text_.find('\'', at_);
      TM_CHECK(end != std::string_view::npos, "schemas.def: a literal without an end");
      const std::string literal(text_.substr(at_, end - at_));
      at_ = end + 1;
      return {{"const", literal}};
    }
    return named(word());
  }

  Json object() {
    Json schema = {{"type", "object"}, {"required", Json::array()}, {"additionalProperties", false}};
    if (take('*')) {
      expect(':');
      schema["patternProperties"] = {{"^", alternatives()}};
      expect('}');
      return schema;
    }
    schema["properties"] = Json::object();
    if (take('}')) return schema;
    do {
      const std::string name(word());
      if (!take('?')) schema["required"].push_back(name);
      expect(':');
      schema["properties"][name] = alternatives();
    } while (take(','));
    expect('}');
    return schema;
  }

  std::string_view word() {
    skip_spaces();
    const size_t begin = at_;
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    TM_CHECK(at_ > begin, "schemas.def: a name is missing in " + std::string(text_));
    return text_.substr(begin, at_ - begin);
  }

  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    TM_CHECK(take(c), std::string("schemas.def: ") + c + " is missing in " + std::string(text_));
  }

  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Json schema_of(std::string_view type) { return Reader(type).whole(); }

Json all_schemas() {
  Json codes = Json::array();
  for (const ErrorCodeInfo& row : all_error_codes()) codes.push_back(row.name);
  Json schemas = {{"ErrorCode", {{"type", "string"}, {"enum", std::move(codes)}}}};
  for (const Row& row : kRows) schemas[std::string(row.name)] = schema_of(row.type);
  return schemas;
}

}  // namespace tensormill::schema
