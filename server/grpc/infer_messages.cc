#include "server/grpc/infer_messages.h"

#include <inference.pb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "runtime/base/own_json.h"
#include "runtime/base/percent.h"

namespace tensormill::rpc {
namespace {

using nlohmann::json;
using Input = inference::ModelInferRequest::InferInputTensor;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw MessageError(grpc::StatusCode::INVALID_ARGUMENT, where + ": " + what);
}

json value_of(const inference::InferParameter& parameter, const std::string& where) {
  switch (parameter.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam:
      return parameter.bool_param();
    case inference::InferParameter::kInt64Param:
      if (parameter.int64_param() >= 0) return static_cast<uint64_t>(parameter.int64_param());
      return parameter.int64_param();
    case inference::InferParameter::kStringParam:
      return parameter.string_param();
    case inference::InferParameter::kDoubleParam:
      return parameter.double_param();
    case inference::InferParameter::kUint64Param:
      return parameter.uint64_param();
    case inference::InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  refuse(where, "has no value");
}

template <typename Map>
json parameters_of(const Map& map, const std::string& where) {
  json all = json::object();
  for (const auto& [name, parameter] : map) {
    const std::string of = where + ", parameter \"" + name + "\"";
    all[name] = value_of(parameter, of);
  }
  return all;
}

template <typename Value>
void append_bytes(Value value, std::string& bytes) {
  std::array<char, sizeof(Value)> raw{};
  std::memcpy(raw.data(), &value, sizeof(Value));
  bytes.append(raw.data(), raw.size());
}

/// Elements of type `To`, in the bytes that a raw tensor has. Throws for one that the type does not have, in
/// the words of tensors in JSON.
template <typename To, typename Values>
std::string bytes_of(const Values& values, const std::string& datatype, const std::string& where) {
  using Range = std::numeric_limits<To>;
  std::string bytes;
  bytes.reserve(static_cast<size_t>(values.size()) * sizeof(To));
  for (int i = 0; i < values.size(); ++i) {
    const auto value = values[i];
    if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
      if (value < Range::lowest() || value > Range::max())
        refuse(where, "element " + std::to_string(i) + " is " + std::to_string(value) +
                          ", which is outside the range of " + datatype + ", " +
                          std::to_string(Range::lowest()) + " to " + std::to_string(Range::max()));
    }
    append_bytes(static_cast<To>(value), bytes);
  }
  return bytes;
}

std::string text_bytes(const inference::InferTensorContents& contents) {
  std::string bytes;
  for (const std::string& text : contents.bytes_contents()) {
    append_bytes(static_cast<uint32_t>(text.size()), bytes);
    bytes += text;
  }
  return bytes;
}

/// How many elements contents have in all of their members: those of the right one should be all.
int count_of(const inference::InferTensorContents& of) {
  return of.bool_contents_size() + of.int_contents_size() + of.int64_contents_size() +
         of.uint_contents_size() + of.uint64_contents_size() + of.fp32_contents_size() +
         of.fp64_contents_size() + of.bytes_contents_size();
}

struct ContentsRow {
  std::string_view datatype;
  std::string_view member;
  int (*count)(const inference::InferTensorContents&);
  std::string (*bytes)(const inference::InferTensorContents&, const std::string& where);
};

#define TM_CONTENTS(datatype, member, type)                                                         \
  {                                                                                                 \
    datatype, #member, [](const inference::InferTensorContents& of) { return of.member##_size(); }, \
        [](const inference::InferTensorContents& of, const std::string& where) {                    \
          return bytes_of<type>(of.member(), datatype, where);                                      \
        }                                                                                           \
  }
const ContentsRow kContents[] = {
    TM_CONTENTS("BOOL", bool_contents, bool),
    TM_CONTENTS("INT8", int_contents, int8_t),
    TM_CONTENTS("INT16", int_contents, int16_t),
    TM_CONTENTS("INT32", int_contents, int32_t),
    TM_CONTENTS("INT64", int64_contents, int64_t),
    TM_CONTENTS("UINT8", uint_contents, uint8_t),
    TM_CONTENTS("UINT16", uint_contents, uint16_t),
    TM_CONTENTS("UINT32", uint_contents, uint32_t),
    TM_CONTENTS("UINT64", uint64_contents, uint64_t),
    TM_CONTENTS("FP32", fp32_contents, float),
    TM_CONTENTS("FP64", fp64_contents, double),
    {"BYTES", "bytes_contents",
     [](const inference::InferTensorContents& of) { return of.bytes_contents_size(); },
     [](const inference::InferTensorContents& of, const std::string&) { return text_bytes(of); }},
};
#undef TM_CONTENTS

/// The elements of an input that has them beside raw_input_contents.
std::string contents_of(const Input& input, const std::string& where) {
  const auto* row = std::find_if(std::begin(kContents), std::end(kContents),
                                 [&](const ContentsRow& one) { return one.datatype == input.datatype(); });
  if (row == std::end(kContents))
    refuse(where, "datatype \"" + input.datatype() + "\" is not known or has raw_input_contents alone");
  if (row->count(input.contents()) != count_of(input.contents()))
    refuse(where, "contents of datatype " + input.datatype() + " are in " + std::string(row->member));
  return row->bytes(input.contents(), where);
}

constexpr const char* kRegion = "shared_memory_region";

/// Whether the client has left it in shared memory, and has sent none of it.
bool is_shared(const Input& input) { return input.parameters().find(kRegion) != input.parameters().end(); }

/// The tensors of all inputs that are sent behind one another, and in `inputs` how long each is.
Pieces tensors_of(const inference::ModelInferRequest& request, const std::vector<Pieces>& raw, json& inputs) {
  // In the words that clients of the public interface look for.
  for (const Input& input : request.inputs()) {
    if (!raw.empty() && count_of(input.contents()) > 0)
      throw MessageError(grpc::StatusCode::INVALID_ARGUMENT,
                         "contents field must not be specified when using raw_input_contents for '" +
                             input.name() + "' for model '" + request.model_name() + "'");
  }
  const auto sent =
      request.inputs_size() - std::count_if(request.inputs().begin(), request.inputs().end(), is_shared);
  if (!raw.empty() && raw.size() != static_cast<size_t>(sent))
    refuse("request", "there are " + std::to_string(sent) + " inputs outside of shared memory and " +
                          std::to_string(raw.size()) + " raw_input_contents");
  size_t next = 0;
  Pieces all;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const Input& input = request.inputs(i);
    const std::string where = "input \"" + input.name() + "\"";
    json one = {{"name", input.name()}, {"datatype", input.datatype()}, {"shape", json::array()}};
    for (const int64_t extent : input.shape()) {
      if (extent < 0) refuse(where, "shape has " + std::to_string(extent));
      one["shape"].push_back(static_cast<uint64_t>(extent));
    }
    one["parameters"] = parameters_of(input.parameters(), where);
    if (is_shared(input)) {
      if (count_of(input.contents()) > 0) refuse(where, "has contents, and is in shared memory, too");
    } else {
      const Pieces tensor = raw.empty() ? Pieces{slice_of(contents_of(input, where))} : raw[next++];
      one["parameters"]["binary_data_size"] = size_of(tensor);
      all.insert(all.end(), tensor.begin(), tensor.end());
    }
    inputs.push_back(std::move(one));
  }
  return all;
}

