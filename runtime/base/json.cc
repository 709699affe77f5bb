#include "runtime/base/json.h"

#include <set>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill {

Json parse_json(std::string_view text, int max_depth) {
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, Json::parse_event_t event, Json& parsed) {
    // `depth` counts the containers that are open around the event.
    if (depth >= max_depth &&
        (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start)) {
      throw Error(ErrorCode::kInvalidJson, "JSON is nested deeper than " + std::to_string(max_depth));
    }
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw Error(ErrorCode::kInvalidJson,
                  "JSON object has the member \"" + parsed.get<std::string>() + "\" twice");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), guard);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::kInvalidJson, "JSON cannot be parsed at byte " + std::to_string(error.byte));
  } catch (const Json::out_of_range&) {
    throw Error(ErrorCode::kInvalidJson, "JSON has a number outside the range of doubles");
  }
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
