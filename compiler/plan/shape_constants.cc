#include "compiler/plan/shape_constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "compiler/ir/kept.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/patch.h"
#include "compiler/plan/sample_chances.h"
#include "runtime/base/dim_formula.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::plan {

namespace {

using Graphs = std::vector<ir::Graph>;

/// Constants up to this many elements may be a list of numbers, each with a formula of its own.
constexpr int64_t kMaxListed = 16;
constexpr int64_t kLargestFactor = 16;

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.data() == b.data() || std::memcmp(a.data(), b.data(), a.num_bytes()) == 0);
}

bool same_structure(const ir::Graph& a, const ir::Graph& b) {
  const auto same_node = [](const ir::Node& x, const ir::Node& y) {
    return x.op == y.op && x.inputs == y.inputs && x.outputs == y.outputs;
  };
  const auto same_value = [](const ir::Value& x, const ir::Value& y) {
    return x.constant.has_value() == y.constant.has_value();
  };
  return a.inputs() == b.inputs() && a.outputs() == b.outputs() &&
         std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(), same_node) &&
         std::equal(a.values().begin(), a.values().end(), b.values().begin(), b.values().end(), same_value);
}

/// Which constants to hide.
class Search {
public:
  explicit Search(const Graphs& graphs)
      : graphs_(graphs), derived_(first().values().size()), moving_(first().values().size()) {}

  std::set<ir::ValueId> run() {
    for (size_t i = 0; i < derived_.size(); ++i) {
      const std::optional<Tensor>& constant = first().values()[i].constant;
      if (!constant) continue;
      derived_[i] = true;
      moving_[i] = std::any_of(graphs_.begin(), graphs_.end(), [&](const ir::Graph& graph) {
        return !same_bytes(*graph.values()[i].constant, *constant);
      });
      if (moving_[i]) hidden_.insert(static_cast<ir::ValueId>(i));
    }
    for (size_t n = 0; n < first().nodes().size(); ++n) visit(n);
    return hidden_;
  }

private:
  const ir::Graph& first() const { return graphs_.front(); }

  /// A node of constants alone of which the samples make different results.
  void visit(size_t index) {
    const ir::Node& node = first().nodes()[index];
    bool derived = !node.inputs.empty(), moving = false;
    for (const ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent) continue;
      derived = derived && derived_[static_cast<size_t>(input)];
      moving = moving || moving_[static_cast<size_t>(input)];
    }
    if (!derived) return;
    const bool differs = std::any_of(graphs_.begin(), graphs_.end(), [&](const ir::Graph& graph) {
      const ir::Node& other = graph.nodes()[index];
      return !(other.attrs == node.attrs) ||
             std::any_of(node.outputs.begin(), node.outputs.end(),
                         [&](ir::ValueId id) { return !(graph.value(id).type == first().value(id).type); });
    });
    if (differs && !moving) hidden_.insert(root_of(node));
    for (const ir::ValueId output : node.outputs) {
      derived_[static_cast<size_t>(output)] = true;
      moving_[static_cast<size_t>(output)] = moving || differs;
    }
  }

  ir::ValueId root_of(const ir::Node& node) const {
    const ir::Node* at = &node;
    while (true) {
      const ir::ValueId input = *std::find_if(at->inputs.begin(), at->inputs.end(),
                                              [](ir::ValueId id) { return id != ir::kAbsent; });
      const ir::NodeId producer = first().value(input).producer;
      if (producer == ir::kAbsent) return input;
      at = &first().node(producer);
    }
  }

  const Graphs& graphs_;
  std::vector<bool> derived_, moving_;  ///< by value: computed from constants alone; different in the samples
  std::set<ir::ValueId> hidden_;
};

