#include "compiler/frontend/onnx/model/check_model.h"

#include <algorithm>
#include <set>

#include "compiler/frontend/onnx/graph/builder.h"
#include "compiler/frontend/onnx/graph/maps.h"
#include "compiler/frontend/onnx/model/functions.h"
#include "compiler/frontend/onnx/model/sort_nodes.h"
#include "compiler/frontend/onnx/model/tensor_data.h"
#include "compiler/frontend/onnx/operators/forms.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr int64_t kOldestIrVersion = 3;
constexpr int64_t kNewestIrVersion = 13;
constexpr size_t kMaxRank = 32;
/// Of functions that call one another: the stack is finite.
constexpr size_t kMaxFunctionDepth = 256;

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

void check_value_info(const ValueInfoProto& value, const char* kind) {
  const std::string label = std::string(kind) + " \"" + value.name + "\"";
  if (value.name.empty()) invalid(std::string(kind) + " without a name");
  if (value.shape.size() > kMaxRank) invalid(label + " has rank " + std::to_string(value.shape.size()));
  if (value.is_tensor && data_type_name(value.elem_type).find("type ") == 0) {
    invalid(label + " has element " + data_type_name(value.elem_type) + ", which does not exist");
  }
  Shape fixed;
  for (const Dim& dim : value.shape) {
    if (const int64_t* extent = std::get_if<int64_t>(&dim)) fixed.push_back(*extent);
  }
  try {
    num_bytes(fixed, DType::kUInt8);
  } catch (const Error& error) {
    invalid(label + ": " + error.message());
  }
}

/// Values that exist before a node runs; subgraphs see the outer ones.
class ScopeChecker {
public:
  /// `is_sorted`: a value that is made later is an error; else it is noted alone.
  ScopeChecker(const ModelSource& source, bool is_sorted) : source_(source), is_sorted_(is_sorted) {}

  /// Whether a node read what a later one makes.
  bool found_later() const { return found_later_; }

  void check(const GraphProto& graph) { check(graph, {}, {}); }

private:
  /// `outer`: the values of the graphs around it that are there before it; `later`: all that these make.
  void check(const GraphProto& graph, const std::set<std::string>& outer,
             const std::set<std::string>& later) {
    std::set<std::string> defined = outer;
    std::set<std::string> own;
    for (const ValueInfoProto& input : graph.inputs) {
      check_value_info(input, "input");
      if (!own.insert(input.name).second) invalid("input \"" + input.name + "\" stands twice");
      defined.insert(input.name);
    }
    std::set<std::string> initializers;
    for (const TensorProto& tensor : graph.initializers) {
      if (tensor.name.empty()) invalid("an initializer has no name");
      if (!initializers.insert(tensor.name).second)
        invalid("initializer \"" + tensor.name + "\" stands twice");
      if (dtype_of(tensor.data_type) || data_type_name(tensor.data_type).find("type ") == 0)
        check_tensor(tensor, source_);
      own.insert(tensor.name);
      defined.insert(tensor.name);
    }
    std::set<std::string> produced = all_outputs(graph, own);
    produced.insert(later.begin(), later.end());
    for (size_t i = 0; i < graph.nodes.size(); ++i) check_node(graph.nodes[i], i, defined, produced);
    for (const ValueInfoProto& output : graph.outputs) {
      check_value_info(output, "output");
      if (defined.count(output.name) != 0) continue;
      if (is_sorted_ || produced.count(output.name) == 0)
        invalid("output \"" + output.name + "\" is made by no node");
      found_later_ = true;
    }
  }

  static std::set<std::string> all_outputs(const GraphProto& graph, const std::set<std::string>& own) {
    std::set<std::string> produced;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& output : graph.nodes[i].outputs) {
        if (output.empty()) continue;
        if (own.count(output) != 0 || !produced.insert(output).second) {
          invalid("node \"" + node_label(graph.nodes[i], i) + "\": value \"" + output + "\" is made twice");
        }
      }
    }
    return produced;
  }

  void check_node(const NodeProto& node, size_t index, std::set<std::string>& defined,
                  const std::set<std::string>& produced) {
    const std::string label = "node \"" + node_label(node, index) + "\"";
    if (node.op_type.empty()) invalid(label + " has no operator");
    if (node.outputs.empty()) invalid(label + " has no outputs");
    for (const std::string& input : node.inputs) {
      if (input.empty() || defined.count(input) != 0) continue;
      const bool is_later = produced.count(input) != 0;
      if (!is_later || is_sorted_)
        invalid(label + " reads \"" + input + "\", which " +
                (is_later ? "is made later: the graph has a cycle" : "nothing makes"));
      found_later_ = true;
    }
    std::set<std::string> names;
    for (const AttributeProto& attribute : node.attributes) {
      if (!names.insert(attribute.name).second)
        invalid(label + " has attribute " + attribute.name + " twice");
      for (const auto& graph : attribute.graphs) check(*graph, defined, produced);
    }
    for (const std::string& output : node.outputs) {
      if (!output.empty()) defined.insert(output);
    }
  }

  const ModelSource& source_;
  bool is_sorted_;
  bool found_later_ = false;
};

