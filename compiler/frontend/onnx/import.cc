#include "compiler/frontend/onnx/import.h"

#include <algorithm>

#include "compiler/frontend/onnx/extents/data_extents.h"
#include "compiler/frontend/onnx/graph/builder.h"
#include "compiler/frontend/onnx/graph/converter.h"
#include "compiler/frontend/onnx/graph/model_step.h"
#include "compiler/frontend/onnx/graph/set_outputs.h"
#include "compiler/frontend/onnx/model/check_model.h"
#include "compiler/frontend/onnx/model/tensor_data.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

[[noreturn]] void throw_unsupported(std::vector<ErrorDetail> details, const ModelFacts& facts) {
  const bool operators = std::any_of(details.begin(), details.end(), [](const ErrorDetail& detail) {
    return detail.detail.find(", attribute ") == std::string::npos;
  });
  std::string message =
      std::to_string(details.size()) + (details.size() == 1 ? " node is" : " nodes are") + " not supported:";
  for (const ErrorDetail& detail : details) message += " \"" + detail.pointer + "\" (" + detail.detail + ");";
  message.pop_back();
  Error error(operators ? ErrorCode::kOperatorNotImplemented : ErrorCode::kOperatorAttributeNotImplemented,
              message, std::move(details));
  error.set_extra_json("{\"model\":" + facts_json(facts) + "}");
  throw error;
}

/// Binds the free dims of the model's inputs: names bind alike everywhere.
class ShapeBinder {
public:
  explicit ShapeBinder(const ImportOptions& options) : options_(options) {}

  /// First all given shapes, so that a name bound at one input serves the others.
  void learn(const ValueInfoProto& input) {
    const auto given = options_.input_shapes.find(input.name);
    if (given == options_.input_shapes.end()) return;
    if (input.has_shape && !has_width(input) && given->second.size() != input.shape.size()) {
      throw Error(ErrorCode::kInvalidArgument, "input_shapes give \"" + input.name + "\" the rank " +
                                                   std::to_string(given->second.size()) + ", the model has " +
                                                   std::to_string(input.shape.size()));
    }
    for (size_t i = 0; i < input.shape.size() && input.has_shape; ++i) {
      const int64_t* extent = std::get_if<int64_t>(&given->second[i]);
      if (extent == nullptr || *extent < 0) continue;
      if (const std::string* name = std::get_if<std::string>(&input.shape[i])) {
        bind(*name, *extent, input.name);
      } else if (std::get<int64_t>(input.shape[i]) != *extent) {
        throw Error(ErrorCode::kInvalidArgument, "input_shapes give \"" + input.name + "\" the extent " +
                                                     std::to_string(*extent) + " in dim " +
                                                     std::to_string(i) + ", the model has " +
                                                     std::to_string(std::get<int64_t>(input.shape[i])));
      }
    }
  }

  /// Bytes of an input's strings.
  int64_t text_width(const ValueInfoProto& input) const {
    if (!has_width(input)) return kTextWidth;
    const Dim& given = options_.input_shapes.at(input.name).back();
    const int64_t* width = std::get_if<int64_t>(&given);
    if (width == nullptr || *width < 1 || *width > kMaxTextWidth) {
      throw Error(ErrorCode::kInvalidArgument, "input_shapes give the strings of \"" + input.name +
                                                   "\" a width that is no number of 1 to " +
                                                   std::to_string(kMaxTextWidth));
    }
    return *width;
  }

  Shape shape_of(const ValueInfoProto& input) const {
    const auto given = options_.input_shapes.find(input.name);
    const DimShape& dims =
        input.has_shape || given == options_.input_shapes.end() ? input.shape : given->second;
    if (!input.has_shape && given == options_.input_shapes.end()) {
      throw Error(ErrorCode::kShapeRequired,
                  "input \"" + input.name + "\" has no shape; give one with input_shapes");
    }
    Shape shape;
    for (size_t i = 0; i < dims.size(); ++i) shape.push_back(extent_of(input.name, dims, given, i));
    return shape;
  }

private:
  static constexpr int64_t kMaxTextWidth = int64_t{1} << 20;
  using Given = std::map<std::string, DimShape>::const_iterator;

  /// Whether input_shapes give strings one extent more than the model: their width.
  bool has_width(const ValueInfoProto& input) const {
    const auto given = options_.input_shapes.find(input.name);
    return given != options_.input_shapes.end() && input.has_shape && dtype_of(input.elem_type) == kString &&
           given->second.size() == input.shape.size() + 1;
  }

  void bind(const std::string& name, int64_t extent, const std::string& input) {
    if (name.empty()) return;
    const auto [found, is_new] = bound_.emplace(name, extent);
    if (!is_new && found->second != extent) {
      throw Error(ErrorCode::kInvalidArgument, "input_shapes bind dim " + name + " to " +
                                                   std::to_string(found->second) + " and, at input \"" +
                                                   input + "\", to " + std::to_string(extent));
    }
  }

