#include "api/endpoints/v2_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <locale>
#include <numeric>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::endpoints {
namespace {

/// Labels of one output at most, which bounds the answer.
constexpr uint64_t kMaxClasses = 100'000;

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

/// A tensor of these bytes of the body.
Tensor tensor_of(DType dtype, const Shape& shape, const http::TensorBody& body, std::string_view bytes) {
  if (bytes.empty()) return Tensor(dtype, shape);
  std::byte* data = body.data + (reinterpret_cast<const std::byte*>(bytes.data()) - body.data);
  if (reinterpret_cast<uintptr_t>(data) % kTensorAlignment == 0) {
    return Tensor(dtype, shape, body.owner, data);
  }
  Tensor tensor(dtype, shape);
  std::memcpy(tensor.data(), data, bytes.size());
  return tensor;
}

/// The next `size` bytes of what no input before this one took.
std::string_view take(std::string_view& raw, uint64_t size, const std::string& where) {
  if (raw.size() < size)
    refuse(ErrorCode::kInvalidTensor, where,
           "binary_data_size is " + std::to_string(size) + ", and " + std::to_string(raw.size()) +
               " bytes are left in the body");
  const std::string_view own = raw.substr(0, size);
  raw.remove_prefix(size);
  return own;
}

void check_count(const Shape& shape, size_t count, const std::string& where) {
  if (static_cast<int64_t>(count) != num_elements(shape))
    refuse(
        ErrorCode::kInvalidTensor, where,
        "data has " + std::to_string(count) + " elements, the shape " + std::to_string(num_elements(shape)));
}

/// Strings, each with its length in 4 bytes before it, low byte first.
std::vector<std::string_view> binary_texts(const Shape& shape, std::string_view bytes,
                                           const std::string& where) {
  std::vector<std::string_view> texts;
  while (!bytes.empty()) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4 && i < bytes.size(); ++i)
      size |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    if (bytes.size() < 4 || bytes.size() - 4 < size)
      refuse(ErrorCode::kInvalidTensor, where,
             "string " + std::to_string(texts.size()) + " ends behind the input's bytes");
    texts.push_back(bytes.substr(4, size));
    bytes.remove_prefix(4 + size_t{size});
  }
  check_count(shape, texts.size(), where);
  return texts;
}

void collect_texts(const Json& data, std::vector<std::string_view>& texts, const std::string& where) {
  for (const Json& value : data) {
    if (value.is_array()) {
      collect_texts(value, texts, where);
    } else if (value.is_string()) {
      texts.push_back(value.get_ref<const std::string&>());
    } else {
      refuse(
          ErrorCode::kInvalidTensor, where,
          "element " + std::to_string(texts.size()) + " is " + value.dump().substr(0, 40) + ", not a string");
    }
  }
}

std::vector<std::string_view> json_texts(const Shape& shape, const Json& data, const std::string& where) {
  std::vector<std::string_view> texts;
  collect_texts(data, texts, where);
  check_count(shape, texts.size(), where);
  return texts;
}

/// The texts as a tensor. All get the width of the longest, which must not make much of a small body.
Tensor strings_tensor(const Shape& shape, const std::vector<std::string_view>& texts, size_t body,
                      const std::string& where) {
  constexpr uint64_t kGrowth = 256;
  uint64_t longest = 1;
  for (const std::string_view text : texts) longest = std::max<uint64_t>(longest, text.size());
  if (longest * texts.size() > kGrowth * body)
    refuse(ErrorCode::kTooLarge, where,
           "strings of up to " + std::to_string(longest) + " bytes take " +
               std::to_string(longest * texts.size()) + " in a tensor, more than " + std::to_string(kGrowth) +
               " times the body");
  try {
    return text_tensor(shape, texts);
  } catch (Error& error) {
    error.add_context(where);
    throw;
  }
}

