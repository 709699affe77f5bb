#include "compiler/plan/kernel.h"

#include <algorithm>
#include <array>
#include <map>

#include "compiler/ir/run_dims.h"
#include "compiler/ir/storage.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/plan/in_place.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::plan {

namespace {

struct Region {
  std::shared_ptr<const ir::Graph> graph;
  std::vector<ir::ValueId> inputs;  ///< values of the outer graph, one per region input
};

/// A node as a region of its own: absent operands stay absent, constants of one element move inside.
Region region_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.region != nullptr) return {node.region, node.inputs};
  auto region = std::make_shared<ir::Graph>(graph.ops());
  Region result;
  std::map<ir::ValueId, ir::ValueId> inner;
  std::vector<ir::ValueId> args;
  for (ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent) {
      args.push_back(input);
      continue;
    }
    const auto [found, is_new] = inner.emplace(input, ir::kAbsent);
    if (is_new) {
      const ir::Value& value = graph.value(input);
      const bool immediate = value.constant && value.constant->num_elements() == 1;
      found->second = immediate ? region->add_constant(value.name, *value.constant)
                                : region->add_input(value.name, value.type);
      if (!immediate) result.inputs.push_back(input);
    }
    args.push_back(found->second);
  }
  region->set_outputs(region->add_node(node.op, std::move(args), node.attrs, node.origins));
  result.graph = region;
  return result;
}

te::Tensor immediate(const ir::Value& value, const std::string& name) {
  const Tensor& tensor = *value.constant;
  const DType stored = storage_dtype(tensor.dtype());
  const int64_t integer = is_narrow(tensor.dtype()) ? static_cast<const uint8_t*>(tensor.data())[0]
                          : is_float(stored)        ? 0
                                                    : tensor.element_as_int(0);
  te::Expr constant =
      is_float(stored) ? te::float_imm(stored, tensor.element_as_double(0)) : te::int_imm(stored, integer);
  return te::compute(name, value.type.shape.exprs(), [&](const std::vector<te::Expr>&) { return constant; });
}

/// Names in the program are positions and operators, never the model's: equal kernels have equal text.
te::Program build_program(const ir::Graph& region) {
  te::Program program;
  std::vector<te::Tensor> tensors(region.values().size());
  for (size_t i = 0; i < region.inputs().size(); ++i) {
    const ir::Value& value = region.value(region.inputs()[i]);
    program.inputs.push_back(
        te::placeholder("p" + std::to_string(i), value.type.dtype, value.type.shape.exprs()));
    tensors[static_cast<size_t>(region.inputs()[i])] = program.inputs.back();
  }
  for (size_t i = 0; i < region.values().size(); ++i) {
    if (region.values()[i].constant) tensors[i] = immediate(region.values()[i], "c");
  }
  for (const ir::Node& node : region.nodes()) {
    ir::ComputeContext context{node.attrs, {}, {}, {}, node.op};
    for (ir::ValueId input : node.inputs) {
      context.inputs.push_back(input == ir::kAbsent ? nullptr : tensors[static_cast<size_t>(input)]);
      context.input_types.push_back(input == ir::kAbsent ? ir::ValueType{} : region.value(input).type);
    }
    for (ir::ValueId output : node.outputs) context.output_types.push_back(region.value(output).type);
    const auto results = region.ops().get(node.op).compute(context);
    TM_CHECK(results.size() == node.outputs.size(),
             node.op + " computes another number of outputs than it has");
    for (size_t i = 0; i < results.size(); ++i) tensors[static_cast<size_t>(node.outputs[i])] = results[i];
  }
  for (ir::ValueId output : region.outputs()) program.outputs.push_back(tensors[static_cast<size_t>(output)]);
  return program;
}

int64_t count_flops(const te::Program& program) {
  int64_t flops = 0;
  for (const te::Tensor& stage : te::stages_of(program)) {
    int64_t points = num_elements(stage->constant_shape());
    int64_t per_point = 0;
    const auto count = [&](const te::Expr& expr) {
      if (expr->type.is_float() && !expr->args.empty() && expr->op != te::ExprOp::kRead) ++per_point;
    };
    for (const te::Expr& body : stage->body) te::for_each_expr(body, count);
    if (stage->reduction != nullptr) {
      for (const te::Axis& axis : stage->reduction->axes) points *= *te::as_int(axis.extent);
      for (const te::Expr& source : stage->reduction->source) te::for_each_expr(source, count);
      per_point += static_cast<int64_t>(stage->reduction->combine.size());
    }
    flops += points * per_point;
  }
  return flops;
}

