#include "tests/ops/cases/random_graph.h"

#include <algorithm>
#include <random>

#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::ops_cases {
namespace {

using Random = std::mt19937_64;
using Ints = std::vector<int64_t>;

/// Small differences of the operands stay small differences of the result.
bool is_smooth(const Instance& instance) {
  static const std::set<std::string> rough = {
      "floor",     "ceil", "round",      "sign",    "is_nan",        "is_inf",  "mod",
      "equal",     "less", "less_equal", "greater", "greater_equal", "arg_max", "arg_min",
      "arg_top_k", "div",  "reciprocal", "one_hot", "instance_norm"};
  const DType from = instance.inputs[0]->dtype;
  if (instance.source->op == "bit_cast") return false;
  // Infinities and NaN become something else where a window sees padding alone.
  const bool fills = instance.source->op == "fill_behind" && is_float(from);
  if (fills && instance.source->variant != "zero" && instance.source->variant != "one") return false;
  if (instance.source->op == "cast") {
    const DType to = instance.outputs[0].dtype;
    return !is_narrow(to) && (!is_float(from) || is_float(to));
  }
  return !is_float(from) || rough.count(instance.source->op) == 0;
}

bool has_narrow(const Instance& instance) {
  return is_narrow(instance.dtype) || is_narrow(instance.outputs[0].dtype);
}

/// Quantized data, whose operators make few graphs with the others.
bool has_bytes(const Instance& instance) {
  const std::string& op = instance.source->op;
  const bool blocked = op == "to_blocked" || op == "from_blocked" || op == "gather_channels";
  return op == "conv_integer" || op == "bytes_to_words" || op == "lookup" ||
         instance.source->attrs.has("words") || (blocked && !is_float(instance.dtype));
}

std::vector<Instance> listed(const RandomGraphOptions& options) {
  std::vector<Instance> list;
  for (Instance& instance : all_instances()) {
    // What reads nothing grows no graph.
    if (instance.inputs.empty()) continue;
    if (options.smooth && !is_smooth(instance)) continue;
    if (!options.dtypes.empty() && options.dtypes.count(instance.dtype) == 0) continue;
    list.push_back(std::move(instance));
  }
  // What only moves or converts narrow types comes last: it says little of the other operators.
  const auto narrow = std::stable_partition(
      list.begin(), list.end(), [](const Instance& each) { return !has_narrow(each) && !has_bytes(each); });
  Random random(options.seed);
  for (size_t i = static_cast<size_t>(narrow - list.begin()); i > 1; --i)
    std::swap(list[i - 1], list[random() % i]);
  return list;
}

class Builder {
public:
  Builder(uint64_t seed) : random_(seed), graph_(ops::standard_ops()) {}

  void add(const Instance& instance) {
    std::vector<ir::ValueId> operands;
    for (size_t i = 0; i < instance.inputs.size(); ++i) {
      const auto& type = instance.inputs[i];
      operands.push_back(type ? operand(*type, instance.source->operands[i]) : ir::kAbsent);
      // A tap that lies outside of a map is no product with zero: what NaN is there is not told.
      if (type && is_float(type->dtype) && !is_narrow(type->dtype) && instance.source->attrs.has("pads"))
        operands.back() = without_nans(operands.back());
    }
    node(instance.source->op, std::move(operands), instance.source->attrs);
  }

  RandomGraph finish() {
    const auto uses = graph_.uses();
    std::vector<ir::ValueId> outputs;
    for (size_t i = 0; i < uses.size(); ++i) {
      if (uses[i].empty() && graph_.values()[i].producer != ir::kAbsent)
        outputs.push_back(static_cast<ir::ValueId>(i));
    }
    graph_.set_outputs(outputs);
    return {std::move(graph_), std::move(inputs_)};
  }

private:
  ir::ValueId node(const std::string& op, std::vector<ir::ValueId> operands, ir::Attrs attrs) {
    const auto outputs = graph_.add_node(op, std::move(operands), std::move(attrs),
                                         {op + "_" + std::to_string(graph_.nodes().size())});
    pool_.insert(pool_.end(), outputs.begin(), outputs.end());
    return outputs[0];
  }

