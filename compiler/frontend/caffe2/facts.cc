#include <algorithm>

#include "compiler/frontend/caffe2/model.h"

namespace tensormill::frontend::caffe2 {

namespace {

FileValue file_value(const Input& input) {
  FileValue value;
  value.name = input.name;
  value.type = std::string(dtype_long_name(input.dtype));
  value.has_rank = input.dims.has_value();
  if (input.dims)
    for (const int64_t dim : *input.dims) value.shape.push_back(dim < 0 ? "?" : std::to_string(dim));
  return value;
}

void count_fill(const Operator& fill, FileFacts& facts) {
  const std::optional<int64_t> elements = filled_elements(fill);
  const std::optional<DType> dtype = filled_dtype(fill);
  int64_t bytes = 0;
  if (!elements || !dtype) return;
  if (__builtin_mul_overflow(*elements, static_cast<int64_t>(dtype_bytes(*dtype)), &bytes) ||
      __builtin_add_overflow(facts.weight_bytes, bytes, &bytes))
    return;
  facts.parameters += *elements;
  facts.weight_bytes = bytes;
}

}  // namespace

FileFacts facts_of(const Model& model) {
  FileFacts facts;
  facts.format = "caffe2";
  facts.version = std::to_string(model.predict.operators.size()) + " operators, " +
                  std::to_string(model.init.operators.size()) + " fills";
  for (const Input& input : model.inputs) facts.inputs.push_back(file_value(input));
  for (const std::string& output : output_names(model)) {
    FileValue value;
    value.name = output;
    value.has_rank = false;
    facts.outputs.push_back(std::move(value));
  }
  for (const Operator& fill : model.init.operators)
    if (fill.outputs.empty() || model.place_holders.count(fill.outputs[0]) == 0) count_fill(fill, facts);
  for (const Operator& each : model.predict.operators) {
    ++facts.ops[std::string(each.type)];
    count_fill(each, facts);
  }
  if (!model.predict.name.empty())
    facts.notes.emplace_back("net", std::string(model.predict.name.substr(0, 200)));
  return facts;
}

}  // namespace tensormill::frontend::caffe2