/// Checks the graph; one that is not in order, nor one of its subgraphs, is put in order first.
void check_scopes(GraphProto& graph, const ModelSource& source) {
  ScopeChecker checker(source, /*is_sorted=*/false);
  checker.check(graph);
  if (!checker.found_later()) return;
  sort_nodes(graph);
  ScopeChecker(source, /*is_sorted=*/true).check(graph);
}

void count_ops(const GraphProto& graph, ModelFacts& facts) {
  for (const NodeProto& node : graph.nodes) {
    ++facts.ops[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
    for (const AttributeProto& attribute : node.attributes) {
      for (const auto& inner : attribute.graphs) count_ops(*inner, facts);
    }
  }
}

/// Why the operator is not implemented, whatever its attributes are.
std::optional<std::string> unsupported_reason(const NodeProto& node, int64_t opset) {
  const bool is_structure = find_structure_op(node.domain, node.op_type, opset) != nullptr;
  if (!is_structure && !is_known_domain(node.domain)) return "domain " + node.domain + " is not implemented";
  if (opset < kMinOpset || opset > kMaxOpset) {
    return "opset " + std::to_string(opset) + " is outside of " + std::to_string(kMinOpset) + " to " +
           std::to_string(kMaxOpset);
  }
  if (is_structure || find_op(node.domain, node.op_type, opset) != nullptr) return std::nullopt;
  return is_known_op(node.domain, node.op_type) ? "not implemented at this opset" : "not implemented";
}

/// Collects what is not implemented of the graph, of its subgraphs and of the functions that it calls: of a
/// function once for each set of attributes that it is called with, up to a number of calls.
class UnsupportedNodes {
public:
  explicit UnsupportedNodes(const ModelProto& model) : model_(model) {}

  /// `path`: functions, nodes and their attributes around the graph, each with a slash behind it.
  void add(const GraphProto& graph, int64_t opset, const std::string& path) {
    for (const TensorProto& tensor : graph.initializers) {
      if (!dtype_of(tensor.data_type))
        add(path + tensor.name,
            "initializer, element type " + data_type_name(tensor.data_type) + " is not implemented");
    }
    add(graph.nodes, opset, path);
  }
  const std::vector<ErrorDetail>& details() const { return details_; }

private:
  static constexpr int kMostCalls = 1000;

  void add(const std::vector<NodeProto>& nodes, int64_t opset, const std::string& path) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (const FunctionProto* function = find_function(model_.functions, nodes[i])) {
        add_function(*function, nodes[i], opset);
      } else {
        add_node(nodes[i], opset, path + node_label(nodes[i], i));
      }
    }
  }

  void add_node(const NodeProto& node, int64_t opset, const std::string& label) {
    if (const std::optional<std::string> reason = unsupported_reason(node, opset))
      return add(label, operator_label(node, opset) + ": " + *reason);
    for (const UnsupportedForm& form : unsupported_forms(node, opset))
      add(label, form_detail(node, opset, form));
    for (const AttributeProto& each : node.attributes) {
      for (const auto& inner : each.graphs) add(*inner, opset, label + "/" + each.name + "/");
    }
  }

  void add_function(const FunctionProto& function, const NodeProto& call, int64_t opset) {
    const bool is_first = seen_.insert(&function).second;
    const bool takes_attributes = !function.attributes.empty() || !function.defaults.empty();
    if (!is_first && (!takes_attributes || ++calls_ > kMostCalls)) return;
    add(function_nodes(function, call), function_opset(function, opset), function.name + "/");
  }

  void add(const std::string& pointer, const std::string& detail) {
    if (known_.insert(pointer + "\n" + detail).second) details_.push_back({pointer, detail});
  }

  const ModelProto& model_;
  std::set<const FunctionProto*> seen_;
  int calls_ = 0;
  std::set<std::string> known_;
  std::vector<ErrorDetail> details_;
};

/// Refuses functions that call themselves, over others too: no call of them has an end.
class RecursionChecker {
public:
  explicit RecursionChecker(const ModelProto& model) : model_(model) {}

  void check(const FunctionProto& function) {
    if (done_.count(&function) != 0) return;
    if (!open_.insert(&function).second) invalid("function \"" + function.name + "\" calls itself");
    if (open_.size() > kMaxFunctionDepth)
      invalid("function \"" + function.name + "\" is inside more than " + std::to_string(kMaxFunctionDepth) +
              " others");
    check(function.body);
    open_.erase(&function);
    done_.insert(&function);
  }

private:
  void check(const GraphProto& graph) {
    for (const NodeProto& node : graph.nodes) {
      if (const FunctionProto* called = find_function(model_.functions, node)) check(*called);
      for (const AttributeProto& attribute : node.attributes) {
        for (const auto& inner : attribute.graphs) check(*inner);
      }
    }
  }

