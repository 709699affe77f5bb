#include "api/endpoints/v2_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "api/endpoints/tensor_data.h"
#include "api/endpoints/v2_members.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::endpoints {
namespace {

/// Labels of one output at most, which bounds the answer.
constexpr uint64_t kMaxClasses = 100'000;
/// What a request may have around the data of its tensors.
constexpr uint64_t kMaxValues = uint64_t{1} << 16;

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
    reject(ErrorCode::kInvalidTensor, where,
           "binary_data_size is " + std::to_string(size) + ", and " + std::to_string(raw.size()) +
               " bytes are left in the body");
  const std::string_view own = raw.substr(0, size);
  raw.remove_prefix(size);
  return own;
}

void check_count(const Shape& shape, size_t count, const std::string& where) {
  if (static_cast<int64_t>(count) != num_elements(shape))
    reject(
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
    if (static_cast<int64_t>(texts.size()) == num_elements(shape))
      check_count(shape, texts.size() + 1, where);
    if (bytes.size() < 4 || bytes.size() - 4 < size)
      reject(ErrorCode::kInvalidTensor, where,
             "string " + std::to_string(texts.size()) + " ends behind the input's bytes");
    texts.push_back(bytes.substr(4, size));
    bytes.remove_prefix(4 + size_t{size});
  }
  check_count(shape, texts.size(), where);
  return texts;
}

/// The sequence that a request belongs to: 0 and "" are none.
std::optional<services::SequencePart> sequence_of(const Json& parameters) {
  constexpr size_t kMostBytes = 128;
  const std::string where = "request";
  services::SequencePart part;
  const auto flag = [&](const char* name) {
    const Json* value = member(parameters, name, where, &Json::is_boolean);
    return value != nullptr && value->get<bool>();
  };
  part.start = flag("sequence_start");
  part.end = flag("sequence_end");
  const auto id = parameters.find("sequence_id");
  if (id != parameters.end()) {
    part.is_number = id->is_number_unsigned();
    if (!part.is_number && !id->is_string())
      reject(ErrorCode::kInvalidArgument, where, "sequence_id is neither a number from 0 on nor a string");
    part.id = part.is_number ? id->dump() : id->get<std::string>();
  }
  if (part.id.size() > kMostBytes)
    reject(ErrorCode::kInvalidArgument, where, "sequence_id has more than 128 bytes");
  const bool is_none = part.id.empty() || (part.is_number && part.id == "0");
  if (!is_none) return part;
  if (part.start || part.end) reject(ErrorCode::kInvalidArgument, where, "sequence_id is missing");
  return std::nullopt;
}

