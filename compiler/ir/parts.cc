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

void PartPlan::run(const Step& step, std::map<Key, Tensor>& made) const {
  const auto& [value, part] = step.makes;
  const Node& node = graph_.node(graph_.value(value).producer);
  const auto input = [&](size_t i) -> const Tensor& { return made.at(steps_[step.inputs[i]].makes); };
  const bool takes_part_of_whole =
      part && step.inputs.size() == 1 && steps_[step.inputs[0]].makes == Key{value, std::nullopt};
  if (takes_part_of_whole) {
    made.insert_or_assign(step.makes, part_of(input(0), *part));
    return;
  }
  if (node.op == "fused") {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < step.inputs.size(); ++i) inputs.push_back(input(i));
    const std::vector<Tensor> outputs = evaluate_reference(*node.region, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      made.insert_or_assign(Key{node.outputs[i], std::nullopt}, outputs[i]);
    return;
  }
  ReferenceContext context{step.attrs, {}, {}};
  for (size_t i = 0; i < step.inputs.size(); ++i)
    context.inputs.push_back(step.inputs[i] == kNone ? nullptr : &input(i));
  for (const ValueId output : node.outputs) {
    const Key key{output, part};
    const ValueType type = type_of(key);
    context.outputs.push_back(
        &made.insert_or_assign(key, Tensor::zeros(type.dtype, type.shape)).first->second);
  }
  graph_.ops().get(node.op).reference(context);
}

std::vector<Tensor> PartPlan::evaluate(const std::vector<Tensor>& inputs) const {
  TM_CHECK(inputs.size() == graph_.inputs().size(), "a plan needs one tensor per graph input");
  std::map<ValueId, const Tensor*> given;
  for (size_t i = 0; i < inputs.size(); ++i) given[graph_.inputs()[i]] = &inputs[i];
  std::map<Key, Tensor> made;
  for (const Step& step : steps_) {
    const auto& [value, part] = step.makes;
    if (made.count(step.makes) != 0) continue;
    if (!is_given(value)) {
      run(step, made);
      continue;
    }
    const std::optional<Tensor>& constant = graph_.value(value).constant;
    const Tensor& whole = constant ? *constant : *given.at(value);
    made.emplace(step.makes, part ? part_of(whole, *part) : whole);
  }
  std::vector<Tensor> results;
  for (const size_t result : results_) results.push_back(made.at(steps_[result].makes));
  return results;
}

}  // namespace tensormill::ir