  const ModelProto& model_;
  std::set<const FunctionProto*> open_, done_;
};

std::vector<SignatureValue> signature(const std::vector<ValueInfoProto>& values,
                                      const std::set<std::string>& without) {
  std::vector<SignatureValue> result;
  for (const ValueInfoProto& value : values) {
    if (without.count(value.name) != 0) continue;
    result.push_back(
        {value.name, dtype_of(value.elem_type).value_or(DType::kFloat32), value.shape, value.kind});
  }
  return result;
}

Json signature_json(const std::vector<SignatureValue>& values) {
  Json list = Json::array();
  for (const SignatureValue& value : values) {
    Json shape = Json::array();
    for (const Dim& dim : value.shape) {
      if (const int64_t* extent = std::get_if<int64_t>(&dim)) {
        shape.push_back(*extent);
      } else if (std::get<std::string>(dim).empty()) {
        shape.push_back(-1);
      } else {
        shape.push_back(std::get<std::string>(dim));
      }
    }
    list.push_back({{"name", value.name}, {"dtype", dtype_long_name(value.dtype)}, {"shape", shape}});
  }
  return list;
}

}  // namespace

std::string node_label(const NodeProto& node, size_t index) {
  return node.name.empty() ? node.op_type + "_" + std::to_string(index) : node.name;
}

int64_t standard_opset(const ModelProto& model) {
  const auto found = model.opsets.find("");
  if (found != model.opsets.end()) return found->second;
  const auto uses = [](const auto& self, const GraphProto& graph) -> bool {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const NodeProto& node) {
      const auto& all = node.attributes;
      return node.domain.empty() || std::any_of(all.begin(), all.end(), [&](const AttributeProto& each) {
               return std::any_of(each.graphs.begin(), each.graphs.end(),
                                  [&](const auto& inner) { return self(self, *inner); });
             });
    });
  };
  if (uses(uses, model.graph)) invalid("the model imports no version of the standard operators");
  return kMaxOpset;
}

ModelProto checked_model(const ModelSource& source) {
  ModelProto model = parse_model(source.model->text());
  if (model.ir_version < kOldestIrVersion || model.ir_version > kNewestIrVersion) {
    invalid("IR version " + std::to_string(model.ir_version) + " is outside of " +
            std::to_string(kOldestIrVersion) + " to " + std::to_string(kNewestIrVersion));
  }
  standard_opset(model);
  if (model.graph.outputs.empty()) invalid("the graph has no outputs");
  check_scopes(model.graph, source);
  RecursionChecker recursion(model);
  for (FunctionProto& function : model.functions) {
    check_scopes(function.body, source);
    recursion.check(function);
  }
  split_maps(model.graph);
  return model;
}

std::vector<ErrorDetail> find_unsupported(const ModelProto& model) {
  const int64_t opset = standard_opset(model);
  std::vector<ErrorDetail> details;
  const auto check_values = [&](const std::vector<ValueInfoProto>& values, const char* kind) {
    for (const ValueInfoProto& value : values) {
      const bool is_value = value.kind != ValueKind::kOther && value.kind != ValueKind::kMap;
      if (!is_value || !dtype_of(value.elem_type))
        details.push_back({value.name, std::string(kind) +
                                           (is_value ? ", element type " + data_type_name(value.elem_type)
                                                     : ", a map, sparse tensor or nested sequence, which") +
                                           " is not implemented"});
    }
  };
  check_values(model.graph.inputs, "input");
  UnsupportedNodes nodes(model);
  nodes.add(model.graph, opset, "");
  details.insert(details.end(), nodes.details().begin(), nodes.details().end());
  return details;
}

ModelFacts collect_facts(const ModelProto& model) {
  ModelFacts facts;
  facts.producer = model.producer;
  facts.ir_version = model.ir_version;
  facts.opsets = model.opsets;
  std::set<std::string> initializers;
  for (const TensorProto& tensor : model.graph.initializers) {
    initializers.insert(tensor.name);
    facts.parameters += num_elements(tensor.dims);
    if (const std::optional<DType> dtype = dtype_of(tensor.data_type))
      facts.weight_bytes += num_bytes(tensor.dims, *dtype);
  }
  facts.inputs = signature(model.graph.inputs, initializers);
  facts.outputs = signature(model.graph.outputs, {});
  count_ops(model.graph, facts);
  return facts;
}

std::string facts_json(const ModelFacts& facts) {
  return canonical_json({{"inputs", signature_json(facts.inputs)},
                         {"outputs", signature_json(facts.outputs)},
                         {"operators", facts.ops},
                         {"opsets", facts.opsets},
                         {"parameters", facts.parameters}});
}

}  // namespace tensormill::frontend::onnx
