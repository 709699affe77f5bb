/// The reference run of a model in double: what accuracy is measured against.
///
///   bench_reference MODEL.onnx INPUTS.npz OUTPUTS.npz
///
/// The inputs' shapes bind the model's free dims. Outputs are float64 for every float output of the model.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/npz/npz.h"

namespace tensormill::bench {

namespace {

int run_reference(const std::string& model, const std::string& input_path, const std::string& output_path) {
  const auto file = MappedFile::open(input_path);
  std::map<std::string, Tensor> given;
  frontend::onnx::ImportOptions options;
  for (npz::NamedTensor& entry : npz::read_npz(file->bytes())) {
    DimShape shape;
    for (int64_t extent : entry.tensor.shape()) shape.push_back(Dim{extent});
    options.input_shapes[entry.name] = shape;
    given.emplace(entry.name, std::move(entry.tensor));
  }
  const ir::Graph graph =
      frontend::onnx::import_model(frontend::onnx::open_model(model), options, ops::standard_ops());
  std::vector<Tensor> inputs;
  for (ir::ValueId input : graph.inputs()) {
    const auto found = given.find(graph.value(input).name);
    if (found == given.end()) {
      throw Error(ErrorCode::kInvalidTensor,
                  "input \"" + graph.value(input).name + "\" is not in " + input_path);
    }
    inputs.push_back(found->second);
  }
  const std::vector<Tensor> outputs = ir::evaluate_reference(graph, inputs, true);
  std::vector<npz::NamedView> views;
  for (size_t i = 0; i < outputs.size(); ++i) {
    views.push_back(
        {graph.value(graph.outputs()[i]).name, {outputs[i].dtype(), outputs[i].shape(), outputs[i].data()}});
  }
  write_file(output_path, npz::write_npz(views));
  return 0;
}

}  // namespace

}  // namespace tensormill::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: bench_reference MODEL.onnx INPUTS.npz OUTPUTS.npz" << std::endl;
    return 1;
  }
  try {
    return tensormill::bench::run_reference(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 3;
  }
}