json outputs_of(const inference::ModelInferRequest& request) {
  json outputs = json::array();
  for (const auto& output : request.outputs()) {
    json one = {{"name", output.name()}};
    one["parameters"] = parameters_of(output.parameters(), "output \"" + output.name() + "\"");
    one["parameters"]["binary_data"] = true;
    outputs.push_back(std::move(one));
  }
  return outputs;
}

constexpr const char* kWantsFinal = "triton_enable_empty_final_response";

void append_size(uint64_t value, std::string& text) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  text += static_cast<char>(value);
}

/// Tag and length in front of a field of `size` bytes.
grpc::Slice field_head(int number, uint64_t size) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  append_size(size, text);
  return slice_of(std::move(text));
}

using Shape = std::vector<int64_t>;

/// An output of an answer, or a row of it.
struct Part {
  Shape shape;
  size_t begin = 0, bytes = 0;  ///< in the answer's body
  bool is_placed = false;       ///< it stands in shared memory instead
};

json head_of(const Answer& answer) {
  const size_t size = answer.head == 0 ? answer.body->size() : answer.head;
  return parse_own_json(std::string_view(*answer.body).substr(0, size));
}

std::vector<Part> whole_outputs(const Answer& answer, const json& head) {
  std::vector<Part> parts;
  size_t begin = answer.head == 0 ? answer.body->size() : answer.head;
  for (const json& output : head.at("outputs")) {
    const json& parameters = output.at("parameters");
    Part part{output.at("shape").get<Shape>(), begin, 0, parameters.contains(kRegion)};
    if (!part.is_placed) part.bytes = parameters.at("binary_data_size").get<size_t>();
    begin += part.bytes;
    parts.push_back(std::move(part));
  }
  return parts;
}