  /// A new graph input, or now and then a constant.
  ir::ValueId fresh(const ir::ValueType& type, const Operand& operand) {
    Tensor tensor = make_tensor(operand, type.dtype, random_());
    if (random_() % 4 == 0) return graph_.add_constant(graph_.unique_name("c"), std::move(tensor));
    const ir::ValueId id = graph_.add_input(graph_.unique_name("x"), type);
    inputs_.push_back(std::move(tensor));
    pool_.push_back(id);
    return id;
  }

  /// A value of `type` in the range that `wanted` asks for.
  ir::ValueId operand(const ir::ValueType& type, const Operand& wanted) {
    const bool ranged = wanted.fill == Fill::kIndex || wanted.fill == Fill::kCount;
    const bool positive_int = wanted.fill == Fill::kPositive && !is_float(type.dtype);
    if (ranged || positive_int || random_() % 4 == 0) return fresh(type, wanted);
    std::vector<ir::ValueId> fitting;
    for (const ir::ValueId id : pool_) {
      const ir::ValueType& have = graph_.value(id).type;
      if (have.dtype == type.dtype && (num_elements(have.shape) > 0 || num_elements(type.shape) == 0)) {
        fitting.push_back(id);
      }
    }
    if (fitting.empty()) return fresh(type, wanted);
    const ir::ValueId chosen = fitting[random_() % fitting.size()];
    return limited(shaped(chosen, type.shape), wanted.fill, is_float(type.dtype) && !is_narrow(type.dtype));
  }

  ir::ValueId shaped(ir::ValueId value, const Shape& shape) {
    if (graph_.value(value).type.shape == shape) return value;
    const int64_t have = num_elements(graph_.value(value).type.shape), need = num_elements(shape);
    ir::ValueId flat = node("reshape", {value}, {{"shape", Ints{have}}});
    if (need > have) flat = node("tile", {flat}, {{"repeats", Ints{(need + have - 1) / have}}});
    if (num_elements(graph_.value(flat).type.shape) != need) {
      flat = node("slice", {flat}, {{"starts", Ints{0}}, {"extents", Ints{need}}});
    }
    return node("reshape", {flat}, {{"shape", shape}});
  }

  ir::ValueId without_nans(ir::ValueId value) {
    const DType dtype = graph_.value(value).type.dtype;
    const ir::ValueId zero = graph_.add_constant(graph_.unique_name("c"), Tensor::zeros(dtype, {}));
    const ir::ValueId is_nan = graph_.add_node("is_nan", {value}, {}, {"numbers"})[0];
    return graph_.add_node("where", {is_nan, zero, value}, {}, {"numbers"})[0];
  }

  ir::ValueId limited(ir::ValueId value, Fill fill, bool real) {
    if (!real) return value;
    const double low = fill == Fill::kPositive ? 0.25 : fill == Fill::kUnit ? -1 : -4;
    const double high = fill == Fill::kUnit ? 1 : 4;
    return node("clip", {value}, {{"min", low}, {"max", high}});
  }

  Random random_;
  ir::Graph graph_;
  std::vector<Tensor> inputs_;
  std::vector<ir::ValueId> pool_;
};

std::string key_of(const std::string& op, const ir::Attrs& attrs, DType first, DType second) {
  std::string key = op;
  for (const auto& [name, value] : attrs.all()) {
    key += " " + name + "=";
    if (const auto* one = std::get_if<int64_t>(&value)) key += std::to_string(*one);
    if (const auto* real = std::get_if<double>(&value)) key += std::to_string(*real);
    if (const auto* text = std::get_if<std::string>(&value)) key += *text;
    if (const auto* dtype = std::get_if<DType>(&value)) key += dtype_name(*dtype);
    if (const auto* many = std::get_if<Ints>(&value)) key += to_string(*many);
  }
  return key + " " + std::string(dtype_name(first)) + " " + std::string(dtype_name(second));
}

std::string key_of(const Instance& instance) {
  const DType first = instance.inputs.empty() ? instance.dtype : instance.inputs[0]->dtype;
  const DType second = instance.inputs.size() > 1 && instance.inputs[1] ? instance.inputs[1]->dtype : first;
  return key_of(instance.source->op, instance.source->attrs, first, second);
}

ir::ComputeContext context_of(const ir::Graph& graph, const ir::Node& node,
                              const std::vector<te::Tensor>& tensors, const std::string& name) {
  ir::ComputeContext context{node.attrs, {}, {}, {}, name};
  for (const ir::ValueId id : node.inputs) {
    context.inputs.push_back(id == ir::kAbsent ? nullptr : tensors[static_cast<size_t>(id)]);
    context.input_types.push_back(id == ir::kAbsent ? ir::ValueType{} : graph.value(id).type);
  }
  for (const ir::ValueId id : node.outputs) context.output_types.push_back(graph.value(id).type);
  return context;
}

}  // namespace

