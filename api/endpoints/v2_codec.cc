#include "api/endpoints/v2_codec.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <locale>
#include <numeric>
#include <span>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::endpoints {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
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

/// Copies one output to where its client asked for it.
void place_tensor(const V2Output& want, const Tensor& tensor, const SharedRegions* regions, Json& output) {
  if (regions == nullptr)
    refuse(ErrorCode::kNotSupported, "output \"" + want.name + "\"", "shared memory is off here");
  output["datatype"] = dtype_v2_name(tensor.dtype());
  output["shape"] = shown_shape(tensor.dtype(), tensor.shape());
  std::string texts;
  std::span<const std::byte> bytes(static_cast<const std::byte*>(tensor.data()), tensor.num_bytes());
  if (tensor.dtype() == kString) {
    append_texts(texts_of(tensor), texts);
    bytes = std::as_bytes(std::span(texts.data(), texts.size()));
  }
  if (bytes.size() > want.place->byte_size)
    refuse(ErrorCode::kInvalidTensor, "output \"" + want.name + "\"",
           "has " + std::to_string(bytes.size()) + " bytes, shared_memory_byte_size is " +
               std::to_string(want.place->byte_size));
  regions->write(*want.place, bytes);
  output["parameters"] = {{"shared_memory_region", want.place->region},
                          {"shared_memory_byte_size", bytes.size()},
                          {"shared_memory_offset", want.place->offset}};
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

V2Response print_v2_response(const V2Request& request, std::string_view model, bool has_batch,
                             const services::RunResult& result, const SharedRegions* regions) {
  const services::NamedTensors& outputs = result.outputs;
  std::vector<V2Output> wanted = request.outputs;
  if (wanted.empty()) {
    for (const auto& [name, tensor] : outputs)
      wanted.push_back({name, request.binary_by_default, 0, std::nullopt});
  }
  Json json = {{"model_name", model}, {"model_version", result.version}, {"outputs", Json::array()}};
  if (!request.id.empty()) json["id"] = request.id;
  if (result.decoupled) json["parameters"] = {{"decoupled", true}};
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
    } else if (want.place) {
      place_tensor(want, found->second, regions, output);
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
