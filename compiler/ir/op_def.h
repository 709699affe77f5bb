/// What an operator is: one OpDef says everything, and stands in the operator's own file in compiler/ops.
/// Thread-safety: definitions are immutable after start; the functions are pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::te {
struct TensorNode;
}

namespace tensormill::ir {

/// How an operator takes part in fusion.
enum class Pattern : uint8_t {
  kElementwise,  ///< each output element depends on input elements at the same (broadcast) index
  kInjective,    ///< each output element depends on one element per input, at any index (transpose, gather,
                 ///< concat)
  kReduction,    ///< reduces axes; injective consumers may be fused behind it, injective producers before it
  kComplex,      ///< conv, matmul, pool, softmax: elementwise consumers may be fused into its epilogue
  kOpaque,       ///< stands alone
};

struct InferContext {
  const Attrs& attrs;
  /// Types of the inputs; null where an optional operand is absent.
  std::vector<const ValueType*> inputs;
};

struct ReferenceContext {
  const Attrs& attrs;
  std::vector<const Tensor*> inputs;  ///< null where absent
  std::vector<Tensor*> outputs;       ///< allocated with the inferred types
};

struct ComputeContext {
  const Attrs& attrs;
  std::vector<std::shared_ptr<const te::TensorNode>> inputs;  ///< null where absent
  std::vector<ValueType> input_types;                         ///< as inputs; unspecified where absent
  std::vector<ValueType> output_types;
  std::string name;  ///< prefix for stage names
};

/// The elements of a tensor whose index along `axis` is in [begin, end).
struct Part {
  size_t axis = 0;
  int64_t begin = 0, end = 0;
  auto operator<=>(const Part&) const = default;
};

/// What a part of an output is made of.
struct PartContext {
  const Attrs& attrs;
  std::vector<const ValueType*> inputs;  ///< null where absent
  const ValueType& output;
  Part wanted;
  /// To be set, one an input: what is needed of it, at least one index; none: all.
  std::vector<std::optional<Part>> parts;
  /// To be set: the attributes with which the reference makes the wanted part of those parts; `attrs` at
  /// first.
  Attrs changed;
};

struct OpDef {
  std::string_view name;
  int min_inputs = 1;
  int max_inputs = 1;  ///< -1: any number
  Pattern pattern = Pattern::kOpaque;
  /// max|kernel - reference| <= tolerance * max(|reference|, smallest normal) over the tensor; 0: bit-equal.
  double tolerance = 0;
  /// The type rule: output types, or Error(kInvalidModel) that says what does not fit (both numbers).
  std::vector<ValueType> (*infer)(const InferContext&) = nullptr;
  /// Plain evaluation; accumulates in double. Throws Error(kTensorData) for data that the operator refuses.
  void (*reference)(const ReferenceContext&) = nullptr;
  /// For operators of one output: whether the wanted part needs parts of the inputs alone, and which ones.
  bool (*part)(PartContext&) = nullptr;
  /// One tensor per output (each output 0 of its te::Tensor). In bounds for every shape, extents of 0
  /// included.
  std::vector<std::shared_ptr<const te::TensorNode>> (*compute)(const ComputeContext&) = nullptr;
  /// The value of the one output where attributes alone say it (shape arithmetic).
  KnownValue (*known)(const Attrs&) = nullptr;
  /// Pure change of shape: the same bytes in the same order (reshape, squeeze, identity).
  bool is_view = false;
  /// Operands may swap (for CSE's canonical order).
  bool commutative = false;
  std::string_view doc;
};

class OpRegistry {
public:
  explicit OpRegistry(std::vector<OpDef> defs);
  const OpDef* find(std::string_view name) const;
  /// InternalError when there is no such operator.
  const OpDef& get(std::string_view name) const;
  const std::vector<OpDef>& all() const { return defs_; }

private:
  std::vector<OpDef> defs_;
  std::map<std::string_view, size_t> by_name_;
};

/// Evaluates a whole graph with the operators' references. `inputs` in graph-input order; returns the graph
/// outputs. With `in_double` every float tensor is f64 throughout. `observe` (may be empty) sees every value.
std::vector<Tensor> evaluate_reference(const Graph& graph, const std::vector<Tensor>& inputs,
                                       bool in_double = false);
/// As evaluate_reference, but returns every value of the graph (by ValueId).
std::vector<Tensor> evaluate_all_values(const Graph& graph, const std::vector<Tensor>& inputs,
                                        bool in_double = false);

}  // namespace tensormill::ir