/// The parameters of the request itself that mean something here.
void read_parameters(const Json& json, V2Request& request) {
  const Json* all = member(json, "parameters", "request", &Json::is_object);
  if (all == nullptr) return;
  for (const auto& [name, value] : all->items()) {
    const std::string where = "parameter \"" + name + "\"";
    if (!value.is_string() && !value.is_number() && !value.is_boolean()) {
      reject(ErrorCode::kInvalidArgument, where, "is neither a string nor a number nor a bool");
    }
    if (name.starts_with("triton_")) reject(ErrorCode::kInvalidArgument, where, "is reserved");
  }
  request.sequence = sequence_of(*all);
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

/// Where an input or an output stands in shared memory, when it says so.
std::optional<SharedPlace> place_of(const Json& object, const std::string& where) {
  const Json* region = parameter(object, "shared_memory_region", where, &Json::is_string);
  if (region == nullptr) return std::nullopt;
  SharedPlace place;
  place.region = region->get<std::string>();
  const Json* size = parameter(object, "shared_memory_byte_size", where, &Json::is_number_unsigned);
  if (size == nullptr) reject(ErrorCode::kInvalidArgument, where, "shared_memory_byte_size is missing");
  place.byte_size = size->get<uint64_t>();
  if (const Json* offset = parameter(object, "shared_memory_offset", where, &Json::is_number_unsigned))
    place.offset = offset->get<uint64_t>();
  return place;
}

void read_output(const Json& output, V2Request& request) {
  if (!output.is_object()) throw Error(ErrorCode::kInvalidArgument, "request: an output is no object");
  V2Output wanted;
  wanted.name = text_of(output, "name", "output", true);
  const std::string where = "output \"" + wanted.name + "\"";
  for (const V2Output& other : request.outputs) {
    if (other.name == wanted.name) reject(ErrorCode::kInvalidArgument, where, "is asked for twice");
  }
  if (const Json* classes = parameter(output, "classification", where, &Json::is_number_unsigned)) {
    wanted.classes = static_cast<int64_t>(std::min<uint64_t>(classes->get<uint64_t>(), kMaxClasses));
  }
  const Json* binary = parameter(output, "binary_data", where, &Json::is_boolean);
  wanted.binary = binary == nullptr ? request.binary_by_default : binary->get<bool>();
  wanted.place = place_of(output, where);
  if (wanted.place && wanted.classes > 0)
    reject(ErrorCode::kInvalidArgument, where, "classes have no place in shared memory");
  request.outputs.push_back(std::move(wanted));
}

/// Strings in binary form as the files of a model's only input. `owner`: of the bytes.
services::PictureFiles pictures_of(std::string name, const Shape& shape, std::string_view bytes,
                                   std::shared_ptr<void> owner, const std::string& where) {
  if (shape.empty() || shape.size() > 2 || (shape.size() == 2 && shape.back() != 1))
    reject(ErrorCode::kInvalidTensor, where,
           "shape " + to_string(shape) + " is not that of pictures, [number] or [number, 1]");
  return {std::move(name), binary_texts(shape, bytes, where), std::move(owner)};
}

/// An input as its JSON says, before the binary part of the body is there.
struct Input {
  std::string name, where;
  bool has_pictures = false;  ///< in place of strings
  std::optional<services::PictureFiles> pictures;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::optional<Tensor> tensor;
  uint64_t binary_size = 0;
};

/// Builds a document of all that is small, and tensors of what is not: a request's events go to the document
/// of the request, that of an input, or the data of an input.
class RequestEvents : public JsonEvents {
public:
  explicit RequestEvents(const V2Limits& limits) : limits_(limits) {}
  /// Before the first event.
  void set_reader(const JsonReader& reader) { reader_ = &reader; }

  void null() override {
    scalar("null", [](JsonEvents& to) { to.null(); });
  }
  void boolean(bool value) override {
    scalar(value ? "true" : "false", [value](JsonEvents& to) { to.boolean(value); });
  }
  void number(std::string_view text) override {
    scalar(text, [text](JsonEvents& to) { to.number(text); });
  }
  void string(std::string_view text) override {
    if (data_) return data_->value('"', text);
    scalar(text, [text](JsonEvents& to) { to.string(text); });
  }
  void key(std::string_view name) override {
    outside();
    document().key(name);
    if (depth_ == 1 || (has_input_ && depth_ == 3)) key_ = name;
  }
  void begin_object() override {
    if (data_) data_->refuse_object();
    outside();
    if (in_inputs_ && depth_ == 2) has_input_ = true;
    document().begin_object();
    ++depth_;
  }
  void end_object() override {
    outside();
    document().end_object();
    if (--depth_ == 2 && has_input_) finish_input();
  }
  void begin_array() override {
    if (data_) {
      ++data_depth_;
      return data_->begin_array();
    }
    outside();
    if (depth_ == 0) throw Error(ErrorCode::kInvalidArgument, "the request is no object");
    no_bare_input();
    document().begin_array();
    if (has_input_ && depth_ == 3 && key_ == "data") return begin_data();
    if (depth_ == 1 && key_ == "inputs") in_inputs_ = true;
    ++depth_;
  }
  void end_array() override {
    if (data_ && data_depth_-- > 0) return;
    if (data_) return end_data();
    outside();
    document().end_array();
    if (--depth_ == 1) in_inputs_ = false;
  }

  Json take_head() { return head_.take(); }
  std::vector<Input>& inputs() { return inputs_; }

private:
  JsonBuilder& document() { return has_input_ ? input_ : head_; }

  template <typename Tell>
  void scalar(std::string_view text, const Tell& tell) {
    if (data_) return data_->value(text.front(), text);
    outside();
    no_bare_input();
    tell(document());
  }
  void no_bare_input() const {
    if (in_inputs_ && depth_ == 2) throw Error(ErrorCode::kInvalidArgument, "request: an input is no object");
  }
  /// Something that is no data of a tensor.
  void outside() {
    if (++values_ > kMaxValues)
      throw Error(ErrorCode::kTooLarge, "the request has more than " + std::to_string(kMaxValues) +
                                            " values beside the data of its inputs");
    if (reader_->offset() - data_bytes_ > kV2JsonBytes)
      throw Error(ErrorCode::kTooLarge, "the request has more than " + std::to_string(kV2JsonBytes) +
                                            " bytes of JSON beside the data of its inputs");
  }
  std::string where_of(const Json& input) const {
    const auto name = input.find("name");
    const bool named = name != input.end() && name->is_string();
    return "input " + (named ? "\"" + name->get<std::string>() + "\"" : std::to_string(inputs_.size()));
  }
  void begin_data() {
    data_begin_ = reader_->offset();
    data_depth_ = 0;
    const Json& input = input_.partial();
    data_.emplace(where_of(input),
                  TensorData::Limits{limits_.tensor_bytes - tensor_bytes_, elements_, limits_.elements});
    if (input.contains("shape") && input.contains("datatype")) declare(input);
  }
  void declare(const Json& input) {
    const std::string where = where_of(input);
    data_->declare(where, dtype_of(input, where), shape_of(input, where));
  }
  void end_data() {
    document().end_array();
    data_bytes_ += reader_->offset() - data_begin_;
    ended_data_ = std::exchange(data_, std::nullopt);
  }
  static DType dtype_of(const Json& input, const std::string& where) {
    const std::string type = text_of(input, "datatype", where, true);
    const auto dtype = dtype_from_v2_name(type);
    if (!dtype) reject(ErrorCode::kInvalidArgument, where, "datatype \"" + type + "\" is not known");
    return *dtype;
  }
  void finish_input() {
    const Json json = input_.take();
    has_input_ = false;
    data_ = std::exchange(ended_data_, std::nullopt);
    Input input;
    input.name = text_of(json, "name", "input", true);
    input.where = "input \"" + input.name + "\"";
    input.dtype = dtype_of(json, input.where);
    input.shape = shape_of(json, input.where);
    const Json* size = parameter(json, "binary_data_size", input.where, &Json::is_number_unsigned);
    member(json, "data", input.where, &Json::is_array);
    input.has_pictures = input.dtype == kString && limits_.takes_pictures && limits_.takes_pictures();
    if (const std::optional<SharedPlace> place = place_of(json, input.where)) {
      if (size != nullptr || data_)
        reject(ErrorCode::kInvalidArgument, input.where, "has data, and is in shared memory, too");
      read_shared(input, *place);
      inputs_.push_back(std::move(input));
      return;
    }
    if (input.has_pictures && data_)
      reject(ErrorCode::kInvalidTensor, input.where, "is files, whose bytes JSON has no strings for");
    if ((size != nullptr) == data_.has_value()) {
      reject(ErrorCode::kInvalidArgument, input.where, "needs either data or the parameter binary_data_size");
    }
    if (size != nullptr) {
      input.binary_size = size->get<uint64_t>();
    } else {
      if (!data_->declared()) declare(json);
      input.tensor = data_->finish(reader_->offset());
      elements_ += static_cast<uint64_t>(input.tensor->num_elements());
      tensor_bytes_ += std::min<uint64_t>(input.tensor->num_bytes(), limits_.tensor_bytes - tensor_bytes_);
      data_.reset();
    }
    inputs_.push_back(std::move(input));
  }

  void read_shared(Input& input, const SharedPlace& place) {
    if (limits_.regions == nullptr)
      reject(ErrorCode::kNotSupported, input.where, "shared memory is off here");
    const uint64_t left = limits_.tensor_bytes - tensor_bytes_;
    const bool is_text = input.dtype == kString;
    const uint64_t bytes =
        is_text ? place.byte_size : static_cast<uint64_t>(num_bytes(input.shape, input.dtype));
    if (bytes > left)
      reject(ErrorCode::kTooLarge, input.where, "the inputs have more than limits.tensor_bytes");
    if (bytes != place.byte_size)
      reject(ErrorCode::kInvalidTensor, input.where,
             "shared_memory_byte_size is " + std::to_string(place.byte_size) + ", the shape has " +
                 std::to_string(bytes) + " bytes");
    if (limits_.memory != nullptr) limits_.memory->take(bytes);
    tensor_bytes_ += bytes;
    if (is_text) {
      const auto raw = std::make_shared<std::string>(bytes, '\0');
      limits_.regions->read(place, std::as_writable_bytes(std::span(raw->data(), raw->size())));
      if (input.has_pictures) {
        input.pictures = pictures_of(input.name, input.shape, *raw, raw, input.where);
      } else {
        input.tensor = strings_tensor(input.shape, binary_texts(input.shape, *raw, input.where), bytes,
                                      limits_.tensor_bytes, input.where);
      }
      return;
    }
    input.tensor.emplace(input.dtype, input.shape);
    limits_.regions->read(place, {static_cast<std::byte*>(input.tensor->data()), input.tensor->num_bytes()});
  }

  const V2Limits& limits_;
  const JsonReader* reader_ = nullptr;
  JsonBuilder head_, input_;
  std::optional<TensorData> data_, ended_data_;
  std::vector<Input> inputs_;
  bool in_inputs_ = false, has_input_ = false;
  int depth_ = 0;  ///< arrays and objects that are open: 1 the request, 2 its inputs, 3 one of them
  int data_depth_ = 0;
  std::string key_;  ///< of the request or of an input
  uint64_t values_ = 0;
  uint64_t data_begin_ = 0, data_bytes_ = 0;
  uint64_t tensor_bytes_ = 0, elements_ = 0;  ///< of the inputs up to here
};

/// The tensor of an input whose bytes stand behind the JSON. `raw`: what no input before this one took.
Tensor binary_tensor(const Input& input, const http::TensorBody& body, std::string_view& raw, uint64_t size,
                     uint64_t most) {
  if (input.dtype == kString) {
    const std::string_view bytes = take(raw, input.binary_size, input.where);
    return strings_tensor(input.shape, binary_texts(input.shape, bytes, input.where), size, most,
                          input.where);
  }
  const auto bytes = static_cast<uint64_t>(num_bytes(input.shape, input.dtype));
  if (input.binary_size != bytes || raw.size() < bytes) {
    reject(ErrorCode::kInvalidTensor, input.where,
           "binary_data_size is " + std::to_string(input.binary_size) + ", the shape has " +
               std::to_string(bytes) + " bytes and " + std::to_string(raw.size()) + " are left in the body");
  }
  Tensor tensor = tensor_of(input.dtype, input.shape, body, raw.substr(0, bytes));
  raw.remove_prefix(bytes);
  return tensor;
}

}  // namespace