  int64_t extent_of(const std::string& input, const DimShape& dims, Given given, size_t i) const {
    if (const int64_t* extent = std::get_if<int64_t>(&dims[i]); extent != nullptr && *extent >= 0)
      return *extent;
    if (given != options_.input_shapes.end()) {
      if (const int64_t* extent = std::get_if<int64_t>(&given->second[i]); extent != nullptr && *extent >= 0)
        return *extent;
    }
    const std::string* name = std::get_if<std::string>(&dims[i]);
    if (name != nullptr) {
      if (const auto bound = bound_.find(*name); bound != bound_.end()) return bound->second;
    }
    throw Error(ErrorCode::kShapeRequired, "input \"" + input + "\" has shape " + to_string(dims) + ": dim " +
                                               std::to_string(i) + " is free; bind it with input_shapes");
  }

  const ImportOptions& options_;
  std::map<std::string, int64_t> bound_;
};

std::set<std::string> top_level_names(const GraphProto& graph) {
  std::set<std::string> names;
  for (const ValueInfoProto& input : graph.inputs) names.insert(input.name);
  for (const TensorProto& tensor : graph.initializers) names.insert(tensor.name);
  for (const NodeProto& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

class Importer {
public:
  Importer(const ModelSource& source, const ModelProto& model, const ImportOptions& options,
           const ir::OpRegistry& ops)
      : source_(source),
        options_(options),
        model_(model),
        graph_(ops),
        builder_(graph_, source, model_, standard_opset(model_), top_level_names(model_.graph),
                 options.form) {
    if (options.form.has_symbols) graph_.set_symbols(std::make_shared<ir::SymbolTable>());
  }

  ir::Graph run(ImportTally* tally) {
    begin();
    for (const TensorProto& tensor : model_.graph.initializers)
      bind(tensor.name, graph_.add_constant(tensor.name, read_tensor(tensor, source_)));
    for (size_t i = 0; i < model_.graph.nodes.size(); ++i)
      builder_.convert(model_.graph.nodes[i], i, scope_, false);
    if (!builder_.unsupported().empty()) throw_unsupported(builder_.unsupported(), collect_facts(model_));
    if (!builder_.required().empty()) throw_required();
    set_outputs({source_, model_, options_, builder_, scope_}, top_level_names(model_.graph));
    if (builder_.left_dead_nodes()) graph_ = ir::remove_dead(graph_);
    if (const std::optional<MixedExtent> mixed = trim_outputs(graph_)) throw_mixed(*mixed);
    if (tally != nullptr) tally->has_switches = builder_.has_switches();
    return std::move(graph_);
  }

  ir::Graph as_step(const std::string& reason) {
    begin();
    return with_model_step(std::move(graph_), model_.graph, options_.outputs, reason);
  }

private:
  void begin() {
    const std::vector<ErrorDetail> missing = find_unsupported(model_);
    if (!missing.empty()) throw_unsupported(missing, collect_facts(model_));
    graph_.set_name(model_.graph.name);
    add_inputs();
  }

  void bind(const std::string& name, ir::ValueId value) {
    scope_.bind(name, {Binding::Kind::kTensor, value, {}});
  }

  void add_inputs() {
    std::set<std::string> initializers;
    for (const TensorProto& tensor : model_.graph.initializers) initializers.insert(tensor.name);
    ShapeBinder binder(options_);
    const auto check_name = [&](const char* option, const std::string& name) {
      const bool known = std::any_of(
          model_.graph.inputs.begin(), model_.graph.inputs.end(), [&](const ValueInfoProto& input) {
            const bool is_part = !input.is_tensor && is_element_name(name, input.name + "/");
            return (input.name == name || is_part) && initializers.count(input.name) == 0;
          });
      if (!known) {
        throw Error(ErrorCode::kInvalidArgument,
                    std::string(option) + " name \"" + name + "\", which is no input of the model");
      }
    };
    for (const auto& [name, shape] : options_.input_shapes) check_name("input_shapes", name);
    for (const auto& [name, value] : options_.input_values) check_name("input_values", name);
    for (const auto& [name, elements] : options_.input_elements) check_name("input_elements", name);
    for (const ValueInfoProto& input : model_.graph.inputs) binder.learn(input);
    for (const ValueInfoProto& input : model_.graph.inputs) {
      // An initializer that is listed as an input is a default that nothing overrides here.
      if (initializers.count(input.name) != 0) continue;
      if (input.is_tensor) {
        ir::ValueType type{*dtype_of(input.elem_type), with_symbols(input.name, binder.shape_of(input))};
        if (type.dtype == kString) type.shape.push_back(binder.text_width(input));
        bind(input.name, add_input(input.name, type));
      } else {
        add_structured_input(input);
      }
    }
  }

  /// The shape with the symbols of `options.symbols` in place of the extents that are their hints.
  ir::SymShape with_symbols(const std::string& input, const Shape& shape) {
    ir::SymShape result = shape;
    const auto found = options_.symbols.find(input);
    if (found == options_.symbols.end()) return result;
    if (graph_.symbols() == nullptr) graph_.set_symbols(std::make_shared<ir::SymbolTable>());
    for (const auto& [axis, name] : found->second) {
      const auto known = symbols_.find(name);
      if (known == symbols_.end()) {
        symbols_.emplace(name, graph_.symbols()->add(name, shape[axis]));
      } else if (known->second.hint() != shape[axis]) {
        throw Error(ErrorCode::kInvalidArgument, "dim " + name + " is " + ir::to_string(known->second) +
                                                     " and " + std::to_string(shape[axis]));
      }
      result[axis] = symbols_.at(name);
    }
    return result;
  }

  ir::ValueId add_input(const std::string& name, const ir::ValueType& type) {
    num_bytes(type.shape.hints(), type.dtype);
    if (const auto known = options_.run_values.find(name); known != options_.run_values.end()) {
      graph_.add_input(name, type);
      return add_bound(graph_.unique_name(name), type, known->second);
    }
    const auto bound = options_.input_values.find(name);
    return bound == options_.input_values.end() ? graph_.add_input(name, type)
                                                : add_bound(name, type, bound->second);
  }

  /// The type of an element of an input that is no tensor, as input_shapes say it.
  ir::ValueType element_type(const ValueInfoProto& input, const std::string& name,
                             const DimShape& dims) const {
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kInvalidArgument, "input_shapes give \"" + name + "\" " + to_string(dims) + why);
    };
    ir::ValueType type{*dtype_of(input.elem_type), {}};
    for (const Dim& dim : dims) {
      const int64_t* extent = std::get_if<int64_t>(&dim);
      if (extent == nullptr || *extent < 0) refuse(": the extents of an element are numbers");
      type.shape.push_back(*extent);
    }
    const bool has_width = type.dtype == kString && input.has_shape && dims.size() == input.shape.size() + 1;
    if (type.dtype == kString && !has_width) type.shape.push_back(kTextWidth);
    if (!input.has_shape) return type;
    if (!has_width && dims.size() != input.shape.size())
      refuse(", the elements of the model have shape " + to_string(input.shape));
    for (size_t i = 0; i < input.shape.size(); ++i) {
      const int64_t* extent = std::get_if<int64_t>(&input.shape[i]);
      if (extent != nullptr && *extent >= 0 && *extent != type.shape[i])
        refuse(", the elements of the model have shape " + to_string(input.shape));
    }
    return type;
  }

  /// Whether a name is that of an element, a number behind the prefix, and no other input's.
  bool is_element_name(const std::string& name, const std::string& prefix) const {
    const bool is_number = name.size() > prefix.size() && name.rfind(prefix, 0) == 0 &&
                           name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    return is_number && std::none_of(model_.graph.inputs.begin(), model_.graph.inputs.end(),
                                     [&](const ValueInfoProto& other) { return other.name == name; });
  }

  /// The elements of an input that is no tensor.
  std::optional<std::vector<ir::ValueType>> elements_of(const ValueInfoProto& input) const {
    const auto given = options_.input_elements.find(input.name);
    if (given != options_.input_elements.end()) return given->second;
    std::vector<ir::ValueType> types;
    const auto next = [&] { return input.name + "/" + std::to_string(types.size()); };
    for (auto found = options_.input_shapes.find(next()); found != options_.input_shapes.end();
         found = options_.input_shapes.find(next()))
      types.push_back(element_type(input, found->first, found->second));
    std::set<std::string> names;
    for (size_t i = 0; i < types.size(); ++i) names.insert(input.name + "/" + std::to_string(i));
    const auto is_other = [&](const auto& shape) {
      return is_element_name(shape.first, input.name + "/") && names.count(shape.first) == 0;
    };
    const auto other = std::find_if(options_.input_shapes.begin(), options_.input_shapes.end(), is_other);
    if (other != options_.input_shapes.end())
      throw Error(ErrorCode::kInvalidArgument,
                  "input_shapes name \"" + other->first + "\", and not \"" + next() + "\" before it");
    if (types.empty()) {
      const std::string first = "\"" + input.name + "/0\"";
      const std::string how = input.kind == ValueKind::kOptional
                                  ? "the shape of " + first + ", what it holds,"
                                  : "the shapes of " + first + ", \"" + input.name + "/1\" ...";
      const bool may_be_none = input.kind != ValueKind::kSequence;
      throw Error(ErrorCode::kShapeRequired,
                  "input \"" + input.name + "\" is no tensor, and its elements are not given; give " + how +
                      " with input_shapes" + (may_be_none ? ", or null with input_values for none" : ""),
                  {{input.name, "elements"}});
    }
    return types;
  }

  /// A sequence becomes one input an element; an optional value is what it holds, or nothing.
  void add_structured_input(const ValueInfoProto& input) {
    const std::optional<std::vector<ir::ValueType>> given = elements_of(input);
    const bool is_optional = input.kind == ValueKind::kOptional || input.kind == ValueKind::kOptionalSequence;
    if (!given && !is_optional)
      throw Error(ErrorCode::kInvalidArgument, "input \"" + input.name + "\" is not optional");
    Binding binding;
    binding.kind = given ? Binding::Kind::kSequence : Binding::Kind::kNone;
    if (given) {
      for (const ir::ValueType& type : *given)
        binding.elements.push_back(
            add_input(input.name + "/" + std::to_string(binding.elements.size()), type));
    }
    if (given && input.kind == ValueKind::kOptional) {
      if (binding.elements.size() != 1)
        throw Error(ErrorCode::kInvalidArgument, "input \"" + input.name + "\" holds one tensor");
      binding = {Binding::Kind::kTensor, binding.elements[0], {}};
    }
    scope_.bind(input.name, std::move(binding));
  }

  ir::ValueId add_bound(const std::string& name, const ir::ValueType& type, const Tensor& value) {
    const bool is_text = type.dtype == kString && value.dtype() == kString;
    const Shape shape = is_text ? shown_shape(kString, type.shape) : type.shape;
    if (value.dtype() != type.dtype || shown_shape(value.dtype(), value.shape()) != shape) {
      throw Error(ErrorCode::kInvalidArgument,
                  "input_values give \"" + name + "\" " +
                      ir::to_string(ir::ValueType{value.dtype(), value.shape()}) + ", the model has " +
                      ir::to_string(type));
    }
    return graph_.add_constant(name, value);
  }

  [[noreturn]] void throw_required() const {
    std::string message = "values that must be known while the model is imported depend on inputs:";
    std::vector<ErrorDetail> details;
    const auto is_input = [&](const std::string& name) {
      const std::vector<ir::ValueId>& inputs = graph_.inputs();
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](ir::ValueId id) { return graph_.value(id).name == name; });
    };
    // Loops stand for what they hand on; they are listed where no input is.
    const bool lists_inputs = std::any_of(builder_.required().begin(), builder_.required().end(),
                                          [&](const auto& each) { return is_input(each.first); });
    for (const auto& [name, what] : builder_.required()) {
      if (lists_inputs && !is_input(name)) continue;
      message += " \"" + name + "\" (" + what + ");";
      details.push_back({name, what});
    }
    message.pop_back();
    throw Error(ErrorCode::kShapeRequired, message, std::move(details));
  }

  [[noreturn]] static void throw_mixed(const MixedExtent& mixed) {
    const std::string what = "an operand of node \"" + mixed.node +
                             "\", whose extent depends on data and which is not computed element by element";
    std::string message = "values that must be known while the model is imported depend on inputs:";
    std::vector<ErrorDetail> details;
    for (const std::string& input : mixed.inputs) {
      message += " \"" + input + "\" (" + what + ");";
      details.push_back({input, what});
    }
    message.pop_back();
    throw Error(ErrorCode::kShapeRequired, message, std::move(details));
  }

  const ModelSource& source_;
  const ImportOptions& options_;
  const ModelProto& model_;
  ir::Graph graph_;
  std::map<std::string, ir::SymInt> symbols_;
  GraphBuilder builder_;
  Scope scope_;
};

}  // namespace

ModelFacts read_facts(const ModelSource& source) { return collect_facts(checked_model(source)); }

std::vector<ErrorDetail> unsupported_nodes(const ModelSource& source) {
  return find_unsupported(checked_model(source));
}

ir::Graph import_model(const ModelSource& source, const ImportOptions& options, const ir::OpRegistry& ops) {
  return CheckedModel(source).import(options, ops);
}

CheckedModel::CheckedModel(const ModelSource& source)
    : source_(source), model_(std::make_shared<const ModelProto>(checked_model(source))) {}

ir::Graph CheckedModel::import(const ImportOptions& options, const ir::OpRegistry& ops,
                               ImportTally* tally) const {
  ++imports_;
  return ir::as_invalid_model([&] { return Importer(source_, *model_, options, ops).run(tally); });
}

ir::Graph import_as_step(const ModelSource& source, const ImportOptions& options, const ir::OpRegistry& ops,
                         const std::string& reason) {
  const ModelProto model = checked_model(source);
  return Importer(source, model, options, ops).as_step(reason);
}

}  // namespace tensormill::frontend::onnx
