#include "compiler/frontend/onnx/graph/builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "compiler/frontend/onnx/model/check_model.h"
#include "compiler/frontend/onnx/model/functions.h"
#include "compiler/frontend/onnx/model/tensor_data.h"
#include "compiler/frontend/onnx/operators/forms.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

/// Functions may call functions: what a few bytes of them can grow to is bounded.
constexpr size_t kMaxCalls = size_t{1} << 15;
constexpr size_t kMaxCallDepth = 32;

}  // namespace

const Binding* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->own_.find(name);
    if (found != scope->own_.end()) return &found->second;
  }
  return nullptr;
}

std::string GraphBuilder::fresh_name(const std::string& base) {
  while (true) {
    std::string name = base + "@" + std::to_string(next_name_++);
    if (reserved_.count(name) == 0 && !graph_.find_value(name)) return name;
  }
}

Binding GraphBuilder::constant(Tensor tensor) {
  return {Binding::Kind::kTensor, graph_.add_constant(fresh_name("constant"), std::move(tensor)), {}};
}

bool GraphBuilder::convert_parts(const NodeProto& node, NodeContext& context, Scope& scope,
                                 std::vector<Binding> inputs, std::vector<Binding>& outputs) {
  const bool only_tensors = std::all_of(inputs.begin(), inputs.end(), [](const Binding& input) {
    return input.kind == Binding::Kind::kTensor;
  });
  const StructureConverter structure = find_structure_op(node.domain, node.op_type, opset_);
  if (const FunctionProto* function = find_function(model_.functions, node)) {
    std::optional<std::vector<Binding>> results = call(*function, node, context, inputs);
    if (!results) return false;
    outputs = std::move(*results);
  } else if (structure != nullptr) {
    StructureContext parts{*this, context, scope, inputs};
    std::optional<std::vector<Binding>> results = structure(parts);
    if (!results) return false;
    outputs = std::move(*results);
  } else if (!only_tensors && node.op_type == "Identity") {
    outputs = {inputs[0]};
  } else if (!only_tensors) {
    context.invalid("an operand is no tensor");
  } else {
    const OpRow* row = find_op(node.domain, node.op_type, opset_);
    if (row == nullptr) context.unsupported("opset", "the operator is not implemented at this opset");
    const bool has_text = std::any_of(inputs.begin(), inputs.end(), [&](const Binding& input) {
      return input.tensor != ir::kAbsent && graph_.value(input.tensor).type.dtype == kString;
    });
    const Converter convert = has_text ? find_text_op(node.domain, node.op_type) : row->convert;
    if (convert == nullptr) context.unsupported("operand", "strings are not implemented");
    context.bind_list_lengths();
    context.bind_operands();
    convert(context);
    for (ir::ValueId output : context.outputs()) outputs.push_back({Binding::Kind::kTensor, output, {}});
    return true;
  }
  for (size_t i = 0; i < outputs.size() && i < context.num_outputs(); ++i) {
    if (outputs[i].kind != Binding::Kind::kTensor) continue;
    context.set_output(i, outputs[i].tensor);
    outputs[i].tensor = context.outputs()[i];
  }
  return true;
}

/// The builder inside a function, as long as it exists.
class GraphBuilder::Called {
public:
  Called(GraphBuilder& builder, int64_t opset)
      : builder_(builder), outer_opset_(std::exchange(builder.opset_, opset)) {
    ++builder_.call_depth_;
  }
  ~Called() {
    --builder_.call_depth_;
    builder_.opset_ = outer_opset_;
  }
  Called(const Called&) = delete;
  Called& operator=(const Called&) = delete;

private:
  GraphBuilder& builder_;
  int64_t outer_opset_;
};

std::optional<std::vector<Binding>> GraphBuilder::call(const FunctionProto& function, const NodeProto& node,
                                                       const NodeContext& context,
                                                       const std::vector<Binding>& inputs) {
  if (++calls_ > kMaxCalls || call_depth_ >= kMaxCallDepth)
    context.unsupported("function", "more than " + std::to_string(kMaxCalls) + " calls, or " +
                                        std::to_string(kMaxCallDepth) +
                                        " inside each other, are not implemented");
  const std::vector<ValueInfoProto>& names = function.body.inputs;
  if (inputs.size() > names.size())
    context.invalid("function " + function.name + " has " + std::to_string(names.size()) + " inputs, not " +
                    std::to_string(inputs.size()));
  if (node.outputs.size() > function.body.outputs.size())
    context.invalid("function " + function.name + " has " + std::to_string(function.body.outputs.size()) +
                    " outputs, not " + std::to_string(node.outputs.size()));
  Scope scope;
  for (size_t i = 0; i < names.size(); ++i)
    scope.bind(names[i].name, i < inputs.size() ? inputs[i] : Binding());
  const std::vector<NodeProto> nodes = function_nodes(function, node);
  {
    const Called called(*this, function_opset(function, opset_));
    for (size_t i = 0; i < nodes.size(); ++i) convert(nodes[i], i, scope, true);
  }
  std::vector<Binding> results;
  for (const ValueInfoProto& output : function.body.outputs) {
    const Binding* found = scope.find(output.name);
    if (found == nullptr) return std::nullopt;
    results.push_back(*found);
  }
  return results;
}