/// The graph with `hidden` constants as its last inputs, and with nodes `kept` that passes leave alone.
ir::Graph with_inputs(const ir::Graph& graph, const std::set<ir::ValueId>& hidden,
                      const std::set<ir::NodeId>& kept) {
  ir::Graph result(graph.ops());
  result.set_name(graph.name());
  std::vector<ir::ValueId> made(graph.values().size(), ir::kAbsent);
  const auto copy_input = [&](ir::ValueId id) {
    const ir::Value& value = graph.value(id);
    made[static_cast<size_t>(id)] = result.add_input(value.name, value.type);
  };
  for (const ir::ValueId id : graph.inputs()) copy_input(id);
  for (const ir::ValueId id : hidden) copy_input(id);
  for (size_t i = 0; i < made.size(); ++i) {
    const ir::Value& value = graph.values()[i];
    if (value.constant && made[i] == ir::kAbsent) made[i] = result.add_constant(value.name, *value.constant);
  }
  const auto mapped = [&](const std::vector<ir::ValueId>& ids) {
    std::vector<ir::ValueId> all;
    for (const ir::ValueId id : ids)
      all.push_back(id == ir::kAbsent ? ir::kAbsent : made[static_cast<size_t>(id)]);
    return all;
  };
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const ir::Node& node = graph.nodes()[n];
    std::vector<std::string> names;
    for (const ir::ValueId output : node.outputs) names.push_back(graph.value(output).name);
    ir::Attrs attrs = node.attrs;
    if (kept.count(static_cast<ir::NodeId>(n)) != 0) attrs.set(ir::kKept, static_cast<int64_t>(n));
    const std::vector<ir::ValueId> outputs =
        result.add_node(node.op, mapped(node.inputs), std::move(attrs), node.origins, names);
    for (size_t i = 0; i < outputs.size(); ++i) made[static_cast<size_t>(node.outputs[i])] = outputs[i];
  }
  result.set_outputs(mapped(graph.outputs()));
  return result;
}

/// How the elements of one constant follow from their position.
struct Form {
  enum class Kind : uint8_t { kFill, kAlong, kList } kind = Kind::kFill;
  size_t axis = 0;  ///< kAlong: floor((mul × position on the axis + add) / div)
  DimTerm term;
};

te::Expr number(const Tensor& tensor, int64_t at) {
  const DType dtype = storage_dtype(tensor.dtype());
  if (tensor.num_elements() == 0) return is_float(dtype) ? te::float_imm(dtype, 0) : te::int_imm(dtype, 0);
  return is_float(dtype) ? te::float_imm(dtype, tensor.element_as_double(at))
                         : te::int_imm(dtype, tensor.element_as_int(at));
}

/// The elements along one axis when they depend on no other, as integers.
std::optional<std::vector<int64_t>> numbers_along(const Tensor& tensor, size_t axis) {
  const Shape& shape = tensor.shape();
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  std::vector<int64_t> numbers(static_cast<size_t>(shape[axis]));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = is_float(tensor.dtype()) ? tensor.element_as_double(i)
                                                  : static_cast<double>(tensor.element_as_int(i));
    if (!(std::fabs(value) < 1e9) || value != std::rint(value)) return std::nullopt;
    int64_t& number = numbers[static_cast<size_t>(i / inner % shape[axis])];
    const bool first = i % inner == 0 && i / inner < shape[axis];
    if (first) number = static_cast<int64_t>(value);
    if (!first && number != static_cast<int64_t>(value)) return std::nullopt;
  }
  return numbers;
}

std::optional<DimTerm> term_of(const std::vector<int64_t>& numbers) {
  const auto holds = [&](const DimTerm& term) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (numbers[i] != evaluate(term, std::span(&at, 1))) return false;
    }
    return true;
  };
  const DimTerm line{0, numbers.size() > 1 ? numbers[1] - numbers[0] : 0, numbers[0], 1};
  if (holds(line)) return line;
  for (int64_t div = 2; div <= kLargestFactor; ++div) {
    for (int64_t mul = 1; mul <= kLargestFactor; ++mul) {
      for (int64_t add = 0; add < std::max(div, mul); ++add) {
        if (holds({0, mul, add, div})) return DimTerm{0, mul, add, div};
      }
    }
  }
  return std::nullopt;
}

