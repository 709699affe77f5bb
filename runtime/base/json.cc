#include "runtime/base/json.h"

#include <cmath>
#include "runtime/base/error.h"
#include "runtime/base/json_reader.h"

#define TM_JSON_MEMBER(...) template __VA_ARGS__;
#include "runtime/base/json_members.def"
#undef TM_JSON_MEMBER

namespace tensormill {

Json parse_json(std::string_view text, int max_depth) {
  JsonLimits limits;
  limits.depth = max_depth;
  return parse_json(text, limits);
}

std::string canonical_json(const Json& value) {
  try {
    return value.dump();
  } catch (const Json::type_error&) {
    throw Error(ErrorCode::kInvalidArgument, "text is not valid UTF-8");
  }
}

Json dims_to_json(const DimShape& shape) {
  Json json = Json::array();
  for (const Dim& dim : shape) std::visit([&](const auto& value) { json.push_back(value); }, dim);
  return json;
}

DimShape dims_from_json(const Json& json) {
  DimShape shape;
  for (const Json& dim : json) {
    if (dim.is_string()) {
      shape.emplace_back(dim.get<std::string>());
    } else if (dim.get<int64_t>() < 0) {
      shape.emplace_back(std::string());
    } else {
      shape.emplace_back(dim.get<int64_t>());
    }
  }
  return shape;
}

Json quantization_to_json(const Quantization& quantization) {
  return {{"scale", quantization.scale}, {"zero_point", quantization.zero_point}};
}

Quantization quantization_from_json(const Json& json) {
  const bool is_object = json.is_object() && json.size() == 2 && json.contains("scale") &&
                         json.at("scale").is_number() && json.contains("zero_point") &&
                         json.at("zero_point").is_number_integer();
  const double scale = is_object ? json.at("scale").get<double>() : 0;
  if (!(scale > 0) || !std::isfinite(scale))
    throw Error(ErrorCode::kInvalidJson,
                "a quantization is {\"scale\", \"zero_point\"} with a positive scale");
  return {scale, json.at("zero_point").get<int64_t>()};
}

}  // namespace tensormill
