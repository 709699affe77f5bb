#include "compiler/ir/parts.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

Shape shape_of_part(Shape shape, const Part& part) {
  TM_CHECK(
      part.axis < shape.size() && part.begin >= 0 && part.begin < part.end && part.end <= shape[part.axis],
      "indices " + std::to_string(part.begin) + " to " + std::to_string(part.end) + " of axis " +
          std::to_string(part.axis) + " are no part of " + tensormill::to_string(shape));
  shape[part.axis] = part.end - part.begin;
  return shape;
}

}  // namespace

Tensor part_of(const Tensor& tensor, const Part& part) {
  const Shape& from = tensor.shape();
  Tensor result(tensor.dtype(), shape_of_part(from, part));
  size_t outer = 1, inner = dtype_bytes(tensor.dtype());
  for (size_t d = 0; d < part.axis; ++d) outer *= static_cast<size_t>(from[d]);
  for (size_t d = part.axis + 1; d < from.size(); ++d) inner *= static_cast<size_t>(from[d]);
  const size_t bytes = static_cast<size_t>(part.end - part.begin) * inner;
  const auto* source = static_cast<const std::byte*>(tensor.data()) + static_cast<size_t>(part.begin) * inner;
  auto* target = static_cast<std::byte*>(result.data());
  for (size_t i = 0; i < outer && bytes > 0; ++i)
    std::memcpy(target + i * bytes, source + i * static_cast<size_t>(from[part.axis]) * inner, bytes);
  return result;
}

ValueType PartPlan::type_of(const Key& key) const {
  ValueType type = graph_.value(key.first).type;
  if (key.second) type.shape = shape_of_part(std::move(type.shape), *key.second);
  return type;
}

void PartPlan::add(ValueId value, const std::optional<Part>& part) {
  results_.push_back(require(value, part));
}

size_t PartPlan::require(ValueId value, const std::optional<Part>& wanted) {
  const Key key{value, wanted};
  if (const auto found = step_of_.find(key); found != step_of_.end()) return found->second;
  Step step{key, {}, {}};
  if (!is_given(value)) {
    const Node& node = graph_.node(graph_.value(value).producer);
    PartContext context{node.attrs, {}, graph_.value(value).type, wanted.value_or(Part{}), {}, node.attrs};
    for (const ValueId input : node.inputs)
      context.inputs.push_back(input == kAbsent ? nullptr : &graph_.value(input).type);
    context.parts.resize(node.inputs.size());
    const OpDef* def = node.op == "fused" ? nullptr : &graph_.ops().get(node.op);
    const bool in_parts =
        wanted && def != nullptr && def->part != nullptr && node.outputs.size() == 1 && def->part(context);
    if (wanted && !in_parts) {
      // A part of what is only made as a whole.
      step.inputs = {require(value, std::nullopt)};
    } else {
      step.attrs = in_parts ? context.changed : node.attrs;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const std::optional<Part> part = in_parts ? context.parts[i] : std::nullopt;
        step.inputs.push_back(node.inputs[i] == kAbsent ? kNone : require(node.inputs[i], part));
      }
    }
  }
  elements_ += num_elements(type_of(key).shape);
  steps_.push_back(std::move(step));
  step_of_.emplace(key, steps_.size() - 1);
  return steps_.size() - 1;
}

bool PartPlan::cuts(const Step& step) const {
  const auto& [value, part] = step.makes;
  return part && step.inputs.size() == 1 && step.inputs[0] != kNone &&
         steps_[step.inputs[0]].makes == Key{value, std::nullopt};
}

const Tensor& PartPlan::given(ValueId value, const std::vector<Tensor>& inputs) const {
  const std::optional<Tensor>& constant = graph_.value(value).constant;
  if (constant) return *constant;
  const std::vector<ValueId>& ids = graph_.inputs();
  return inputs[static_cast<size_t>(std::find(ids.begin(), ids.end(), value) - ids.begin())];
}

namespace {

/// Tensors, and what references make of them.
class Tensors {
public:
  explicit Tensors(const OpRegistry& ops) : ops_(ops) {}

  const Tensor& whole(const Tensor& tensor) const { return tensor; }
  Tensor part(const Tensor& tensor, const Part& part) const { return part_of(tensor, part); }
  std::vector<Tensor> run(const PartPlan::Operation& operation,
                          const std::vector<const Tensor*>& inputs) const {
    if (operation.node.op == "fused") {
      std::vector<Tensor> given;
      for (const Tensor* input : inputs) given.push_back(*input);
      return evaluate_reference(*operation.node.region, given);
    }
    std::vector<Tensor> results;
    for (const ValueType& type : operation.outputs) results.push_back(Tensor::zeros(type.dtype, type.shape));
    ReferenceContext context{operation.attrs, inputs, {}};
    for (Tensor& result : results) context.outputs.push_back(&result);
    ops_.get(operation.node.op).reference(context);
    return results;
  }

private:
  const OpRegistry& ops_;
};

}  // namespace

std::vector<Tensor> PartPlan::evaluate(const std::vector<Tensor>& inputs) const {
  TM_CHECK(inputs.size() == graph_.inputs().size(), "a plan needs one tensor per graph input");
  Tensors tensors(graph_.ops());
  return evaluate_as<Tensor>(inputs, tensors);
}

}  // namespace tensormill::ir