/// The constant of one sample in the form, if it has it.
te::Tensor expression_of(const Tensor& tensor, const Form& form, const std::string& name) {
  const DType dtype = tensor.dtype();
  const auto compute = [&](const auto& body) { return te::compute(name, tensor.shape(), body); };
  if (form.kind == Form::Kind::kFill)
    return compute([&](const std::vector<te::Expr>&) { return number(tensor, 0); });
  if (form.kind == Form::Kind::kList) {
    return compute([&](const std::vector<te::Expr>& axes) {
      te::Expr value = number(tensor, 0);
      for (int64_t i = 1; i < tensor.num_elements(); ++i)
        value = te::select(axes[0] == te::Expr(i), number(tensor, i), value);
      return value;
    });
  }
  const auto numbers = numbers_along(tensor, form.axis);
  if (!numbers) return nullptr;
  DimTerm term = form.term;
  if (term.div == 1) term.add = numbers->empty() ? 0 : numbers->front();
  for (size_t i = 0; i < numbers->size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if ((*numbers)[i] != evaluate(term, std::span(&at, 1))) return nullptr;
  }
  return compute([&](const std::vector<te::Expr>& axes) {
    // Written in full in every sample: the form does not depend on the numbers.
    te::Expr value = te::make(te::ExprOp::kMul, {axes[form.axis], te::Expr(term.mul)});
    value = te::make(te::ExprOp::kAdd, {value, te::Expr(term.add)});
    if (term.div != 1) value = te::floordiv(value, te::Expr(term.div));
    return dtype == DType::kInt64 ? value : te::cast(dtype, value);
  });
}

std::optional<Form> form_of(const std::vector<Tensor>& samples) {
  const Tensor& first = samples[0];
  if (is_narrow(first.dtype())) return std::nullopt;
  const auto all = [&](const auto& holds) { return std::all_of(samples.begin(), samples.end(), holds); };
  const bool filled = all([](const Tensor& tensor) {
    for (int64_t i = 1; i < tensor.num_elements(); ++i) {
      const bool same = is_float(tensor.dtype()) ? tensor.element_as_double(i) == tensor.element_as_double(0)
                                                 : tensor.element_as_int(i) == tensor.element_as_int(0);
      if (!same) return false;
    }
    return true;
  });
  if (filled) return Form{};
  for (size_t axis = 0; axis < first.shape().size(); ++axis) {
    // The longest sample tells most; the others must agree with its factors.
    const Tensor& longest =
        *std::max_element(samples.begin(), samples.end(),
                          [&](const auto& a, const auto& b) { return a.shape()[axis] < b.shape()[axis]; });
    const auto numbers = numbers_along(longest, axis);
    const auto term = numbers && !numbers->empty() ? term_of(*numbers) : std::nullopt;
    const Form form{Form::Kind::kAlong, axis, term.value_or(DimTerm{})};
    // Few numbers may lie in a row by chance.
    if (term && all([&](const Tensor& tensor) { return expression_of(tensor, form, "") != nullptr; }))
      return form;
  }
  const bool listed = first.shape().size() == 1 && first.num_elements() <= kMaxListed &&
                      all([&](const Tensor& tensor) { return tensor.shape() == first.shape(); });
  return listed ? std::optional(Form{Form::Kind::kList, 0, {}}) : std::nullopt;
}

HiddenConstant hidden_constant(const Graphs& graphs, ir::ValueId id) {
  HiddenConstant hidden;
  for (const ir::Graph& graph : graphs) hidden.values.push_back(*graph.value(id).constant);
  const bool same = std::all_of(hidden.values.begin(), hidden.values.end(),
                                [&](const Tensor& tensor) { return same_bytes(tensor, hidden.values[0]); });
  if (same) return hidden;
  const std::string& name = graphs[0].value(id).name;
  const std::optional<Form> form = form_of(hidden.values);
  for (const Tensor& tensor : hidden.values) {
    hidden.expressions.push_back(form ? expression_of(tensor, *form, "computed") : nullptr);
    if (hidden.expressions.back() == nullptr)
      throw Error(ErrorCode::kNotSupported,
                  "constant \"" + name + "\" depends on the free dims, and its elements have no formula");
  }
  return hidden;
}

}  // namespace

SampleGraphs hide_shape_constants(const std::vector<const ir::Graph*>& samples) {
  SampleGraphs result;
  for (const ir::Graph* sample : samples) result.graphs.push_back(ir::remove_dead(*sample));
  const ir::Graph& first = result.graphs.front();
  const bool same = std::all_of(result.graphs.begin(), result.graphs.end(),
                                [&](const ir::Graph& graph) { return same_structure(graph, first); });
  if (!same) return result;
  const std::set<ir::ValueId> hidden = Search(result.graphs).run();
  for (const ir::ValueId id : hidden) result.hidden.push_back(hidden_constant(result.graphs, id));
  const std::set<ir::NodeId> kept = chances_of(result.graphs);
  if (hidden.empty() && kept.empty()) return result;
  for (ir::Graph& graph : result.graphs) graph = with_inputs(graph, hidden, kept);
  return result;
}

}  // namespace tensormill::plan
