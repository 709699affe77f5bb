#include "compiler/frontend/caffe2/model.h"

namespace tensormill::frontend::caffe2 {

namespace {

FileValue file_value(const Input& input) {
  FileValue value;
  value.name = input.name;
  value.type = std::string(dtype_long_name(input.dtype));
  value.has_rank = input.dims.has_value();
  if (input.dims) value.shape = shown_dims(*input.dims);
  return value;
}

}  // namespace

FileFacts facts_of(const Model& model) {
  FileFacts facts;
  facts.format = "caffe2";
  facts.version = std::to_string(model.predict.operators.size()) + " operators, " +
                  std::to_string(model.init.operators.size()) + " fills";
  for (const Input& input : model.inputs) facts.inputs.push_back(file_value(input));
  for (const std::string& output : output_names(model)) facts.outputs.push_back(unshaped_value(output));
  for (const Operator& fill : model.init.operators)
    if (fill.outputs.empty() || model.place_holders.count(fill.outputs[0]) == 0)
      facts.add_weight(filled_elements(fill), filled_dtype(fill));
  for (const Operator& each : model.predict.operators) {
    ++facts.ops[std::string(each.type)];
    facts.add_weight(filled_elements(each), filled_dtype(each));
  }
  if (!model.predict.name.empty())
    facts.notes.emplace_back("net", std::string(model.predict.name.substr(0, 200)));
  return facts;
}

}  // namespace tensormill::frontend::caffe2
