/// Compiles models and runs them in this process, many one after the other: reads lines "MODEL INPUTS.npz
/// OUTPUTS.npz [OPT-LEVEL [SHAPE-BUCKETS]]", writes the outputs in the model's order as members "0", "1" ...,
/// and answers each with a line "ok" or "error TEXT". Inputs are members named as the model's inputs. An
/// input whose value decides about shapes is bound at import. With buckets, dims that the model names stay
/// free; so they do with "*" in their place, where no shape has kernels of its own. With "?" in their place
/// nothing is bound: what lacks a value is interpreted.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "compiler/driver/compile.h"
#include "compiler/driver/generic_planner.h"
#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/frontend/onnx/import.h"
#include "compiler/interpret/interpreter.h"
#include "compiler/ops/ops.h"
#include "compiler/package/writer.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/text.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/npz/npz.h"

namespace tensormill {
namespace {

namespace onnx = frontend::onnx;

struct Case {
  std::string model, inputs, outputs;
  int opt_level = 3;
  ShapeBuckets buckets;  ///< none: all shapes are fixed
  bool is_free = false;  ///< named dims are free without buckets
  bool binds = true;     ///< values that the importer asks for
};

std::map<std::string, Tensor> read_inputs(const std::string& path) {
  const auto file = MappedFile::open(path);
  std::map<std::string, Tensor> inputs;
  for (npz::NamedTensor& each : npz::read_npz(std::as_bytes(std::span(file->text()))))
    inputs.emplace(each.name, std::move(each.tensor));
  return inputs;
}

/// Types of the tensors "NAME/0", "NAME/1" ...; an optional value without any is empty.
std::optional<std::vector<ir::ValueType>> elements_of(const onnx::SignatureValue& input,
                                                      const std::map<std::string, Tensor>& inputs) {
  std::vector<ir::ValueType> types;
  for (auto found = inputs.find(input.name + "/0"); found != inputs.end();
       found = inputs.find(input.name + "/" + std::to_string(types.size())))
    types.push_back({found->second.dtype(), found->second.shape()});
  if (types.empty() && input.kind != onnx::ValueKind::kSequence) return std::nullopt;
  return types;
}

/// Whether the model gives the input another shape than the data has. The suite does it for operands of whose
/// values nothing is read.
bool contradicts(const onnx::SignatureValue& input, const Tensor& tensor) {
  const Shape shape = shown_shape(tensor.dtype(), tensor.shape());
  const bool is_free = std::any_of(input.shape.begin(), input.shape.end(), [](const Dim& dim) {
    const int64_t* extent = std::get_if<int64_t>(&dim);
    return extent == nullptr || *extent < 0;
  });
  return input.kind == onnx::ValueKind::kTensor && !is_free && !input.shape.empty() &&
         concrete_shape(input.shape) != shape;
}

bool has_named_dim(const onnx::SignatureValue& input) {
  return std::any_of(input.shape.begin(), input.shape.end(),
                     [](const Dim& dim) { return std::holds_alternative<std::string>(dim); });
}

/// Imports with the inputs' own shapes, but for dims that are to stay free; binds the values that the
/// importer asks for.
ir::Variants import(const Case& given, const std::map<std::string, Tensor>& inputs, size_t& num_bound) {
  const onnx::ModelSource source = onnx::open_model(given.model);
  onnx::ImportOptions options;
  for (const onnx::SignatureValue& input : onnx::read_facts(source).inputs) {
    if (input.kind != onnx::ValueKind::kTensor) {
      options.input_elements[input.name] = elements_of(input, inputs);
      continue;
    }
    const auto found = inputs.find(input.name);
    if (found == inputs.end() || contradicts(input, found->second)) continue;
    if (given.is_free && has_named_dim(input)) options.input_shapes[input.name] = input.shape;
    if ((given.is_free || !given.buckets.empty()) && has_named_dim(input)) continue;
    const Shape shape = shown_shape(found->second.dtype(), found->second.shape());
    options.input_shapes[input.name] = DimShape(shape.begin(), shape.end());
  }
  if (!given.binds)
    return onnx::import_for_package(source, options, given.buckets, ops::standard_ops(),
                                    &driver::takes_symbolic);
  while (true) {
    try {
      return onnx::import_variants(source, options, given.buckets, ops::standard_ops(),
                                   &driver::takes_symbolic);
    } catch (const Error& error) {
      bool bound = false;
      for (const ErrorDetail& detail : error.details()) {
        const auto found = inputs.find(detail.pointer);
        if (error.code() != ErrorCode::kShapeRequired || found == inputs.end()) continue;
        bound = options.input_values.emplace(detail.pointer, found->second).second || bound;
      }
      if (!bound) throw;
      num_bound = options.input_values.size();
    }
  }
}

std::shared_ptr<const package::LoadedPackage> compile(const ir::Variants& variants, int opt_level,
                                                      const std::string& path, std::string& refused) {
  driver::CompileOptions options;
  options.target = target::host_target();
  options.verify = driver::VerifyMode::kNone;
  options.model_digest = Digest::of(std::string_view("conformance")).text();
  options.opt_level = opt_level;
  const driver::CompileResult result = driver::compile(variants, options);
  refused = result.generic_refused;
  package::write_archive(
      path, {result.metadata_json, result.plan_json, result.code, &result.params, result.params_bytes});
  return package::LoadedPackage::load(package::Package::open(path), interpret::make_interpreter);
}

/// How many inputs were bound, of how many, how many imports there were, and "symbolic" where one with
/// symbols makes the plans. `refused`: why there is no generic plan.
std::string run_case(const Case& given, std::string& refused) {
  const std::map<std::string, Tensor> inputs = read_inputs(given.inputs);
  size_t num_bound = 0;
  const ir::Variants variants = import(given, inputs, num_bound);
  exec::GraphExecutor executor(compile(variants, given.opt_level, given.outputs + ".tar", refused));
  for (const package::Port& port : executor.inputs()) {
    const auto found = inputs.find(port.name);
    if (found == inputs.end()) throw Error(ErrorCode::kInvalidTensor, "no data for input " + port.name);
    const Tensor& tensor = found->second;
    if (given.buckets.empty() && !given.is_free &&
        contradicts({port.name, port.dtype, shown_shape(port.dtype, port.shape)}, tensor)) {
      const std::span<std::byte> unread = executor.input_bytes(executor.input_index(port.name));
      std::fill(unread.begin(), unread.end(), std::byte{0});
      continue;
    }
    executor.set_input(port.name, TensorView{tensor.dtype(), tensor.shape(), tensor.data()});
  }
  parallel::ThreadPool pool(1);
  executor.run(pool);
  std::vector<npz::NamedTensor> outputs;
  for (size_t i = 0; i < executor.outputs().size(); ++i)
    outputs.push_back({std::to_string(i), executor.copy_output(i)});
  write_file(given.outputs, npz::write_npz(outputs));
  return std::to_string(num_bound) + " " + std::to_string(inputs.size()) + " " +
         std::to_string(variants.imports) + (variants.symbolic ? " symbolic" : "");
}

std::string one_line(std::string text) {
  for (char& letter : text) letter = letter == '\n' ? ' ' : letter;
  return text;
}

std::string answer(const std::string& line) {
  std::istringstream words(line);
  Case given;
  words >> given.model >> given.inputs >> given.outputs;
  std::string result, refused;
  try {
    if (std::string text; words >> text) given.opt_level = std::stoi(text);
    if (std::string text; words >> text) {
      given.is_free = text == "*";
      given.binds = text != "?";
      if (!given.is_free && given.binds) given.buckets = parse_shape_buckets(text);
    }
    result = "ok " + run_case(given, refused);
  } catch (const std::exception& error) {
    result = "error " + one_line(error.what());
    if (!refused.empty()) result += "; buckets alone: " + one_line(refused);
  }
  std::filesystem::remove(given.outputs + ".tar");
  return result;
}

}  // namespace
}  // namespace tensormill

int main() {
  for (std::string line; std::getline(std::cin, line);) std::cout << tensormill::answer(line) << std::endl;
  return 0;
}