void GraphBuilder::convert(const NodeProto& node, size_t index, Scope& scope, bool renamed) {
  const std::string label = node_label(node, index);
  const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
  std::vector<Binding> inputs;
  std::vector<ir::ValueId> tensors;
  for (const std::string& input : node.inputs) {
    const Binding* found = input.empty() ? nullptr : scope.find(input);
    // Behind a node that could not be converted nothing can be said; the first ones are reported.
    if (found == nullptr && !input.empty()) return;
    inputs.push_back(found == nullptr ? Binding() : *found);
    tensors.push_back(inputs.back().tensor);
  }
  // Attributes of a function's nodes may be known only now.
  if (call_depth_ > 0) {
    const std::vector<UnsupportedForm> forms = unsupported_forms(node, opset_);
    for (const UnsupportedForm& form : forms)
      unsupported_.push_back({label, form_detail(node, opset_, form)});
    if (!forms.empty()) return;
  }
  NodeProto own = node;
  for (std::string& output : own.outputs) {
    if (renamed && !output.empty()) output = fresh_name(output);
  }
  NodeContext context(graph_, extents_, own, label, opset_, std::move(tensors), source_, reserved_, form_,
                      guard_);
  std::vector<Binding> outputs;
  try {
    const auto convert_it = [&] { return convert_parts(node, context, scope, std::move(inputs), outputs); };
    if (!ir::as_invalid_model(convert_it)) return;
  } catch (const ValueRequired& required) {
    for (const std::string& input : required.inputs)
      required_.emplace(input, required.what + " of node \"" + label + "\"");
    return;
  } catch (const UnsupportedForm& form) {
    unsupported_.push_back({label, form_detail(node, opset_, form)});
    return;
  } catch (Error& error) {
    // An operand at its largest may not fit where the one that numbers of a run choose does.
    std::vector<std::string> numbers;
    if (error.code() == ErrorCode::kInvalidModel) numbers = context.deciding_numbers();
    for (const std::string& input : numbers)
      required_.emplace(input, "extents of operands of node \"" + label + "\": " + error.message());
    if (!numbers.empty()) return;
    error.add_context("node \"" + label + "\" (" + node.op_type + ")");
    // Shapes that overflow come from the model's own numbers.
    if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
    throw;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const bool is_made =
        i < outputs.size() && (outputs[i].kind != Binding::Kind::kTensor || outputs[i].tensor != ir::kAbsent);
    if (!is_made) {
      unsupported_.push_back(
          {label, form_detail(node, opset_, {"output " + std::to_string(i), "is not implemented"})});
      return;
    }
    scope.bind(node.outputs[i], outputs[i]);
  }
}

std::optional<std::vector<Binding>> GraphBuilder::run_body(const GraphProto& body, const Scope& outer,
                                                           const std::vector<Binding>& arguments) {
  Scope scope(&outer);
  if (arguments.size() != body.inputs.size()) {
    throw Error(ErrorCode::kInvalidModel, "subgraph \"" + body.name + "\" has " +
                                              std::to_string(body.inputs.size()) + " inputs, expected " +
                                              std::to_string(arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) scope.bind(body.inputs[i].name, arguments[i]);
  for (const TensorProto& tensor : body.initializers)
    scope.bind(tensor.name, constant(read_tensor(tensor, source_)));
  for (size_t i = 0; i < body.nodes.size(); ++i) convert(body.nodes[i], i, scope, true);
  std::vector<Binding> results;
  for (const ValueInfoProto& output : body.outputs) {
    const Binding* found = scope.find(output.name);
    if (found == nullptr) return std::nullopt;
    results.push_back(*found);
  }
  return results;
}

std::optional<std::vector<Binding>> GraphBuilder::attempt(
    const std::function<std::optional<std::vector<Binding>>()>& convert) {
  const std::vector<ErrorDetail> unsupported = unsupported_;
  const std::map<std::string, std::string> required = required_;
  ir::SymbolTable* const symbols = graph_.symbols().get();
  const size_t guards = symbols == nullptr ? 0 : symbols->guards().size();
  std::optional<std::vector<Binding>> results;
  try {
    results = convert();
  } catch (const ValueRequired&) {
    results.reset();
  } catch (const UnsupportedForm&) {
    results.reset();
  }
  if (results && unsupported_.size() == unsupported.size() && required_.size() == required.size())
    return results;
  unsupported_ = unsupported;
  required_ = required;
  left_dead_nodes_ = true;
  if (symbols != nullptr) symbols->drop_guards_behind(guards);
  return std::nullopt;
}

const Binding& StructureContext::input(size_t index) const {
  if (!has_input(index)) node.invalid("operand " + std::to_string(index) + " is missing");
  return inputs[index];
}

bool StructureContext::has_input(size_t index) const {
  return index < inputs.size() &&
         (inputs[index].kind != Binding::Kind::kTensor || inputs[index].tensor != ir::kAbsent);
}

const std::vector<ir::ValueId>& StructureContext::sequence(size_t index) const {
  const Binding& binding = input(index);
  if (binding.kind != Binding::Kind::kSequence)
    node.invalid("operand " + std::to_string(index) + " is no sequence");
  return binding.elements;
}

const GraphProto& StructureContext::body(const char* attribute) const {
  const AttributeProto* found = node.node().find(attribute);
  if (found == nullptr || found->graphs.empty())
    node.invalid("attribute " + std::string(attribute) + " is no graph");
  return *found->graphs[0];
}

}  // namespace tensormill::frontend::onnx
