/// Base class of what writes a generic plan, which serves all shapes: buffers, views, host steps, and
/// kernels, of which equal ones are made once. Thread-safety: a writer belongs to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/storage.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/plan/generic_plan.h"
#include "compiler/plan/kernel.h"

namespace tensormill::plan {

class PlanWriter {
protected:
  /// `graph` outlives the writer.
  explicit PlanWriter(const ir::Graph& graph)
      : graph_(graph), storage_(graph), buffer_of_(graph.values().size(), -1) {}
  ~PlanWriter() = default;

  /// The buffer of a value; of a constant that has none yet, one that is made.
  virtual int32_t buffer_for(ir::ValueId id) = 0;
  /// A new buffer for the value.
  virtual int32_t add_value(ir::ValueId id, package::BufferKind kind) = 0;

  package::ExecPlan& plan() { return result_.plan.plan; }
  package::Port port(const std::string& name, int32_t buffer);
  /// The tensor among the weights, in a new buffer.
  int32_t add_constant(ir::ValueId id, const Tensor& tensor);
  /// A host step reads extents from its operands.
  void add_host_step(const ir::Node& node);
  /// The buffers of what lies in other values.
  void add_views(const ir::Node& node);
  /// The buffer of a step's result: a part of another, which is made with its first part, where it lies in
  /// it.
  int32_t add_made_value(ir::ValueId id);
  /// The buffers of what the model returns, and the size of the weights.
  void add_outputs(const std::vector<std::string>& names);
  /// Output `output` of nest `number` as a value of the model, if it is one, and else as `dtype`.
  struct Made {
    std::string name;
    DType dtype;
  };
  Made made_of(const ir::Node& node, const std::vector<NestSource>& outputs, size_t number, size_t output,
               DType dtype) const;
  /// The step behind all others, which runs the kernel of this with `step.dims`.
  void add_kernel_step(package::Step step, const std::string& base, GenericSource source,
                       const std::vector<std::string>& origins);

  /// The step behind all others, which runs the node's kernel: its extents are numbers.
  void add_fixed_step(const ir::Node& node);

  /// Nests of a node in an order in which they can be steps: each with the sum that goes into it, if any.
  struct Order {
    size_t nest = 0;
    std::optional<size_t> sum = std::nullopt;
  };
  static std::vector<Order> order_of(const Nests& nests);
  /// The buffers of what a nest reads: of the node's inputs, and of what its nests made.
  static std::vector<int32_t> arguments(const std::vector<NestSource>& sources,
                                        const std::vector<int32_t>& inputs,
                                        const std::vector<std::vector<int32_t>>& made);
  /// Small values of the dims, one by one beside those of `base`, and all at once.
  static std::vector<std::vector<int64_t>> small_dims(const std::vector<int64_t>& base);

  const ir::Graph& graph_;
  const ir::Storage storage_;
  std::vector<int32_t> buffer_of_;
  GenericModel result_;

private:
  size_t add_kernel(const std::string& base, te::Function loops, GenericSource source,
                    const std::vector<std::string>& origins);

  int64_t params_end_ = 0;
  std::map<Digest, size_t> by_key_, fixed_by_key_;
};

}  // namespace tensormill::plan
