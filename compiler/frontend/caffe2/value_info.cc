// value_info.json: types and shapes of inputs, {"data": [1, [1, 3, 224, 224]]}.
#include "compiler/build/rows.h"
#include "compiler/frontend/caffe2/model.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::caffe2 {

namespace {

constexpr size_t kMostBytes = size_t{1} << 20;
constexpr int64_t kMostExtent = int64_t{1} << 40;

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, std::string(kValueInfo) + ": " + what);
}

/// Of TensorProto.DataType of ONNX.
constexpr build::NumberedType kOnnxTypes[] = {{1, DType::kFloat32}, {2, DType::kUInt8}, {3, DType::kInt8},
                                              {6, DType::kInt32},   {7, DType::kInt64}, {9, DType::kBool},
                                              {11, DType::kFloat64}};

Input input_of(const std::string& name, const Json& entry) {
  const std::string shown = "\"" + name.substr(0, 200) + "\"";
  if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer() || !entry[1].is_array())
    fail(shown + " is not [type, [dims...]]");
  const std::optional<DType> dtype = build::dtype_numbered(kOnnxTypes, entry[0].get<int64_t>());
  if (!dtype) fail(shown + " has the type " + entry[0].dump() + ", which no input here has");
  Input input{name, *dtype, std::vector<int64_t>()};
  for (const Json& dim : entry[1]) {
    const bool is_extent =
        dim.is_number_integer() && dim.get<int64_t>() >= -1 && dim.get<int64_t>() <= kMostExtent;
    if (!is_extent) fail(shown + " has a dim that is no extent");
    input.dims->push_back(dim.get<int64_t>());
  }
  return input;
}

}  // namespace

std::map<std::string, Input> read_value_info(std::string_view json) {
  if (json.size() > kMostBytes) fail("it has more than 1 MiB");
  Json all;
  try {
    all = parse_json(json, 8);
  } catch (const Error& error) {
    fail(error.message());
  }
  if (!all.is_object()) fail("it is no object");
  std::map<std::string, Input> inputs;
  for (const auto& [name, entry] : all.items()) inputs.emplace(name, input_of(name, entry));
  return inputs;
}

}  // namespace tensormill::frontend::caffe2
