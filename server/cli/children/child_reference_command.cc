#include <algorithm>
#include <string>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ir/variants.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/npz/npz.h"
#include "server/cli/children/child_commands.h"

namespace tensormill::cli {

namespace {

enum ReferenceFd { kGraphFd = jobs::kFirstInheritedFd, kConstantsFd, kFeedFd, kReferenceFd };

/// In the graph's order.
std::vector<Tensor> inputs_of(const ir::Graph& graph, std::vector<npz::NamedTensor> given) {
  std::vector<Tensor> inputs;
  for (const ir::ValueId id : graph.inputs()) {
    const ir::Value& input = graph.value(id);
    const auto found =
        std::find_if(given.begin(), given.end(), [&](const auto& one) { return one.name == input.name; });
    if (found == given.end()) throw Error(ErrorCode::kInvalidTensor, "input " + input.name + " is missing");
    Tensor tensor = std::move(found->tensor);
    const bool is_text = tensor.dtype() == kString && input.type.dtype == kString;
    if (is_text) tensor = fitted_text({kString, tensor.shape(), tensor.data()}, input.type.shape.back());
    if (tensor.dtype() != input.type.dtype || tensor.shape() != input.type.shape)
      throw Error(ErrorCode::kInvalidTensor,
                  "input " + input.name + " is " + std::string(dtype_name(tensor.dtype())) +
                      to_string(tensor.shape()) + ", the model takes " +
                      std::string(dtype_name(input.type.dtype)) + to_string(input.type.shape));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace

std::string child_reference(jobs::ChildChannel&, std::span<const std::string> arguments) {
  TM_CHECK(arguments.size() == 1, "child-reference needs its request");
  const Json request = parse_json(arguments[0]);
  const auto text = MappedFile::map(kGraphFd, "graph");
  const auto constants = MappedFile::map(kConstantsFd, "graph constants");
  const ir::Variants variants =
      ir::read_variants(request.at("variants").dump(), *text, constants, ops::standard_ops());
  if (variants.is_dynamic() || variants.graphs.size() != 1)
    throw Error(ErrorCode::kNotSupported,
                "the model is no graph of fixed extents at the shapes of the inputs");
  const ir::Graph& graph = variants.graphs[0].graph;
  const auto names = request.at("outputs").get<std::vector<std::string>>();
  const auto feed = MappedFile::map(kFeedFd, "inputs");
  const std::vector<Tensor> made =
      ir::evaluate_reference(graph, inputs_of(graph, npz::read_npz(feed->bytes())));
  if (made.size() != names.size())
    throw Error(ErrorCode::kInvalidPackage, "the model has " + std::to_string(made.size()) +
                                                " outputs, the package " + std::to_string(names.size()));
  std::vector<npz::NamedTensor> outputs;
  for (size_t i = 0; i < made.size(); ++i) outputs.push_back({names[i], made[i]});
  write_all(kReferenceFd, npz::write_npz(outputs), "the reference");
  return "{}";
}

}  // namespace tensormill::cli
