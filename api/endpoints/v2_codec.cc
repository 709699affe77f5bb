#include "api/endpoints/v2_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::endpoints {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
}

/// A member of this type; null when it is absent.
const Json* member(const Json& object, const char* name, const std::string& where, bool (Json::*is)() const) {
  const auto found = object.find(name);
  if (found == object.end()) return nullptr;
  if (!((*found).*is)())
    refuse(ErrorCode::kInvalidArgument, where, std::string(name) + " has the wrong type");
  return &*found;
}

std::string text_of(const Json& object, const char* name, const std::string& where, bool required) {
  const Json* value = member(object, name, where, &Json::is_string);
  if (value == nullptr && required)
    refuse(ErrorCode::kInvalidArgument, where, std::string(name) + " is missing");
  return value == nullptr ? "" : value->get<std::string>();
}

/// A parameter of an input, an output or the request.
const Json* parameter(const Json& object, const char* name, const std::string& where,
                      bool (Json::*is)() const) {
  const Json* parameters = member(object, "parameters", where, &Json::is_object);
  return parameters == nullptr ? nullptr : member(*parameters, name, where, is);
}

Shape shape_of(const Json& input, const std::string& where) {
  const Json* dims = member(input, "shape", where, &Json::is_array);
  if (dims == nullptr) refuse(ErrorCode::kInvalidArgument, where, "shape is missing");
  Shape shape;
  for (const Json& dim : *dims) {
    if (!dim.is_number_integer() || dim.get<int64_t>() < 0) {
      refuse(ErrorCode::kInvalidTensor, where, "shape " + dims->dump() + " has a dim that is no size");
    }
    shape.push_back(dim.get<int64_t>());
  }
  return shape;
}

/// Data is one array, or arrays in arrays as the shape is.
void fill(Tensor& tensor, const Json& data, int64_t& next, const std::string& where) {
  for (const Json& value : data) {
    if (value.is_array()) {
      fill(tensor, value, next, where);
      continue;
    }
    const bool is_bool = tensor.dtype() == DType::kBool;
    const bool fits = is_bool                    ? value.is_boolean() || value.is_number_integer()
                      : is_float(tensor.dtype()) ? value.is_number()
                                                 : value.is_number_integer();
    if (!fits) {
      refuse(ErrorCode::kInvalidTensor, where,
             "element " + std::to_string(next) + " is " + value.dump().substr(0, 40) + ", not a value of " +
                 std::string(dtype_v2_name(tensor.dtype())));
    }
    if (next < tensor.num_elements()) {
      if (is_float(tensor.dtype())) {
        tensor.set_element(next, value.get<double>());
      } else {
        const bool large = value.is_number_unsigned() && tensor.dtype() == DType::kUInt64;
        tensor.set_element_int(next, value.is_boolean() ? static_cast<int64_t>(value.get<bool>())
                                     : large            ? static_cast<int64_t>(value.get<uint64_t>())
                                                        : value.get<int64_t>());
      }
    }
    ++next;
  }
}

/// `max_elements`: what the JSON has room for.
Tensor read_input(const Json& input, uint64_t max_elements, std::string_view& raw, const std::string& where) {
  const std::string type = text_of(input, "datatype", where, true);
  if (type == "BYTES") refuse(ErrorCode::kNotSupported, where, "datatype BYTES is not supported");
  const auto dtype = dtype_from_v2_name(type);
  if (!dtype) refuse(ErrorCode::kInvalidArgument, where, "datatype \"" + type + "\" is not known");
  const Shape shape = shape_of(input, where);
  const Json* size = parameter(input, "binary_data_size", where, &Json::is_number_unsigned);
  const Json* data = member(input, "data", where, &Json::is_array);
  if ((size != nullptr) == (data != nullptr)) {
    refuse(ErrorCode::kInvalidArgument, where, "needs either data or the parameter binary_data_size");
  }
  // What is announced must be there before memory is taken for it.
  const auto bytes = static_cast<uint64_t>(num_bytes(shape, *dtype));
  if (size != nullptr) {
    if (size->get<uint64_t>() != bytes || raw.size() < bytes) {
      refuse(ErrorCode::kInvalidTensor, where,
             "binary_data_size is " + size->dump() + ", the shape has " + std::to_string(bytes) +
                 " bytes and " + std::to_string(raw.size()) + " are left in the body");
    }
    Tensor tensor(*dtype, shape);
    if (bytes != 0) std::memcpy(tensor.data(), raw.data(), bytes);
    raw.remove_prefix(bytes);
    return tensor;
  }
  if (static_cast<uint64_t>(num_elements(shape)) > max_elements) {
    refuse(ErrorCode::kInvalidTensor, where, "data has fewer elements than the shape");
  }
  Tensor tensor = Tensor::zeros(*dtype, shape);
  int64_t count = 0;
  fill(tensor, *data, count, where);
  if (count != tensor.num_elements()) {
    refuse(ErrorCode::kInvalidTensor, where,
           "data has " + std::to_string(count) + " elements, the shape " +
               std::to_string(tensor.num_elements()));
  }
  return tensor;
}