V2Request read_v2_request(JsonText& text, const V2Limits& limits,
                          const std::function<http::TensorBody()>& rest) {
  RequestEvents events(limits);
  JsonLimits json_limits;
  // What counts is counted where it is known to be data or not.
  json_limits.bytes = json_limits.values = std::numeric_limits<uint64_t>::max();
  json_limits.token_bytes = kV2JsonBytes;
  JsonReader reader(text, events, json_limits);
  events.set_reader(reader);
  reader.read();
  const Json json = events.take_head();
  if (!json.is_object()) throw Error(ErrorCode::kInvalidArgument, "the request is no object");
  V2Request request;
  request.id = text_of(json, "id", "request", false);
  read_parameters(json, request);
  if (member(json, "inputs", "request", &Json::is_array) == nullptr)
    throw Error(ErrorCode::kInvalidArgument, "request: inputs is missing");
  if (const Json* outputs = member(json, "outputs", "request", &Json::is_array)) {
    for (const Json& output : *outputs) read_output(output, request);
  }
  const http::TensorBody body = rest();
  std::string_view raw = body.text();
  for (Input& input : events.inputs()) {
    if (input.has_pictures && events.inputs().size() > 1)
      reject(ErrorCode::kInvalidTensor, input.where, "is files of pictures, and not the only input");
    if (input.has_pictures && !input.pictures)
      input.pictures = pictures_of(input.name, input.shape, take(raw, input.binary_size, input.where),
                                   body.owner, input.where);
    if (input.has_pictures) {
      request.pictures = std::move(input.pictures);
      continue;
    }
    if (!input.tensor)
      input.tensor = binary_tensor(input, body, raw, reader.offset() + body.size, limits.tensor_bytes);
    request.inputs.emplace_back(input.name, std::move(*input.tensor));
  }
  if (!raw.empty()) {
    throw Error(ErrorCode::kInvalidTensor,
                std::to_string(raw.size()) + " bytes of the body belong to no input");
  }
  return request;
}

V2Request read_v2_raw_request(const http::TensorBody& body, const std::vector<services::TensorSpec>& inputs,
                              bool takes_pictures) {
  if (inputs.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "a body without JSON is the only input of a model; this one has " +
                    std::to_string(inputs.size()) + " inputs");
  }
  const services::TensorSpec& spec = inputs.front();
  V2Request request;
  request.binary_by_default = true;
  if (takes_pictures) {
    request.pictures = {spec.name, {body.text()}, body.owner};
    return request;
  }
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
  request.inputs.emplace_back(spec.name, tensor_of(spec.dtype, shape, body, body.text()));
  return request;
}

}  // namespace tensormill::endpoints
