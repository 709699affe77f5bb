#include "runtime/base/json.h"

#include "runtime/base/error.h"
#include "runtime/base/json_reader.h"

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

}  // namespace tensormill