/// `raw`: what of the body no input before this one took. JSON has room for no more elements than bytes.
Tensor read_input(const Json& input, size_t json_size, const http::TensorBody& body, std::string_view& raw,
                  const std::string& where) {
  const std::string type = text_of(input, "datatype", where, true);
  const auto dtype = dtype_from_v2_name(type);
  if (!dtype) refuse(ErrorCode::kInvalidArgument, where, "datatype \"" + type + "\" is not known");
  const Shape shape = shape_of(input, where);
  const Json* size = parameter(input, "binary_data_size", where, &Json::is_number_unsigned);
  const Json* data = member(input, "data", where, &Json::is_array);
  if ((size != nullptr) == (data != nullptr)) {
    refuse(ErrorCode::kInvalidArgument, where, "needs either data or the parameter binary_data_size");
  }
  if (*dtype == kString) {
    const std::vector<std::string_view> texts =
        size != nullptr ? binary_texts(shape, take(raw, size->get<uint64_t>(), where), where)
                        : json_texts(shape, *data, where);
    return strings_tensor(shape, texts, json_size + body.size, where);
  }
  // What is announced must be there before memory is taken for it.
  const auto bytes = static_cast<uint64_t>(num_bytes(shape, *dtype));
  if (size != nullptr) {
    if (size->get<uint64_t>() != bytes || raw.size() < bytes) {
      refuse(ErrorCode::kInvalidTensor, where,
             "binary_data_size is " + size->dump() + ", the shape has " + std::to_string(bytes) +
                 " bytes and " + std::to_string(raw.size()) + " are left in the body");
    }
    Tensor tensor = tensor_of(*dtype, shape, body, raw.substr(0, bytes));
    raw.remove_prefix(bytes);
    return tensor;
  }
  if (static_cast<uint64_t>(num_elements(shape)) > json_size) {
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

std::vector<std::string> texts_of(const Tensor& tensor) {
  const Texts texts({tensor.dtype(), tensor.shape(), tensor.data()});
  std::vector<std::string> all;
  for (int64_t i = 0; i < texts.count(); ++i) all.emplace_back(texts[i]);
  return all;
}

Json data_json(const Tensor& tensor, const std::string& name) {
  if (tensor.dtype() == kString) return texts_of(tensor);
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

/// The parameters of the request itself that mean something here.
void read_parameters(const Json& json, V2Request& request) {
  const Json* all = member(json, "parameters", "request", &Json::is_object);
  if (all == nullptr) return;
  for (const auto& [name, value] : all->items()) {
    const std::string where = "parameter \"" + name + "\"";
    if (!value.is_string() && !value.is_number() && !value.is_boolean()) {
      refuse(ErrorCode::kInvalidArgument, where, "is neither a string nor a number nor a bool");
    }
    const bool is_sequence = name == "sequence_id" || name == "sequence_start" || name == "sequence_end";
    if (is_sequence && value != Json(0) && value != Json(false) && value != Json("")) {
      refuse(ErrorCode::kNotSupported, where, "packages keep no state, so there are no sequences");
    }
    if (name.starts_with("triton_")) refuse(ErrorCode::kInvalidArgument, where, "is reserved");
  }
  const std::string where = "request";
  if (const Json* binary = member(*all, "binary_data_output", where, &Json::is_boolean)) {
    request.binary_by_default = binary->get<bool>();
  }
  if (const Json* timeout = member(*all, "timeout", where, &Json::is_number_unsigned)) {
    // 0 is the default, as in Triton.
    constexpr uint64_t kMaxMicroseconds = 3'600'000'000;
    const uint64_t asked = timeout->get<uint64_t>();
    if (asked > 0) request.timeout = std::chrono::microseconds(std::min(asked, kMaxMicroseconds));
  }
  if (const Json* priority = member(*all, "priority", where, &Json::is_number_unsigned)) {
    const uint64_t asked = priority->get<uint64_t>();
    if (asked > 0) request.priority = static_cast<int>(std::min<uint64_t>(asked, services::kLowestPriority));
  }
}

void read_output(const Json& output, V2Request& request) {
  if (!output.is_object()) throw Error(ErrorCode::kInvalidArgument, "request: an output is no object");
  V2Output wanted;
  wanted.name = text_of(output, "name", "output", true);
  const std::string where = "output \"" + wanted.name + "\"";
  for (const V2Output& other : request.outputs) {
    if (other.name == wanted.name) refuse(ErrorCode::kInvalidArgument, where, "is asked for twice");
  }
  if (const Json* classes = parameter(output, "classification", where, &Json::is_number_unsigned)) {
    wanted.classes = static_cast<int64_t>(std::min<uint64_t>(classes->get<uint64_t>(), kMaxClasses));
  }
  const Json* binary = parameter(output, "binary_data", where, &Json::is_boolean);
  wanted.binary = binary == nullptr ? request.binary_by_default : binary->get<bool>();
  request.outputs.push_back(std::move(wanted));
}

/// Adds strings in binary form, each with its length before it; returns how many bytes that are.
size_t append_texts(const std::vector<std::string>& texts, std::string& raw) {
  const size_t before = raw.size();
  for (const std::string& text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) raw += static_cast<char>(size >> shift & 0xff);
    raw += text;
  }
  return raw.size() - before;
}

/// Adds one output to the JSON and what is binary to `raw`.
void print_tensor(const V2Output& want, const Tensor& tensor, Json& output, std::string& raw) {
  output["datatype"] = dtype_v2_name(tensor.dtype());
  output["shape"] = shown_shape(tensor.dtype(), tensor.shape());
  if (!want.binary) {
    output["data"] = data_json(tensor, want.name);
    return;
  }
  if (tensor.dtype() == kString) {
    output["parameters"] = {{"binary_data_size", append_texts(texts_of(tensor), raw)}};
    return;
  }
  output["parameters"] = {{"binary_data_size", tensor.num_bytes()}};
  raw.append(static_cast<const char*>(tensor.data()), tensor.num_bytes());
}

/// "0.75:7:seven": value, index, label where there is one.
std::string class_text(const Tensor& tensor, int64_t first, int64_t index,
                       const std::vector<std::string>* labels) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(6);
  text << std::fixed << tensor.element_as_double(first + index) << ":" << index;
  const auto position = static_cast<size_t>(index);
  if (labels != nullptr && position < labels->size()) text << ":" << (*labels)[position];
  return text.str();
}

/// The best classes of each row as BYTES: in JSON strings, in binary form each with its length before it.
void print_classes(const V2Output& want, const Tensor& tensor, bool has_batch,
                   const std::vector<std::string>* labels, Json& output, std::string& raw) {
  const int64_t rows = has_batch && !tensor.shape().empty() ? tensor.shape().front() : 1;
  const int64_t row = rows == 0 ? 0 : tensor.num_elements() / rows;
  const int64_t count = std::min(want.classes, row);
  std::vector<std::string> texts;
  std::vector<int64_t> order(static_cast<size_t>(row));
  for (int64_t r = 0; r < rows; ++r) {
    std::iota(order.begin(), order.end(), 0);
    // NaN compares as the smallest, so that the order is a strict one.
    const auto value = [&](int64_t i) {
      const double element = tensor.element_as_double(r * row + i);
      return std::isnan(element) ? -std::numeric_limits<double>::infinity() : element;
    };
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
      const double left = value(a), right = value(b);
      return left != right ? left > right : a < b;
    });
    for (int64_t k = 0; k < count; ++k) {
      texts.push_back(class_text(tensor, r * row, order[static_cast<size_t>(k)], labels));
    }
  }
  output["datatype"] = "BYTES";
  output["shape"] = has_batch ? Shape{rows, count} : Shape{count};
  if (!want.binary) {
    output["data"] = texts;
    return;
  }
  output["parameters"] = {{"binary_data_size", append_texts(texts, raw)}};
}

}  // namespace

