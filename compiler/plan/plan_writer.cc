#include "compiler/plan/plan_writer.h"

#include <set>

#include "compiler/ops/steps/host_steps.h"
#include "compiler/plan/generic_epilogue.h"
#include "compiler/te/text.h"

namespace tensormill::plan {

namespace {

constexpr int64_t kConstantAlign = 64;

}  // namespace

package::Port PlanWriter::port(const std::string& name, int32_t buffer) {
  const package::Buffer& target = plan().buffers[static_cast<size_t>(buffer)];
  return {name, target.dtype, DimShape(target.shape.begin(), target.shape.end()), buffer};
}

int32_t PlanWriter::add_constant(ir::ValueId id, const Tensor& tensor) {
  const int32_t index = add_value(id, package::BufferKind::kConstant);
  package::Buffer& buffer = plan().buffers[static_cast<size_t>(index)];
  buffer.params_offset = (params_end_ + kConstantAlign - 1) / kConstantAlign * kConstantAlign;
  params_end_ = buffer.params_offset + buffer.bytes;
  result_.params.push_back({buffer.params_offset, tensor});
  return index;
}

void PlanWriter::add_host_step(const ir::Node& node) {
  package::Step step;
  step.kind = package::StepKind::kHost;
  step.name = node.op + "_" + std::to_string(plan().steps.size());
  step.function = node.op;
  step.attributes = ops::host_attributes(node.attrs);
  step.origins = node.origins;
  for (const ir::ValueId input : node.inputs) step.args.push_back(buffer_for(input));
  for (const ir::ValueId output : node.outputs) {
    step.outputs.push_back(static_cast<int32_t>(step.args.size()));
    step.args.push_back(add_made_value(output));
  }
  if (const std::optional<size_t> operand = ops::operand_in_place(node))
    step.in_place.push_back({step.outputs[0], static_cast<int32_t>(*operand)});
  plan().steps.push_back(std::move(step));
  result_.step_kernels.emplace_back();
}

void PlanWriter::add_views(const ir::Node& node) {
  for (const ir::ValueId output : node.outputs) {
    // Parts of a joined value were made before it.
    if (buffer_of_[static_cast<size_t>(output)] < 0) add_made_value(output);
  }
}

int32_t PlanWriter::add_made_value(ir::ValueId id) {
  const ir::Storage::Place place = storage_.place(id);
  if (place.root == id) return add_value(id, package::BufferKind::kTemp);
  const bool is_known =
      buffer_of_[static_cast<size_t>(place.root)] >= 0 || graph_.value(place.root).constant.has_value();
  const int32_t root = is_known ? buffer_for(place.root) : add_value(place.root, package::BufferKind::kTemp);
  const int32_t index = add_value(id, package::BufferKind::kView);
  package::Buffer& view = plan().buffers[static_cast<size_t>(index)];
  view.view_of = root;
  view.view_offset = place.offset;
  return index;
}

void PlanWriter::add_outputs(const std::vector<std::string>& names) {
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const int32_t buffer = buffer_for(graph_.outputs()[i]);
    package::Buffer& root = plan().buffers[static_cast<size_t>(package::root_buffer(plan(), buffer))];
    if (root.kind == package::BufferKind::kTemp) root.kind = package::BufferKind::kOutput;
    plan().outputs.push_back(port(names[i], buffer));
  }
  plan().params_bytes = params_end_ + kConstantAlign;
}

PlanWriter::Made PlanWriter::made_of(const ir::Node& node, const std::vector<NestSource>& outputs,
                                     size_t number, size_t output, DType dtype) const {
  // Expressions see the bytes of narrow types; the value's own type is the buffer's.
  Made made{{}, dtype};
  for (size_t k = 0; k < outputs.size(); ++k) {
    const NestSource& source = outputs[k];
    if (source.is_input || source.index != number || static_cast<size_t>(source.output) != output) continue;
    const ir::Value& value = graph_.value(node.outputs[k]);
    made = {value.name, value.type.dtype};
  }
  return made;
}