/// "conv_add_relu": operators in order, shortened.
std::string base_name(const ir::Graph& region) {
  std::string name;
  size_t count = 0;
  for (const ir::Node& node : region.nodes()) {
    if (++count > 4) break;
    name += node.op + "_";
  }
  return count > 4 ? name + "etc_" : name;
}

}  // namespace

/// The row's tolerance. A result of 16 bits can differ by one rounding, which is more than most rows allow;
/// so can one of 8 or 4 bits behind operators that are not exact.
double tolerance_of(const ir::OpDef& def, DType dtype, double before) {
  if (is_narrow(dtype) && is_float(dtype)) return before == 0 ? 0 : 0x1p-2;
  // So can what is cast behind them, and sums and products of them.
  constexpr std::array<std::string_view, 5> kRounding = {"cast", "add", "sub", "mul", "div"};
  const bool rounds = std::find(kRounding.begin(), kRounding.end(), def.name) != kRounding.end() &&
                      before > 0 && (dtype == DType::kFloat16 || dtype == DType::kBFloat16);
  if (def.tolerance == 0 && !rounds) return 0;
  if (dtype == DType::kFloat16) return std::max(def.tolerance, 0x1p-10);
  return dtype == DType::kBFloat16 ? std::max(def.tolerance, 0x1p-7) : def.tolerance;
}

namespace {

Kernel make_kernel(const Region& region) {
  Kernel kernel;
  kernel.region = region.graph;
  kernel.program = build_program(*region.graph);
  for (const ir::Node& node : region.graph->nodes()) {
    const ir::OpDef& def = region.graph->ops().get(node.op);
    const DType dtype = region.graph->value(node.outputs[0]).type.dtype;
    kernel.tolerance += tolerance_of(def, dtype, kernel.tolerance);
  }
  Hasher hasher;
  hasher.update_field(te::print(kernel.program));
  kernel.key = hasher.finish();
  kernel.symbol = base_name(*region.graph) + kernel.key.hex().substr(0, 12);
  kernel.flops = count_flops(kernel.program);
  kernel.in_place = find_in_place(kernel.program);
  return kernel;
}

}  // namespace

NodeProgram program_of(const ir::Graph& graph, const ir::Node& node) {
  Region region = region_of(graph, node);
  return {build_program(*region.graph), base_name(*region.graph), std::move(region.inputs)};
}

Kernel kernel_of(const ir::Graph& graph, const ir::Node& node, std::vector<ir::ValueId>& inputs) {
  Region region = region_of(graph, node);
  inputs = region.inputs;
  return make_kernel(region);
}

bool is_host_node(const ir::Graph& graph, const ir::Node& node) {
  return node.region == nullptr && ops::is_host_step(graph.ops().get(node.op));
}

std::string name_of(const ir::Node& node) { return node.origins.empty() ? node.op : node.origins[0]; }

Tensor as_kernels_read(const Tensor& tensor) {
  constexpr size_t kSmallestPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data()), end = begin + tensor.num_bytes();
  // Of the page that it ends in all bytes can be read.
  const bool ends_in_page = end % kSmallestPage != 0 && end % kSmallestPage + kTensorPadding <= kSmallestPage;
  return begin % kTensorAlignment == 0 && ends_in_page ? tensor : tensor.clone();
}

Kernels extract_kernels(const ir::Graph& graph) {
  Kernels result;
  std::map<Digest, size_t> by_key;
  const bool is_generic = !ir::has_constant_extents(graph);
  const ir::Storage storage(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    if (is_generic && !ir::has_constant_extents(graph, node)) continue;
    if (storage.is_view(static_cast<ir::NodeId>(i)) || is_host_node(graph, node)) continue;
    const Region region = region_of(graph, node);
    Kernel kernel = make_kernel(region);
    const auto [found, is_new] = by_key.emplace(kernel.key, result.kernels.size());
    if (is_new) result.kernels.push_back(std::move(kernel));
    result.calls.push_back({static_cast<ir::NodeId>(i), found->second, region.inputs});
  }
  return result;
}

}  // namespace tensormill::plan
