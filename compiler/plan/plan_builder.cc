#include "compiler/plan/plan_builder.h"

#include <map>

#include "compiler/ir/storage.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/plan/step_branches.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

constexpr int64_t kAlign = 64;

int64_t align_up(int64_t offset) { return (offset + kAlign - 1) / kAlign * kAlign; }

class Builder {
public:
  Builder(const ir::Graph& graph, const Kernels& kernels, const std::vector<KernelWorkspace>& workspaces)
      : graph_(graph),
        kernels_(kernels),
        workspaces_(workspaces),
        storage_(graph),
        buffer_of_(graph.values().size(), -1) {}

  BuiltPlan run(const std::vector<std::string>& output_names) {
    for (ir::ValueId input : graph_.inputs()) {
      const int32_t buffer = add_buffer(input, package::BufferKind::kInput);
      result_.plan.inputs.push_back(port(graph_.value(input).name, buffer));
    }
    size_t call = 0;
    BranchSteps branches(graph_, result_.plan);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (storage_.is_view(static_cast<ir::NodeId>(i))) continue;
      branches.enter(
          static_cast<ir::NodeId>(i), [this](ir::ValueId value) { return buffer_for(value); },
          [this](package::Step step) { result_.plan.steps.push_back(std::move(step)); });
      const ir::Node& node = graph_.nodes()[i];
      if (is_host_node(graph_, node)) {
        add_host_step(node);
      } else {
        add_step(node, kernels_.calls[call++]);
      }
    }
    branches.finish({});
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const int32_t buffer = buffer_for(graph_.outputs()[i]);
      package::Buffer& root =
          result_.plan.buffers[static_cast<size_t>(package::root_buffer(result_.plan, buffer))];
      // What the caller reads after the run may not be given to a later step.
      if (root.kind == package::BufferKind::kTemp) root.kind = package::BufferKind::kOutput;
      result_.plan.outputs.push_back(port(output_names[i], buffer));
    }
    result_.plan.params_bytes = params_end_ + kAlign;
    return std::move(result_);
  }

private:
  int32_t add_buffer(ir::ValueId id, package::BufferKind kind) {
    const ir::Value& value = graph_.value(id);
    package::Buffer buffer;
    buffer.name = value.name;
    buffer.kind = kind;
    buffer.dtype = value.type.dtype;
    buffer.shape = value.type.shape;
    buffer.bytes = num_bytes(value.type.shape, value.type.dtype);
    const int32_t index = static_cast<int32_t>(result_.plan.buffers.size());
    result_.plan.buffers.push_back(std::move(buffer));
    buffer_of_[static_cast<size_t>(id)] = index;
    return index;
  }

  /// The buffer of a value: made when it is first asked for, with the one that it is a view of.
  int32_t buffer_for(ir::ValueId id) {
    const int32_t known = buffer_of_[static_cast<size_t>(id)];
    if (known >= 0) return known;
    const ir::Storage::Place place = storage_.place(id);
    if (place.root != id) {
      const int32_t root = buffer_for(place.root);
      const int32_t index = add_buffer(id, package::BufferKind::kView);
      package::Buffer& view = result_.plan.buffers[static_cast<size_t>(index)];
      view.view_of = root;
      view.view_offset = place.offset;
      return index;
    }
    const ir::Value& value = graph_.value(id);
    if (!value.constant) return add_buffer(id, package::BufferKind::kTemp);
    const int32_t index = add_buffer(id, package::BufferKind::kConstant);
    package::Buffer& buffer = result_.plan.buffers[static_cast<size_t>(index)];
    buffer.params_offset = align_up(params_end_);
    params_end_ = buffer.params_offset + buffer.bytes;
    result_.params.push_back({buffer.params_offset, *value.constant});
    return index;
  }

  package::Port port(const std::string& name, int32_t buffer) const {
    const package::Buffer& target = result_.plan.buffers[static_cast<size_t>(buffer)];
    package::Port port;
    port.name = name;
    port.dtype = target.dtype;
    for (int64_t extent : target.shape) port.shape.emplace_back(extent);
    port.buffer = buffer;
    return port;
  }

  void add_host_step(const ir::Node& node) {
    package::Step step;
    step.kind = package::StepKind::kHost;
    step.name = node.op + "_" + std::to_string(result_.plan.steps.size());
    step.function = node.op;
    step.attributes = ops::host_attributes(node.attrs);
    for (const ir::ValueId input : node.inputs) step.args.push_back(buffer_for(input));
    for (const ir::ValueId output : node.outputs) {
      step.outputs.push_back(static_cast<int32_t>(step.args.size()));
      step.args.push_back(buffer_for(output));
    }
    if (const std::optional<size_t> operand = ops::operand_in_place(node))
      step.in_place.push_back({step.outputs[0], static_cast<int32_t>(*operand)});
    for (const int32_t arg : step.args) step.bytes += result_.plan.buffers[static_cast<size_t>(arg)].bytes;
    step.origins = node.origins;
    result_.plan.steps.push_back(std::move(step));
  }

  void add_step(const ir::Node& node, const KernelCall& call) {
    std::vector<int32_t> inputs, outputs;
    for (const ir::ValueId input : call.inputs) inputs.push_back(buffer_for(input));
    for (const ir::ValueId output : node.outputs) outputs.push_back(buffer_for(output));
    package::Step step =
        kernel_step(kernels_.kernels[call.kernel], node, result_.plan.steps.size(), inputs, outputs);
    for (const int32_t arg : step.args) step.bytes += result_.plan.buffers[static_cast<size_t>(arg)].bytes;
    set_workspace(step, workspaces_[call.kernel]);
    result_.plan.steps.push_back(std::move(step));
  }

  const ir::Graph& graph_;
  const Kernels& kernels_;
  const std::vector<KernelWorkspace>& workspaces_;
  const ir::Storage storage_;
  std::vector<int32_t> buffer_of_;
  int64_t params_end_ = 0;
  BuiltPlan result_;
};

}  // namespace