V2Request read_v2_request(std::string_view text, const http::TensorBody& body) {
  const Json json = parse_json(text);
  if (!json.is_object()) throw Error(ErrorCode::kInvalidArgument, "the request is no object");
  std::string_view raw = body.text();
  V2Request request;
  request.id = text_of(json, "id", "request", false);
  read_parameters(json, request);
  const Json* inputs = member(json, "inputs", "request", &Json::is_array);
  if (inputs == nullptr) throw Error(ErrorCode::kInvalidArgument, "request: inputs is missing");
  for (const Json& input : *inputs) {
    if (!input.is_object()) throw Error(ErrorCode::kInvalidArgument, "request: an input is no object");
    const std::string name = text_of(input, "name", "input", true);
    request.inputs.emplace_back(name, read_input(input, text.size(), body, raw, "input \"" + name + "\""));
  }
  if (!raw.empty()) {
    throw Error(ErrorCode::kInvalidTensor,
                std::to_string(raw.size()) + " bytes of the body belong to no input");
  }
  if (const Json* outputs = member(json, "outputs", "request", &Json::is_array)) {
    for (const Json& output : *outputs) read_output(output, request);
  }
  return request;
}

V2Request read_v2_raw_request(const http::TensorBody& body, const std::vector<services::TensorSpec>& inputs) {
  if (inputs.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "a body without JSON is the only input of a model; this one has " +
                    std::to_string(inputs.size()) + " inputs");
  }
  const services::TensorSpec& spec = inputs.front();
  if (spec.dtype == kString)
    throw Error(ErrorCode::kInvalidArgument,
                "input \"" + spec.name + "\" has strings: a body of them needs JSON");
  DimShape dims = spec.shape;
  if (!dims.empty() && std::holds_alternative<std::string>(dims.front())) dims.front() = Dim(int64_t{1});
  const Shape shape = concrete_shape(dims);
  const auto bytes = static_cast<size_t>(num_bytes(shape, spec.dtype));
  if (body.size != bytes) {
    throw Error(ErrorCode::kInvalidTensor, "input \"" + spec.name + "\" has " + std::to_string(bytes) +
                                               " bytes, the body " + std::to_string(body.size));
  }
  V2Request request;
  request.inputs.emplace_back(spec.name, tensor_of(spec.dtype, shape, body, body.text()));
  request.binary_by_default = true;
  return request;
}

