/// Kernels of an optimized graph: each node that computes becomes a call of a kernel; equal kernels (same
/// tensor expressions, dtypes and shapes) are one. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

/// What one kernel computes, apart from any model: inputs by position, constants of one element as
/// immediates.
struct Kernel {
  std::string symbol;                       ///< "conv_add_relu_0a1b2c3d4e5f"
  Digest key;                               ///< of the canonical text of the program
  std::shared_ptr<const ir::Graph> region;  ///< for the reference
  te::Program program;
  /// Inputs on whose bytes output 0 may lie (in_place.h); with it they are one alias class of the function.
  std::vector<size_t> in_place;
  double tolerance =
      0;  ///< against the reference, relative to its largest magnitude: the operators' rows added up
  int64_t flops = 0;  ///< multiply and add count as two
};

/// What a node computes, its extents as the graph has them: numbers, or expressions over symbols.
struct NodeProgram {
  te::Program program;
  std::string base;                 ///< of kernels' names: "conv_add_relu_"
  std::vector<ir::ValueId> inputs;  ///< of the graph, in the program's order
};
NodeProgram program_of(const ir::Graph& graph, const ir::Node& node);

/// One node of the graph as a step.
struct KernelCall {
  ir::NodeId node = 0;
  size_t kernel = 0;                ///< index into Kernels::kernels
  std::vector<ir::ValueId> inputs;  ///< of the graph, in the kernel's parameter order
};

struct Kernels {
  std::vector<Kernel> kernels;    ///< in the order of first use
  std::vector<KernelCall> calls;  ///< in node order; views and host steps have none
};

/// By how much of its largest magnitude the kernel's result of one operator may be off, of exact operands;
/// `before`: what the operators before it sum up to.
double tolerance_of(const ir::OpDef& def, DType dtype, double before);
/// A node that the host computes: it has no kernel.
bool is_host_node(const ir::Graph& graph, const ir::Node& node);
/// The model's node that it comes from first, for errors.
std::string name_of(const ir::Node& node);

/// The tensor where a kernel can read it: a model's file may have it anywhere, and end behind it, and then it
/// is a copy.
Tensor as_kernels_read(const Tensor& tensor);

/// Those of nodes whose extents are numbers.
Kernels extract_kernels(const ir::Graph& graph);
/// The kernel of one node; `inputs` are set to the graph's values in the kernel's parameter order.
Kernel kernel_of(const ir::Graph& graph, const ir::Node& node, std::vector<ir::ValueId>& inputs);

}  // namespace tensormill::plan