package::Step kernel_step(const Kernel& kernel, const ir::Node& node, size_t index,
                          const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs) {
  package::Step step;
  step.name = kernel.symbol.substr(0, kernel.symbol.rfind('_')) + "_" + std::to_string(index);
  step.function = kernel.symbol;
  step.args = inputs;
  for (const int32_t output : outputs) {
    step.outputs.push_back(static_cast<int32_t>(step.args.size()));
    step.args.push_back(output);
  }
  for (const size_t input : kernel.in_place)
    step.in_place.push_back({step.outputs[0], static_cast<int32_t>(input)});
  step.origins = node.origins;
  step.flops = kernel.flops;
  return step;
}

void set_workspace(package::Step& step, const KernelWorkspace& workspace) {
  step.shared_workspace_bytes = workspace.shared_bytes;
  step.worker_workspace_bytes = workspace.worker_bytes;
  step.sharing = workspace.sharing;
}

BuiltPlan build_plan(const ir::Graph& graph, const Kernels& kernels,
                     const std::vector<KernelWorkspace>& workspaces,
                     const std::vector<std::string>& output_names) {
  TM_CHECK(workspaces.size() == kernels.kernels.size() && output_names.size() == graph.outputs().size(),
           "one workspace per kernel and one name per output");
  return Builder(graph, kernels, workspaces).run(output_names);
}

int64_t SharedParams::place_own(const Tensor& tensor) {
  const size_t size = tensor.num_bytes();
  const auto [address, is_new] = by_address_.emplace(std::pair(tensor.data(), size), 0);
  if (!is_new) return address->second;
  const auto digest_of = [](const Tensor& each) {
    return Digest::of(std::string_view(static_cast<const char*>(each.data()), each.num_bytes()));
  };
  const int64_t offset = align_up(end_);
  SameSize& same = by_size_[size];
  if (owners_ == 1) {
    same.not_hashed.push_back(segments_.size());
  } else {
    for (const size_t each : same.not_hashed)
      same.by_content.emplace(digest_of(segments_[each].tensor), segments_[each].offset);
    same.not_hashed.clear();
    const auto [content, is_first] = same.by_content.emplace(digest_of(tensor), offset);
    if (!is_first) return address->second = content->second;
  }
  end_ = offset + static_cast<int64_t>(size);
  segments_.push_back({offset, tensor});
  return address->second = offset;
}

int64_t SharedParams::place(const Tensor& tensor) {
  ++owners_;
  return place_own(tensor);
}

void SharedParams::merge(BuiltPlan built, package::ExecPlan& plan) {
  ++owners_;
  std::map<int64_t, int64_t> moved;
  for (const ParamSegment& segment : built.params) moved[segment.offset] = place_own(segment.tensor);
  plan = std::move(built.plan);
  for (package::Buffer& buffer : plan.buffers) {
    if (buffer.kind == package::BufferKind::kConstant) buffer.params_offset = moved.at(buffer.params_offset);
  }
}

int64_t SharedParams::finish(const std::vector<package::ExecPlan*>& plans) const {
  const int64_t bytes = end_ + kAlign;
  for (package::ExecPlan* plan : plans) plan->params_bytes = bytes;
  return bytes;
}

}  // namespace tensormill::plan