/// A ModelInferResponse with those parts of the outputs, or with none. `is_final`: of those to one request.
Pieces print_response(const json& head, const std::shared_ptr<const std::string>& body,
                      const std::vector<Part>& parts, std::optional<bool> is_final) {
  inference::ModelInferResponse response;
  response.set_model_name(head.value("model_name", ""));
  response.set_model_version(head.value("model_version", ""));
  response.set_id(head.value("id", ""));
  if (is_final) (*response.mutable_parameters())["triton_final_response"].set_bool_param(*is_final);
  Pieces pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const json& output = head.at("outputs")[i];
    auto* one = response.add_outputs();
    one->set_name(output.at("name").get<std::string>());
    one->set_datatype(output.at("datatype").get<std::string>());
    for (const int64_t extent : part.shape) one->add_shape(extent);
    // One that stands in shared memory keeps its place among the others, with nothing in it.
    if (part.is_placed) {
      const json& parameters = output.at("parameters");
      auto& told = *one->mutable_parameters();
      told[kRegion].set_string_param(parameters.at(kRegion).get<std::string>());
      for (const char* name : {"shared_memory_byte_size", "shared_memory_offset"})
        told[name].set_int64_param(parameters.at(name).get<int64_t>());
    }
    constexpr int kRawOutputContents = 6;
    pieces.push_back(field_head(kRawOutputContents, part.bytes));
    pieces.push_back(slice_of(body, part.begin, part.bytes));
  }
  pieces.insert(pieces.begin(), slice_of(response.SerializeAsString()));
  return pieces;
}

Pieces stream_response(Pieces response) {
  constexpr int kInferResponse = 2;
  response.insert(response.begin(), field_head(kInferResponse, size_of(response)));
  return response;
}

/// Of most deployments.
class OneAnswer final : public StreamAnswers {
public:
  explicit OneAnswer(Pieces response) : response_(std::move(response)) {}
  bool next(Pieces& response) override {
    response = std::move(response_);
    return !std::exchange(is_over_, true);
  }

private:
  Pieces response_;
  bool is_over_ = false;
};

class RowAnswers final : public StreamAnswers {
public:
  RowAnswers(const Answer& answer, json head, bool wants_final)
      : body_(answer.body),
        head_(std::move(head)),
        outputs_(whole_outputs(answer, head_)),
        wants_final_(wants_final) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::string where = "output \"" + head_.at("outputs")[i].at("name").get<std::string>() + "\"";
      const Part& output = outputs_[i];
      if (output.is_placed) refuse(where, "of a decoupled deployment is not put into shared memory");
      if (output.shape.empty()) refuse(where, "has no rows");
      if (output.shape[0] != outputs_[0].shape[0])
        refuse(where, "has " + std::to_string(output.shape[0]) + " rows, the outputs before it have " +
                          std::to_string(outputs_[0].shape[0]));
    }
    rows_ = outputs_.empty() ? 0 : outputs_[0].shape[0];
  }

  bool next(Pieces& response) override {
    if (row_ > rows_ || (row_ == rows_ && !wants_final_)) return false;
    const std::optional<bool> is_final = wants_final_ ? std::optional(row_ == rows_) : std::nullopt;
    const std::vector<Part> parts = row_ == rows_ ? std::vector<Part>() : next_row();
    ++row_;
    response = stream_response(print_response(head_, body_, parts, is_final));
    return true;
  }

