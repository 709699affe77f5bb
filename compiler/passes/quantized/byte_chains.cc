#include "compiler/passes/quantized/byte_chains.h"

#include <algorithm>

#include "compiler/passes/match.h"
#include "runtime/base/error.h"

namespace tensormill::passes {

namespace {

/// What is computed for all chains of a graph takes some seconds at most.
constexpr int64_t kMostElements = int64_t{1} << 29;

/// Nothing where the operator refuses such operands: it is no function of single elements.
std::optional<Tensor> evaluate(const ir::OpDef& def, const ir::Attrs& attrs,
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

/// Takes in what `given` is a function of; false where that is no function of one byte and one axis.
bool join(const ByteFunction& given, ByteFunction& made) {
  if (given.channels > 1) {
    if (made.channels > 1 && (made.channels != given.channels || made.axis != given.axis)) return false;
    made.channels = given.channels;
    made.axis = given.axis;
  }
  if (given.root == ir::kAbsent) return true;
  if (made.root != ir::kAbsent && made.root != given.root) return false;
  made.root = given.root;
  made.steps = std::max(made.steps, given.steps);
  if (!made.unrounded) made.unrounded = given.unrounded;
  return true;
}

Shape shape_of(const ByteFunction& function) {
  if (function.root != ir::kAbsent) return {kBytes, function.channels};
  return function.channels == 1 ? Shape{} : Shape{1, function.channels};
}

}  // namespace

bool is_byte(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUInt8; }

ByteChains::ByteChains(const ir::Graph& graph, int64_t most_channels)
    : graph_(graph),
      most_channels_(most_channels),
      elements_left_(kMostElements),
      reads_left_(count_reads(graph)),
      functions_(graph.values().size()) {}

const ByteFunction* ByteChains::visit(const ir::Node& node) {
  std::optional<ByteFunction> made = function_of(node);
  release(node);
  if (!made || made->steps > 2 * kMostChained) return nullptr;
  std::optional<ByteFunction>& function = functions_[static_cast<size_t>(node.outputs[0])];
  function = std::move(made);
  return &*function;
}

/// The values of what no other node reads.
void ByteChains::release(const ir::Node& node) {
  for (const ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent || --reads_left_[static_cast<size_t>(input)] > 0) continue;
    std::optional<ByteFunction>& function = functions_[static_cast<size_t>(input)];
    if (!function) continue;
    function->values = Tensor();
    function->unrounded.reset();
  }
}

/// What `id` is; null where it is none of these. A byte that is no function of another is one of itself.
const ByteFunction* ByteChains::operand(ir::ValueId id) {
  std::optional<ByteFunction>& function = functions_[static_cast<size_t>(id)];
  if (function) return &*function;
  const std::optional<Tensor>& constant = graph_.value(id).constant;
  const DType dtype = graph_.value(id).type.dtype;
  if (constant) {
    function = constant_function(*constant);
  } else if (is_byte(dtype)) {
    Tensor all(dtype, {kBytes, 1});
    for (int64_t i = 0; i < kBytes; ++i) static_cast<uint8_t*>(all.data())[i] = static_cast<uint8_t>(i);
    function = ByteFunction{.root = id, .values = std::move(all)};
  }
  return function ? &*function : nullptr;
}

std::optional<ByteFunction> ByteChains::constant_function(const Tensor& constant) const {
  const int64_t count = constant.num_elements();
  if (count == 1) return ByteFunction{.values = constant.reshaped({})};
  if (count == 0 || count > most_channels_) return std::nullopt;
  const Shape& shape = constant.shape();
  size_t axis = 0;
  while (shape[shape.size() - 1 - axis] == 1) ++axis;
  if (shape[shape.size() - 1 - axis] != count) return std::nullopt;
  return ByteFunction{.channels = count, .axis = axis, .values = constant.reshaped({1, count})};
}

std::optional<ByteFunction> ByteChains::function_of(const ir::Node& node) {
  const ir::OpDef* def = graph_.ops().find(node.op);
  if (def == nullptr || def->pattern != ir::Pattern::kElementwise || node.outputs.size() != 1 ||
      !node.attrs.is_constant())
    return std::nullopt;
  ByteFunction made;
  std::vector<const Tensor*> inputs;
  for (const ir::ValueId input : node.inputs) {
    const ByteFunction* given = input == ir::kAbsent ? nullptr : operand(input);
    inputs.push_back(given == nullptr ? nullptr : &given->values);
    if (input == ir::kAbsent) continue;
    if (given == nullptr || !join(*given, made)) return std::nullopt;
  }
  ++made.steps;
  const bool is_constant = made.root == ir::kAbsent;
  if (!is_constant && !lies_along(made, node.outputs[0])) return std::nullopt;
  elements_left_ -= kBytes * made.channels;
  if (elements_left_ < 0) return std::nullopt;
  std::optional<Tensor> values = evaluate(*def, node.attrs, inputs);
  if (!values || values->shape() != shape_of(made)) return std::nullopt;
  if (node.op == "round" && !is_constant) made.unrounded = *inputs[0];
  made.values = *std::move(values);
  return made;
}

/// Whether the output has the byte's extents, of which the one along the axis is the number of channels. What
/// repeats the byte has more elements than there are to look at.
bool ByteChains::lies_along(const ByteFunction& function, ir::ValueId output) const {
  const ir::SymShape& root = graph_.value(function.root).type.shape;
  if (!are_equal(graph_.value(output).type.shape, root)) return false;
  if (function.channels == 1) return true;
  if (function.axis >= root.size()) return false;
  const ir::SymInt& extent = root[root.size() - 1 - function.axis];
  return extent.is_constant() && extent.hint() == function.channels;
}

std::set<ir::NodeId> ByteChains::nodes_between(ir::ValueId value, ir::ValueId root) const {
  std::set<ir::NodeId> found;
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::NodeId producer = graph_.value(open.back()).producer;
    open.pop_back();
    if (!found.insert(producer).second) continue;
    for (const ir::ValueId input : graph_.node(producer).inputs) {
      if (input == ir::kAbsent || input == root) continue;
      const std::optional<ByteFunction>& between = functions_[static_cast<size_t>(input)];
      if (between && between->root == root) open.push_back(input);
    }
  }
  return found;
}

std::vector<std::string> ByteChains::origins_of(const std::set<ir::NodeId>& nodes) const {
  std::vector<std::string> origins;
  for (const ir::NodeId id : nodes) ir::add_origins(graph_.node(id).origins, origins);
  return origins;
}

}  // namespace tensormill::passes