Json data_json(const Tensor& tensor, const std::string& name) {
  Json data = Json::array();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_float(tensor.dtype())) {
      const double value = tensor.element_as_double(i);
      if (!std::isfinite(value)) {
        refuse(ErrorCode::kTensorData, "output \"" + name + "\"",
               "has NaN or infinity, which JSON cannot say: ask for binary_data");
      }
      data.push_back(value);
    } else if (tensor.dtype() == DType::kBool) {
      data.push_back(tensor.element_as_int(i) != 0);
    } else if (tensor.dtype() == DType::kUInt64) {
      data.push_back(static_cast<uint64_t>(tensor.element_as_int(i)));
    } else {
      data.push_back(tensor.element_as_int(i));
    }
  }
  return data;
}

}  // namespace

V2Request read_v2_request(std::string_view body, std::optional<size_t> json_size) {
  if (json_size && *json_size > body.size()) {
    throw Error(ErrorCode::kInvalidRequest, "Inference-Header-Content-Length is " +
                                                std::to_string(*json_size) + ", the body has " +
                                                std::to_string(body.size()) + " bytes");
  }
  const Json json = parse_json(body.substr(0, json_size.value_or(body.size())));
  if (!json.is_object()) throw Error(ErrorCode::kInvalidArgument, "the request is no object");
  std::string_view raw = json_size ? body.substr(*json_size) : std::string_view();
  V2Request request;
  request.id = text_of(json, "id", "request", false);
  if (const Json* all = parameter(json, "binary_data_output", "request", &Json::is_boolean)) {
    request.binary_by_default = all->get<bool>();
  }
  if (const Json* timeout = parameter(json, "timeout", "request", &Json::is_number_unsigned)) {
    // Microseconds, as in Triton; rounded up.
    request.timeout =
        std::chrono::milliseconds(std::min<uint64_t>(timeout->get<uint64_t>() / 1000 + 1, 3'600'000));
  }
  const Json* inputs = member(json, "inputs", "request", &Json::is_array);
  if (inputs == nullptr) throw Error(ErrorCode::kInvalidArgument, "request: inputs is missing");
  for (const Json& input : *inputs) {
    if (!input.is_object()) throw Error(ErrorCode::kInvalidArgument, "request: an input is no object");
    const std::string name = text_of(input, "name", "input", true);
    request.inputs.emplace_back(name, read_input(input, body.size(), raw, "input \"" + name + "\""));
  }
  if (!raw.empty()) {
    throw Error(ErrorCode::kInvalidTensor,
                std::to_string(raw.size()) + " bytes of the body belong to no input");
  }
  if (const Json* outputs = member(json, "outputs", "request", &Json::is_array)) {
    for (const Json& output : *outputs) {
      if (!output.is_object()) throw Error(ErrorCode::kInvalidArgument, "request: an output is no object");
      const std::string name = text_of(output, "name", "output", true);
      const std::string where = "output \"" + name + "\"";
      if (parameter(output, "classification", where, &Json::is_number_unsigned) != nullptr) {
        refuse(ErrorCode::kNotSupported, where, "classification is not supported");
      }
      const Json* binary = parameter(output, "binary_data", where, &Json::is_boolean);
      request.outputs.push_back({name, binary == nullptr ? request.binary_by_default : binary->get<bool>()});
    }
  }
  return request;
}

V2Response print_v2_response(const V2Request& request, std::string_view model, std::string_view version,
                             const services::NamedTensors& outputs) {
  std::vector<V2Output> wanted = request.outputs;
  if (wanted.empty()) {
    for (const auto& [name, tensor] : outputs) wanted.push_back({name, request.binary_by_default});
  }
  Json json = {{"model_name", model}, {"model_version", version}, {"outputs", Json::array()}};
  if (!request.id.empty()) json["id"] = request.id;
  std::string raw;
  V2Response response;
  for (const V2Output& want : wanted) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const auto& one) { return one.first == want.name; });
    if (found == outputs.end())
      refuse(ErrorCode::kInvalidArgument, "output \"" + want.name + "\"", "is not there");
    const Tensor& tensor = found->second;
    Json output = {
        {"name", want.name}, {"datatype", dtype_v2_name(tensor.dtype())}, {"shape", tensor.shape()}};
    if (want.binary) {
      output["parameters"] = {{"binary_data_size", tensor.num_bytes()}};
      raw.append(static_cast<const char*>(tensor.data()), tensor.num_bytes());
      response.binary = true;
    } else {
      output["data"] = data_json(tensor, want.name);
    }
    json["outputs"].push_back(std::move(output));
  }
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.json_size = response.body.size();
  response.body += raw;
  return response;
}

}  // namespace tensormill::endpoints