V2Response print_v2_response(const V2Request& request, std::string_view model, bool has_batch,
                             const services::RunResult& result) {
  const services::NamedTensors& outputs = result.outputs;
  std::vector<V2Output> wanted = request.outputs;
  if (wanted.empty()) {
    for (const auto& [name, tensor] : outputs) wanted.push_back({name, request.binary_by_default, 0});
  }
  Json json = {{"model_name", model}, {"model_version", result.version}, {"outputs", Json::array()}};
  if (!request.id.empty()) json["id"] = request.id;
  std::string raw;
  V2Response response;
  for (const V2Output& want : wanted) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const auto& one) { return one.first == want.name; });
    if (found == outputs.end())
      refuse(ErrorCode::kInvalidArgument, "output \"" + want.name + "\"", "is not there");
    Json output = {{"name", want.name}};
    if (want.classes > 0) {
      if (found->second.dtype() == kString)
        refuse(ErrorCode::kInvalidArgument, "output \"" + want.name + "\"",
               "has strings, which have no classes");
      print_classes(want, found->second, has_batch, result.labels.get(), output, raw);
    } else {
      print_tensor(want, found->second, output, raw);
    }
    response.binary = response.binary || want.binary;
    json["outputs"].push_back(std::move(output));
  }
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.json_size = response.body.size();
  response.body += raw;
  return response;
}

}  // namespace tensormill::endpoints
