/// From an optimized graph and its kernels to the executor's plan and the layout of mod.params.
/// Thread-safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/plan/kernel.h"
#include "runtime/package/exec_plan.h"

namespace tensormill::plan {

/// A constant and where it stands in mod.params (64-byte aligned; zeros between).
struct ParamSegment {
  int64_t offset = 0;
  Tensor tensor;
};

/// What the lowered kernel asks for: bytes of scratch memory, and how workers share it.
struct KernelWorkspace {
  int64_t shared_bytes = 0;
  int64_t worker_bytes = 0;
  package::Sharing sharing = package::Sharing::kLaunches;
};

struct BuiltPlan {
  package::ExecPlan plan;
  std::vector<ParamSegment> params;
};

/// The step that calls the node's kernel with these buffers. It knows no workspaces, nor how much it moves.
package::Step kernel_step(const Kernel& kernel, const ir::Node& node, size_t index,
                          const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs);
/// What the step takes of scratch memory, which is known when its kernel is lowered.
void set_workspace(package::Step& step, const KernelWorkspace& workspace);

/// `workspaces`: one per kernel. Output names are `output_names`, one per graph output.
BuiltPlan build_plan(const ir::Graph& graph, const Kernels& kernels,
                     const std::vector<KernelWorkspace>& workspaces,
                     const std::vector<std::string>& output_names);

/// mod.params of several plans: constants of equal bytes stand there once.
class SharedParams {
public:
  /// Where the bytes of a tensor stand that no plan reads.
  int64_t place(const Tensor& tensor);
  /// Moves the plan's constants to their places here.
  void merge(BuiltPlan built, package::ExecPlan& plan);
  /// Sets the size of mod.params in the plans that were merged; they are all of them.
  int64_t finish(const std::vector<package::ExecPlan*>& plans) const;
  const std::vector<ParamSegment>& segments() const { return segments_; }

private:
  int64_t place_own(const Tensor& tensor);

  /// One plan's constants differ: nothing is hashed before there are others.
  struct SameSize {
    std::vector<size_t> not_hashed;  ///< of `segments_`
    std::map<Digest, int64_t> by_content;
  };
  std::map<std::pair<const void*, size_t>, int64_t> by_address_;
  std::map<size_t, SameSize> by_size_;
  std::vector<ParamSegment> segments_;
  int64_t end_ = 0;
  int owners_ = 0;  ///< plans that were merged, and tensors placed by themselves
};

}  // namespace tensormill::plan