void PlanWriter::add_kernel_step(package::Step step, const std::string& base, GenericSource source,
                                 const std::vector<std::string>& origins) {
  te::Function loops = build_generic_loops(source.nest, source.vars, source.facts, source.empties);
  const auto index = static_cast<int32_t>(plan().steps.size());
  for (const EmptyCase& empty : source.empties) {
    package::EmptyArguments listed{index, {}, empty.is_any};
    for (size_t i = 0; i < empty.inputs.size(); ++i) {
      if (empty.inputs[i]) listed.arguments.push_back(static_cast<int32_t>(i));
    }
    if (!listed.arguments.empty()) result_.plan.empties.push_back(std::move(listed));
  }
  for (size_t i = 0; i < step.args.size() && !loops.aliases.empty(); ++i) {
    if (loops.aliases[i] >= 0 && static_cast<int32_t>(i) != step.outputs[0])
      step.in_place.push_back({step.outputs[0], static_cast<int32_t>(i)});
  }
  const size_t made = add_kernel(base, std::move(loops), std::move(source), origins);
  step.function = result_.kernels[made].symbol;
  step.name = step.function.substr(0, step.function.rfind('_')) + "_" + std::to_string(index);
  step.origins = origins;
  plan().steps.push_back(std::move(step));
  result_.step_kernels.emplace_back(made);
}

void PlanWriter::add_fixed_step(const ir::Node& node) {
  std::vector<ir::ValueId> inputs;
  Kernel kernel = kernel_of(graph_, node, inputs);
  std::vector<int32_t> read, made;
  for (const ir::ValueId input : inputs) read.push_back(buffer_for(input));
  for (const ir::ValueId output : node.outputs) made.push_back(add_made_value(output));
  package::Step step = kernel_step(kernel, node, plan().steps.size(), read, made);
  const auto [found, is_new] = fixed_by_key_.emplace(kernel.key, result_.fixed.size());
  if (is_new) result_.fixed.push_back({std::move(kernel), std::move(inputs), {}, {}});
  FixedKernel& own = result_.fixed[found->second];
  ir::add_origins(node.origins, own.origins);
  own.steps.push_back(plan().steps.size());
  plan().steps.push_back(std::move(step));
  result_.step_kernels.emplace_back();
}

std::vector<PlanWriter::Order> PlanWriter::order_of(const Nests& nests) {
  std::vector<Order> order;
  std::set<size_t> waiting;
  for (size_t n = 0; n < nests.nests.size(); ++n) {
    order.push_back({n, sum_before(nests, n)});
    if (order.back().sum) waiting.insert(*order.back().sum);
  }
  std::erase_if(order, [&](const Order& each) { return waiting.count(each.nest) != 0; });
  return order;
}

std::vector<int32_t> PlanWriter::arguments(const std::vector<NestSource>& sources,
                                           const std::vector<int32_t>& inputs,
                                           const std::vector<std::vector<int32_t>>& made) {
  std::vector<int32_t> args;
  for (const NestSource& source : sources)
    args.push_back(source.is_input ? inputs[source.index]
                                   : made[source.index][static_cast<size_t>(source.output)]);
  return args;
}

std::vector<std::vector<int64_t>> PlanWriter::small_dims(const std::vector<int64_t>& base) {
  constexpr int64_t kSmall = 64;
  std::vector<std::vector<int64_t>> points;
  for (int64_t value = 0; value <= kSmall; ++value) {
    points.emplace_back(base.size(), value);
    for (size_t d = 0; d < base.size() && base.size() > 1; ++d) {
      points.push_back(base);
      points.back()[d] = value;
    }
  }
  return points;
}

size_t PlanWriter::add_kernel(const std::string& base, te::Function loops, GenericSource source,
                              const std::vector<std::string>& origins) {
  const Digest key = Digest::of(te::print(loops));
  const auto [found, is_new] = by_key_.emplace(key, result_.kernels.size());
  if (is_new) {
    loops.name = "any_" + base + "_" + key.hex().substr(0, 12);
    result_.kernels.push_back(
        {loops.name, key, std::move(loops), {}, std::make_shared<const GenericSource>(std::move(source))});
  }
  ir::add_origins(origins, result_.kernels[found->second].origins);
  return found->second;
}

}  // namespace tensormill::plan
