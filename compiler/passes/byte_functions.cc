// What is elementwise of one byte and gives a byte is a function of 256 values: where the target has
// instructions for it, it is looked up in a table. So activations of quantized data, dequantized and
// quantized again, take a few instructions for a whole vector, whatever they compute.
//
// The table has what the operators' references give, which the check of kernels compares with; a kernel that
// computes with its own error may give the next byte where a result lies at the middle of two, and either is
// right (driver/element_bounds.h).
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"
#include "runtime/base/error.h"

namespace tensormill::passes {

namespace {

constexpr int64_t kBytes = 256;
/// A lookup takes about five instructions for a vector of bytes. A step takes one for a vector of its
/// elements, of which there are four times as many where they are float32; a chain of fewer is no slower.
constexpr int64_t kFewestSteps = 4;
/// Bytes behind more are where the next chain begins, and other values behind twice as many are left alone:
/// so the work for each is bounded.
constexpr int64_t kMostChained = 64;

/// A value as a function of one byte, or a constant of one element.
struct Function {
  ir::ValueId root = ir::kAbsent;  ///< the byte; absent: a constant
  int64_t steps = 0;               ///< operators between them, the longest way
  Tensor values;                   ///< by the bits of the byte [256]; a constant's own []
};

class ByteFunctions {
public:
  explicit ByteFunctions(const ir::Graph& graph)
      : graph_(graph), patch_(graph, "byte_functions"), functions_(graph.values().size()) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) visit(node);
    return patch_.apply();
  }

private:
  bool is_byte(ir::ValueId value) const {
    const DType dtype = graph_.value(value).type.dtype;
    return dtype == DType::kInt8 || dtype == DType::kUInt8;
  }

  void visit(const ir::Node& node) {
    std::optional<Function> made = function_of(node);
    if (!made || made->steps > 2 * kMostChained) return;
    const ir::ValueId output = node.outputs[0];
    if (made->root != ir::kAbsent && is_byte(output)) {
      if (made->steps >= kFewestSteps) replace(output, *made);
      if (made->steps > kMostChained) return;
    }
    functions_[static_cast<size_t>(output)] = std::move(made);
  }

  /// What `value` is; null where it is none of these. A byte that is no function of another is one of itself.
  const Function* operand(ir::ValueId id) {
    std::optional<Function>& function = functions_[static_cast<size_t>(id)];
    if (function) return &*function;
    const std::optional<Tensor>& constant = graph_.value(id).constant;
    if (constant) {
      if (constant->num_elements() != 1) return nullptr;
      function = Function{ir::kAbsent, 0, constant->reshaped({})};
    } else if (is_byte(id)) {
      Tensor all(graph_.value(id).type.dtype, {kBytes});
      for (int64_t i = 0; i < kBytes; ++i) static_cast<uint8_t*>(all.data())[i] = static_cast<uint8_t>(i);
      function = Function{id, 0, std::move(all)};
    }
    return function ? &*function : nullptr;
  }

  std::optional<Function> function_of(const ir::Node& node) {
    const ir::OpDef* def = graph_.ops().find(node.op);
    if (def == nullptr || def->pattern != ir::Pattern::kElementwise || node.outputs.size() != 1 ||
        !node.attrs.is_constant())
      return std::nullopt;
    Function made;
    std::vector<const Tensor*> inputs;
    for (const ir::ValueId input : node.inputs) {
      const Function* given = input == ir::kAbsent ? nullptr : operand(input);
      inputs.push_back(given == nullptr ? nullptr : &given->values);
      if (input == ir::kAbsent) continue;
      if (given == nullptr) return std::nullopt;
      if (given->root == ir::kAbsent) continue;
      if (made.root != ir::kAbsent && made.root != given->root) return std::nullopt;
      made.root = given->root;
      made.steps = std::max(made.steps, given->steps);
    }
    ++made.steps;
    const bool is_constant = made.root == ir::kAbsent;
    // What repeats the byte has more elements than there are to look up.
    const auto shape_of = [&](ir::ValueId id) -> const ir::SymShape& { return graph_.value(id).type.shape; };
    if (!is_constant && !are_equal(shape_of(node.outputs[0]), shape_of(made.root))) return std::nullopt;
    std::optional<Tensor> values = evaluate(*def, node.attrs, inputs);
    if (!values || values->shape() != (is_constant ? Shape{} : Shape{kBytes})) return std::nullopt;
    made.values = *std::move(values);
    return made;
  }

  /// Nothing where the operator refuses such operands: it is no function of single elements.
  static std::optional<Tensor> evaluate(const ir::OpDef& def, const ir::Attrs& attrs,
                                        const std::vector<const Tensor*>& inputs) {
    std::vector<ir::ValueType> types(inputs.size());
    ir::InferContext rule{attrs, {}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] != nullptr) types[i] = {inputs[i]->dtype(), inputs[i]->shape()};
      rule.inputs.push_back(inputs[i] == nullptr ? nullptr : &types[i]);
    }
    try {
      const ir::ValueType type = def.infer(rule)[0];
      Tensor result = Tensor::zeros(type.dtype, type.shape);
      def.reference({attrs, inputs, {&result}});
      return result;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidModel && error.code() != ErrorCode::kTensorData) throw;
      return std::nullopt;
    }
  }

  void replace(ir::ValueId value, const Function& function) {
    const ir::ValueType &type = graph_.value(value).type, &root = graph_.value(function.root).type;
    // Extents that are equal may be written differently, and then readers have it as it was.
    if (!ir::same(type.shape, root.shape)) return;
    const auto* bytes = static_cast<const uint8_t*>(function.values.data());
    const ir::Attrs attrs{{"table", std::vector<int64_t>(bytes, bytes + kBytes)}, {"to", type.dtype}};
    patch_.replace(value, patch_.add_node("lookup", {function.root}, attrs, origins_of(value, function))[0]);
  }

  /// Of all nodes between `value` and the byte.
  std::vector<std::string> origins_of(ir::ValueId value, const Function& function) const {
    std::set<ir::NodeId> found;
    std::vector<ir::ValueId> open{value};
    while (!open.empty()) {
      const ir::NodeId producer = graph_.value(open.back()).producer;
      open.pop_back();
      if (!found.insert(producer).second) continue;
      for (const ir::ValueId input : graph_.node(producer).inputs) {
        if (input == ir::kAbsent || input == function.root) continue;
        const std::optional<Function>& between = functions_[static_cast<size_t>(input)];
        if (between && between->root == function.root) open.push_back(input);
      }
    }
    std::vector<std::string> origins;
    for (const ir::NodeId id : found) ir::add_origins(graph_.node(id).origins, origins);
    return origins;
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
  std::vector<std::optional<Function>> functions_;  ///< by value, as far as looked at
};

}  // namespace

ir::Graph byte_functions(const ir::Graph& graph, const PassContext& context) {
  return context.facts.byte_lookup ? ByteFunctions(graph).run() : graph;
}

}  // namespace tensormill::passes
