#include "api/endpoints/v2_members.h"

#include "runtime/base/json.h"

namespace tensormill::endpoints {

void reject(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
}

const Json* member(const Json& object, const char* name, const std::string& where, bool (Json::*is)() const) {
  const auto found = object.find(name);
  if (found == object.end()) return nullptr;
  if (!((*found).*is)())
    reject(ErrorCode::kInvalidArgument, where, std::string(name) + " has the wrong type");
  return &*found;
}

std::string text_of(const Json& object, const char* name, const std::string& where, bool required) {
  const Json* value = member(object, name, where, &Json::is_string);
  if (value == nullptr && required)
    reject(ErrorCode::kInvalidArgument, where, std::string(name) + " is missing");
  return value == nullptr ? "" : value->get<std::string>();
}

const Json* parameter(const Json& object, const char* name, const std::string& where,
                      bool (Json::*is)() const) {
  const Json* parameters = member(object, "parameters", where, &Json::is_object);
  return parameters == nullptr ? nullptr : member(*parameters, name, where, is);
}

Shape shape_of(const Json& input, const std::string& where) {
  const Json* dims = member(input, "shape", where, &Json::is_array);
  if (dims == nullptr) reject(ErrorCode::kInvalidArgument, where, "shape is missing");
  Shape shape;
  for (const Json& dim : *dims) {
    if (!dim.is_number_integer() || dim.get<int64_t>() < 0) {
      reject(ErrorCode::kInvalidTensor, where,
             "shape " + dims->dump().substr(0, 100) + " has a dim that is no size");
    }
    shape.push_back(dim.get<int64_t>());
  }
  return shape;
}

}  // namespace tensormill::endpoints
