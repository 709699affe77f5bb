#include "compiler/tune/task.h"

#include <charconv>
#include <map>
#include <set>

#include "compiler/driver/layers.h"
#include "compiler/ir/run_dims.h"
#include "compiler/passes/pass.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::tune {

namespace {

std::string type_text(const ir::ValueType& type) {
  return std::string(dtype_info(type.dtype).name) + to_string(type.shape);
}

void describe(Task& task) {
  const ir::Graph& region = *task.kernel.region;
  const auto add = [&](ir::ValueId id) {
    const ir::ValueType& type = region.value(id).type;
    task.args += type_text(type) + " ";
    task.bytes += num_elements(type.shape) * static_cast<int64_t>(dtype_bytes(type.dtype));
  };
  for (ir::ValueId input : region.inputs()) add(input);
  task.args += "->";
  for (ir::ValueId output : region.outputs()) {
    task.args += " ";
    add(output);
    task.args.pop_back();
  }
  task.name = task.kernel.symbol.substr(0, task.kernel.symbol.rfind('_'));
}

size_t parse_place(const std::string& text, size_t count) {
  size_t place = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), place);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || place >= count)
    throw Error(ErrorCode::kUsage,
                "--tasks: \"" + text + "\" is no task; there are " + std::to_string(count));
  return place;
}

passes::PipelineOptions pipeline_of(const ir::Graph& graph, const target::Target& target, int opt_level,
                                    const std::optional<passes::DesiredLayout>& layout) {
  passes::PipelineOptions pipeline;
  pipeline.context = {target.facts, opt_level};
  pipeline.context.is_generic = !ir::has_constant_extents(graph);
  if (layout) pipeline.context.layout = passes::bind_desired_layout(*layout, graph);
  return pipeline;
}

/// The tasks of an optimized graph whose layers have these keys.
std::vector<Task> tasks_of(const ir::Graph& optimized, const std::vector<std::string>& layers) {
  plan::Kernels kernels = plan::extract_kernels(optimized);
  std::vector<Task> tasks(kernels.kernels.size());
  std::map<ir::NodeId, size_t> kernel_of;
  for (const plan::KernelCall& call : kernels.calls) {
    kernel_of[call.node] = call.kernel;
    Task& task = tasks[call.kernel];
    if (++task.calls > 1) continue;
    for (ir::ValueId input : call.inputs) {
      const std::optional<Tensor>& constant = optimized.value(input).constant;
      task.is_constant.push_back(constant ? 1 : 0);
      task.constants.push_back(constant ? *constant : Tensor());
    }
  }
  for (const driver::LayerNode& node : driver::layer_nodes(optimized)) {
    const auto kernel = kernel_of.find(node.node);
    if (kernel == kernel_of.end()) continue;
    Task& task = tasks[kernel->second];
    task.layer = layers[static_cast<size_t>(node.layer)];
    task.algorithm = node.algorithm;
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].kernel = std::move(kernels.kernels[i]);
    describe(tasks[i]);
  }
  return tasks;
}

}  // namespace

std::vector<Task> extract_tasks(const ir::Graph& graph, const target::Target& target, int opt_level,
                                const std::optional<passes::DesiredLayout>& layout) {
  std::vector<std::string> ran;
  return tasks_of(passes::run_pipeline(graph, pipeline_of(graph, target, opt_level, layout), ran), {});
}

std::vector<Task> extract_all_tasks(const ir::Graph& graph, const target::Target& target, int opt_level,
                                    const std::optional<passes::DesiredLayout>& layout) {
  const driver::LayerProbe probe(graph, pipeline_of(graph, target, opt_level, layout));
  std::vector<Task> tasks;
  std::set<std::string> known;
  for (const ir::Graph& optimized : probe.all_graphs()) {
    const bool is_rule = tasks.empty();
    for (Task& task : tasks_of(optimized, probe.keys())) {
      if (!known.insert(task.key()).second || (!is_rule && task.layer.empty())) continue;
      if (!is_rule) task.calls = 0;
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

std::vector<Workload> make_workloads(const Task& task) {
  if (task.symbolic) return task.symbolic->timed();
  std::vector<const Tensor*> constants;
  for (size_t i = 0; i < task.constants.size(); ++i)
    constants.push_back(task.is_constant[i] != 0 ? &task.constants[i] : nullptr);
  const auto reference = std::make_shared<const driver::KernelReference>(
      driver::make_accepted_reference(task.kernel, constants));
  Workload workload;
  workload.inputs = reference->inputs;
  for (const ir::ValueId output : task.kernel.region->outputs())
    workload.outputs.push_back(task.kernel.region->value(output).type);
  workload.check = [kernel = task.kernel, reference](int32_t code, const std::vector<Tensor>& outputs) {
    driver::check_outputs(kernel, *reference, code, outputs);
  };
  return {std::move(workload)};
}

te::Function loops_of(const Task& task, const schedule::Schedule& steps) {
  if (!task.symbolic) return driver::build_loops(task.kernel, steps);
  te::Function loops = plan::loops_by(*task.symbolic->kernel().source, steps).function;
  loops.name = task.kernel.symbol;
  return loops;
}

te::Function with_extents(const Task& task, te::Function loops) {
  for (size_t i = 0; task.symbolic && i < loops.dims.size(); ++i)
    loops.body = te::make_let(loops.dims[i], te::Expr(task.symbolic->first_dims().at(i)), loops.body);
  return loops;
}

BuiltCandidate build_candidate(const Task& task, const schedule::Schedule& steps,
                               const target::Target& target, const codegen::Backend& backend) {
  if (!task.symbolic) return {driver::build_kernel(task.kernel, steps, target, backend), {}};
  plan::GenericLoops made = plan::loops_by(*task.symbolic->kernel().source, steps);
  made.function.name = task.kernel.symbol;
  te::verify(made.function, te::Level::kLoops);
  return {driver::build_from_loops(std::move(made.function), target, backend), std::move(made.tails)};
}

std::vector<size_t> parse_selection(const std::string& text, size_t count) {
  std::set<size_t> places;
  if (text == "all") {
    for (size_t i = 0; i < count; ++i) places.insert(i);
  } else {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      const std::string part = text.substr(at, end - at);
      const size_t dash = part.find('-');
      const size_t first = parse_place(part.substr(0, dash), count);
      const size_t last = dash == std::string::npos ? first : parse_place(part.substr(dash + 1), count);
      if (last < first) throw Error(ErrorCode::kUsage, "--tasks: \"" + part + "\" ends before it begins");
      for (size_t i = first; i <= last; ++i) places.insert(i);
      at = end + 1;
    }
  }
  return {places.begin(), places.end()};
}

}  // namespace tensormill::tune