RandomGraphs::RandomGraphs(RandomGraphOptions options)
    : options_(std::move(options)), list_(listed(options_)) {}

size_t RandomGraphs::count() const { return (list_.size() + options_.instances - 1) / options_.instances; }

RandomGraph RandomGraphs::make(size_t index) const {
  Builder builder(options_.seed * 1000003 + index);
  const size_t begin = index * options_.instances;
  for (size_t i = begin; i < std::min(begin + options_.instances, list_.size()); ++i) builder.add(list_[i]);
  return builder.finish();
}

void Coverage::add(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes()) {
    const DType first = graph.value(node.inputs[0]).type.dtype;
    const bool two = node.inputs.size() > 1 && node.inputs[1] != ir::kAbsent;
    seen_.insert(key_of(node.op, node.attrs, first, two ? graph.value(node.inputs[1]).type.dtype : first));
  }
}

std::vector<std::string> Coverage::missing(const std::vector<Instance>& wanted) const {
  std::vector<std::string> names;
  for (const Instance& instance : wanted) {
    if (instance.inputs.empty()) continue;
    if (seen_.count(key_of(instance)) == 0) names.push_back(instance.name());
  }
  return names;
}

std::string Coverage::report(const std::vector<Instance>& wanted) const {
  std::map<std::string, std::map<std::string, bool>> by_op;
  for (const Instance& instance : wanted) {
    const std::string key = key_of(instance);
    by_op[instance.source->op][key] = seen_.count(key) != 0;
  }
  std::string text;
  for (const auto& [op, keys] : by_op) {
    const auto covered = std::count_if(keys.begin(), keys.end(), [](const auto& key) { return key.second; });
    text +=
        op + ": " + std::to_string(covered) + " of " + std::to_string(keys.size()) + " attributes x dtypes\n";
  }
  return text;
}

te::Program node_program(const ir::Graph& graph, const ir::Node& node) {
  te::Program program;
  std::vector<te::Tensor> tensors(graph.values().size());
  for (const ir::ValueId id : node.inputs) {
    if (id == ir::kAbsent || tensors[static_cast<size_t>(id)] != nullptr) continue;
    const ir::ValueType& type = graph.value(id).type;
    program.inputs.push_back(te::placeholder("v" + std::to_string(id), type.dtype, type.shape));
    tensors[static_cast<size_t>(id)] = program.inputs.back();
  }
  program.outputs = graph.ops().get(node.op).compute(context_of(graph, node, tensors, "t"));
  return program;
}

te::Program graph_program(const ir::Graph& graph) {
  te::Program program;
  std::vector<te::Tensor> tensors(graph.values().size());
  const auto add = [&](ir::ValueId id) {
    const ir::ValueType& type = graph.value(id).type;
    program.inputs.push_back(te::placeholder("v" + std::to_string(id), type.dtype, type.shape));
    tensors[static_cast<size_t>(id)] = program.inputs.back();
  };
  for (const ir::ValueId id : graph.inputs()) add(id);
  for (size_t i = 0; i < graph.values().size(); ++i) {
    if (graph.values()[i].constant) add(static_cast<ir::ValueId>(i));
  }
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    const auto outputs =
        graph.ops().get(node.op).compute(context_of(graph, node, tensors, "t" + std::to_string(n)));
    for (size_t i = 0; i < outputs.size(); ++i) tensors[static_cast<size_t>(node.outputs[i])] = outputs[i];
  }
  for (const ir::ValueId id : graph.outputs()) program.outputs.push_back(tensors[static_cast<size_t>(id)]);
  return program;
}

std::vector<Tensor> constants_of(const ir::Graph& graph) {
  std::vector<Tensor> constants;
  for (const ir::Value& value : graph.values()) {
    if (value.constant) constants.push_back(*value.constant);
  }
  return constants;
}

}  // namespace tensormill::ops_cases
