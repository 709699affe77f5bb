/// One layer as machine code in this process, with its buffers. Thread-safety: belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/kernels/layers.h"
#include "compiler/codegen/jit.h"
#include "compiler/plan/kernel.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/target/target.h"
#include "runtime/parallel/kernel_parallel.h"

namespace tensormill::bench {

class LayerKernel {
public:
  /// Compiles the layer with the default schedule and fills its inputs with seeded values.
  LayerKernel(const Layer& layer, const target::Target& target);
  /// Compares with the reference; throws Error(kWrongAnswer).
  void verify() const;
  /// From now on each call reads other weights, in turn from copies of `bytes` together: they come from where
  /// a network finds them. The weights are the second input.
  void make_cold(int64_t bytes);
  /// One call.
  void run(const parallel::KernelParallel& parallel);
  /// Bytes of inputs and output: what one call moves at least.
  double bytes() const;
  const std::string& schedule_text() const { return schedule_; }
  const std::string& assembly_text() const { return assembly_; }

private:
  plan::Kernel kernel_;
  plan::KernelWorkspace workspace_;
  std::unique_ptr<codegen::JitLibrary> library_;
  tm_kernel entry_ = nullptr;
  std::vector<Tensor> tensors_;  ///< inputs, then the output
  std::vector<void*> buffers_;
  std::vector<Tensor> weights_;  ///< copies, when cold
  size_t next_weights_ = 0;
  std::shared_ptr<void> shared_, workers_;
  std::string schedule_, assembly_;
};

/// The most workers that a run may use.
inline constexpr int kMaxWorkers = 64;

}  // namespace tensormill::bench
