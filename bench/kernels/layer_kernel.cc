#include "bench/kernels/layer_kernel.h"

#include "compiler/driver/verify_kernel.h"
#include "compiler/lower/lower.h"
#include "compiler/ops/ops.h"
#include "compiler/schedule/schedule.h"
#include "runtime/base/error.h"

namespace tensormill::bench {

namespace {

/// The operator and a ReLU as one fused node, as the pipeline makes it.
plan::Kernel make_kernel(const Layer& layer) {
  const auto region = std::make_shared<ir::Graph>(ops::standard_ops());
  ir::Graph graph(ops::standard_ops());
  std::vector<ir::ValueId> inside, outside;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const ir::ValueType type{DType::kFloat32, layer.inputs[i]};
    inside.push_back(region->add_input("p" + std::to_string(i), type));
    outside.push_back(graph.add_input("p" + std::to_string(i), type));
  }
  const std::vector<ir::ValueId> sums = region->add_node(layer.op, inside, layer.attrs);
  region->set_outputs(region->add_node("relu", sums));
  graph.set_outputs(graph.add_fused(outside, region, {layer.name}));
  return plan::extract_kernels(graph).kernels.at(0);
}

}  // namespace

LayerKernel::LayerKernel(const Layer& layer, const target::Target& target) : kernel_(make_kernel(layer)) {
  const schedule::Schedule steps = schedule::default_schedule(kernel_.program, target);
  schedule_ = schedule::print(steps);
  const te::Function function = lower::lower(schedule::apply(kernel_.program, steps, kernel_.symbol), target);
  workspace_ = {function.shared_workspace_bytes, (function.worker_workspace_bytes + 63) / 64 * 64};
  const codegen::Object object = codegen::make_llvm_backend()->emit(function, target, {false, true});
  assembly_ = object.assembly_text;
  library_ = codegen::JitLibrary::load(object);
  entry_ = library_->kernel(kernel_.symbol);
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    tensors_.push_back(driver::seeded_tensor({DType::kFloat32, layer.inputs[i]}, i + 1));
  }
  tensors_.push_back(Tensor::zeros(DType::kFloat32, kernel_.program.outputs[0]->constant_shape()));
  for (Tensor& tensor : tensors_) buffers_.push_back(tensor.data());
  shared_ = allocate_aligned(static_cast<size_t>(workspace_.shared_bytes));
  workers_ = allocate_aligned(static_cast<size_t>(workspace_.worker_bytes * kMaxWorkers));
}

void LayerKernel::verify() const {
  const std::vector<const Tensor*> constants(kernel_.program.inputs.size(), nullptr);
  driver::verify_kernel(kernel_, entry_, workspace_, constants);
}

void LayerKernel::make_cold(int64_t bytes) {
  const Tensor& weights = tensors_.at(1);
  const int64_t copies = bytes / std::max<int64_t>(static_cast<int64_t>(weights.num_bytes()), 1) + 1;
  for (int64_t i = 0; i < copies; ++i) weights_.push_back(weights.clone());
}

void LayerKernel::run(const parallel::KernelParallel& parallel) {
  int64_t error_index = 0;
  if (!weights_.empty()) buffers_[1] = weights_[next_weights_++ % weights_.size()].data();
  const tm_call call = {TM_ABI_VERSION,
                        static_cast<uint32_t>(buffers_.size()),
                        buffers_.data(),
                        nullptr,
                        0,
                        0,
                        shared_.get(),
                        workers_.get(),
                        workspace_.worker_bytes,
                        parallel.get(),
                        &error_index};
  const int32_t code = entry_(&call);
  TM_CHECK(code == TM_OK, "the kernel returned " + std::to_string(code));
}

double LayerKernel::bytes() const {
  double total = 0;
  for (const Tensor& tensor : tensors_) total += static_cast<double>(tensor.num_bytes());
  return total;
}

}  // namespace tensormill::bench