private:
  std::vector<Part> next_row() {
    std::vector<Part> parts;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Part& rest = outputs_[i];
      const bool has_strings = head_.at("outputs")[i].at("datatype") == "BYTES";
      Part row{Shape(rest.shape.begin() + 1, rest.shape.end()), rest.begin, 0};
      row.bytes = has_strings ? strings_size(rest.begin, std::accumulate(row.shape.begin(), row.shape.end(),
                                                                         int64_t{1}, std::multiplies<>()))
                              : rest.bytes / static_cast<size_t>(rows_ - row_);
      rest.begin += row.bytes;
      rest.bytes -= row.bytes;
      parts.push_back(std::move(row));
    }
    return parts;
  }

  /// Of so many strings that begin there, each behind its length in four bytes.
  size_t strings_size(size_t begin, int64_t count) const {
    size_t end = begin;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t size = 0;
      std::memcpy(&size, body_->data() + end, sizeof(size));
      end += sizeof(size) + size;
    }
    return end - begin;
  }

  const std::shared_ptr<const std::string> body_;
  const json head_;
  std::vector<Part> outputs_;  ///< what is left of them
  const bool wants_final_;
  int64_t rows_ = 0, row_ = 0;
};

}  // namespace

std::string path_segment(const std::string& text) {
  // Whoever reads a path may take these for steps in it.
  if (text == ".") return "%2E";
  return text == ".." ? "%2E%2E" : percent_encode(text);
}

std::string model_path(const std::string& name, const std::string& version) {
  if (name.empty()) throw MessageError(grpc::StatusCode::INVALID_ARGUMENT, "the model's name is missing");
  return "/v2/models/" + path_segment(name) + (version.empty() ? "" : "/versions/" + path_segment(version));
}

Asked infer_request(const SplitRequest& split) {
  inference::ModelInferRequest request;
  if (!request.ParseFromString(split.head)) refuse("request", "the message cannot be parsed");
  Asked asked;
  json head = {{"inputs", json::array()}, {"outputs", outputs_of(request)}};
  if (!request.id().empty()) head["id"] = request.id();
  head["parameters"] = parameters_of(request.parameters(), "request");
  if (const auto wish = head["parameters"].find(kWantsFinal); wish != head["parameters"].end()) {
    asked.wants_final = *wish == true;
    head["parameters"].erase(wish);
  }
  head["parameters"]["binary_data_output"] = true;
  if (head["outputs"].empty()) head.erase("outputs");
  Pieces body = tensors_of(request, split.raw, head["inputs"]);
  std::string text = head.dump();
  asked.method = "POST";
  asked.target = model_path(request.model_name(), request.model_version()) + "/infer";
  asked.fields = {{"Content-Type", "application/octet-stream"},
                  {"Inference-Header-Content-Length", std::to_string(text.size())}};
  body.insert(body.begin(), slice_of(std::move(text)));
  asked.body = std::make_shared<PiecesBody>(std::move(body));
  return asked;
}

Pieces infer_response(const Answer& answer) {
  const json head = head_of(answer);
  return print_response(head, answer.body, whole_outputs(answer, head), std::nullopt);
}

std::unique_ptr<StreamAnswers> stream_answers(const Answer& answer, bool wants_final) {
  json head = head_of(answer);
  const auto parameters = head.find("parameters");
  if (parameters != head.end() && parameters->value("decoupled", false))
    return std::make_unique<RowAnswers>(answer, std::move(head), wants_final);
  const std::optional<bool> is_final = wants_final ? std::optional(true) : std::nullopt;
  return std::make_unique<OneAnswer>(
      stream_response(print_response(head, answer.body, whole_outputs(answer, head), is_final)));
}

Pieces stream_error(const std::string& message) {
  inference::ModelStreamInferResponse response;
  response.set_error_message(message.empty() ? "the request failed" : message);
  return {slice_of(response.SerializeAsString())};
}

}  // namespace tensormill::rpc
