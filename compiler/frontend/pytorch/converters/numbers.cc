// Numbers that follow from extents, checks of them, and graphs within nodes.
#include <algorithm>
#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/converters/helpers.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

void convert_sym_size(NodeContext& node) {
  const ir::SymShape shape = node.shape(node.tensor("self"));
  // Where the elements of a view begin is asserted, and nothing else: tensors have no place here.
  if (node.op() == "sym_storage_offset") return;
  if (node.op() == "sym_numel") return node.set_number(num_elements(shape));
  const int64_t axis = node.axis("dim", static_cast<int64_t>(shape.size()));
  if (node.op() == "sym_size") return node.set_number(shape[static_cast<size_t>(axis)]);
  node.set_number(row_major_strides(shape)[static_cast<size_t>(axis)]);
}

namespace {

double real_of(const Number& number) {
  if (const auto* value = std::get_if<double>(&number)) return *value;
  if (const auto* is_set = std::get_if<bool>(&number)) return *is_set ? 1 : 0;
  return static_cast<double>(int64_t{std::get<ir::SymInt>(number)});
}

std::optional<ir::SymInt> whole_of(const Number& number) {
  if (const auto* value = std::get_if<ir::SymInt>(&number)) return *value;
  if (const auto* is_set = std::get_if<bool>(&number)) return ir::SymInt(int64_t{*is_set});
  return std::nullopt;
}

/// By the operators that integers and real numbers have alike.
template <typename T>
Number compared(NodeContext& node, const std::string& op, const T& a, const T& b) {
  if (op == "eq") return a == b;
  if (op == "ne") return a != b;
  if (op == "lt") return a < b;
  if (op == "le") return a <= b;
  if (op == "gt") return a > b;
  if (op == "ge") return a >= b;
  node.invalid("it has a converter of other operators");
}

/// a + b or a - b. The numbers come from the model, as those of OpBuilder::product do.
ir::SymInt sum_of_numbers(NodeContext& node, const ir::SymInt& a, const ir::SymInt& b, bool is_difference) {
  int64_t result = 0;
  if (is_difference ? __builtin_sub_overflow(a.hint(), b.hint(), &result)
                    : __builtin_add_overflow(a.hint(), b.hint(), &result))
    node.invalid(to_string(a) + (is_difference ? " - " : " + ") + to_string(b) + " is too large");
  return is_difference ? a - b : a + b;
}

Number of_integers(NodeContext& node, const std::string& op, const ir::SymInt& a, const ir::SymInt& b) {
  if (op == "add" || op == "sub") return sum_of_numbers(node, a, b, op == "sub");
  if (op == "mul") return node.product(a, b);
  const bool divides = op == "floordiv" || op == "mod";
  if (divides && b == 0) node.invalid("a division by 0");
  // The least number has no quotient by -1.
  if (divides && same(b, -1)) return op == "mod" ? ir::SymInt(0) : sum_of_numbers(node, 0, a, true);
  if (op == "floordiv") return floordiv(a, b);
  if (op == "mod") return floormod(a, b);
  if (op == "truediv") {
    if (b == 0) node.invalid("a division by 0");
    return static_cast<double>(int64_t{a}) / static_cast<double>(int64_t{b});
  }
  if (op == "pow") {
    const int64_t power = b;
    if (power < 0 || power > 16)
      node.unsupported("b", "a power of " + std::to_string(power) + " is not implemented");
    ir::SymInt result = 1;
    for (int64_t i = 0; i < power; ++i) result = node.product(result, a);
    return result;
  }
  if (op == "sym_max") return max(a, b);
  if (op == "sym_min") return min(a, b);
  return compared(node, op, a, b);
}

Number of_reals(NodeContext& node, const std::string& op, double a, double b) {
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "truediv") return a / b;
  if (op == "floordiv") return std::floor(a / b);
  if (op == "mod") return a - b * std::floor(a / b);
  if (op == "pow") return std::pow(a, b);
  if (op == "sym_max") return std::max(a, b);
  if (op == "sym_min") return std::min(a, b);
  return compared(node, op, a, b);
}

/// Or what is made of comparisons.
bool is_comparison(const std::string& op) {
  static constexpr std::string_view kNames[] = {"eq", "ne", "lt", "le", "gt", "ge", "and_", "or_"};
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames);
}

}  // namespace

namespace {

/// In the type in which Python computes it.
V python_number(NodeContext& node, const Operand& operand) {
  return node.as(operand, is_float(operand.type.dtype) ? DType::kFloat64 : DType::kInt64);
}

/// Of two numbers of which a run works out one.
void compute_number(NodeContext& node) {
  constexpr std::array<build::OpName, 11> kNames = {{{"add", "add"},
                                                     {"sub", "sub"},
                                                     {"mul", "mul"},
                                                     {"sym_max", "max"},
                                                     {"sym_min", "min"},
                                                     {"eq", "equal"},
                                                     {"lt", "less"},
                                                     {"le", "less_equal"},
                                                     {"gt", "greater"},
                                                     {"ge", "greater_equal"},
                                                     {"truediv", "div"}}};
  if (node.op() == "and_" || node.op() == "or_") {
    const V a = to_bool(node, python_number(node, node.operand("a"))),
            b = to_bool(node, python_number(node, node.operand("b")));
    return node.set_run_number({node.add(node.op() == "and_" ? "and" : "or", {a, b})});
  }
  const build::OpName* found = build::find_in(kNames, &build::OpName::model, node.op());
  if (found == nullptr) node.unsupported("a", "of numbers that a run works out it is not implemented");
  Compose c(node);
  V a = python_number(node, node.operand("a")), b = python_number(node, node.operand("b"));
  const bool is_real = is_float(node.dtype(a)) || is_float(node.dtype(b)) || node.op() == "truediv";
  if (is_real) a = c.cast(a, DType::kFloat64);
  if (is_real) b = c.cast(b, DType::kFloat64);
  node.set_run_number({c.binary(found->graph, a, b)});
}

void compute_number(NodeContext& node, V x) {
  Compose c(node);
  const std::string& op = node.op();
  if (op == "sym_float") return node.set_run_number({c.cast(x, DType::kFloat64)});
  if (op == "sym_not") return node.set_run_number({c.unary("not", c.cast(x, DType::kBool))});
  if (op == "neg") return node.set_run_number({c.unary("neg", x)});
  node.unsupported("a", "of a number that a run works out it is not implemented");
}

}  // namespace

namespace {

/// An operand of a number that may follow from free extents.
struct ExtentOperand {
  std::optional<ExtentReal> real;
  Number number = false;  ///< where it is no such real number

  bool is_whole() const { return !real && whole_of(number); }
  bool is_free() const {
    const std::optional<ir::SymInt> whole = real ? std::nullopt : whole_of(number);
    return real || (whole && !whole->is_constant());
  }
  bool is_zero() const {
    const std::optional<ir::SymInt> whole = real ? std::nullopt : whole_of(number);
    return whole && whole->is_constant() && whole->hint() == 0;
  }
};

ExtentOperand extent_operand(NodeContext& node, const char* name) {
  std::optional<ExtentReal> real = node.extent_real(name);
  if (real) return {std::move(real)};
  return {std::nullopt, node.number(name)};
}

ExtentReal real_in_runs(NodeContext& node, const char* name, const ExtentOperand& operand) {
  if (operand.real) return *operand.real;
  return {node.as(node.operand(name), DType::kFloat64),
          [number = operand.number] { return real_of(number); }};
}

/// Real numbers of free extents stay what they are in each run, where an operator asks for that.
bool set_real_of_extents(NodeContext& node) {
  constexpr std::array<build::OpName, 4> kNames = {
      {{"add", "add"}, {"sub", "sub"}, {"mul", "mul"}, {"truediv", "div"}}};
  const std::string op = node.op();
  const build::OpName* found = build::find_in(kNames, &build::OpName::model, op);
  if (found == nullptr) return false;
  const ExtentOperand a = extent_operand(node, "a"), b = extent_operand(node, "b");
  const bool is_whole = a.is_whole() && b.is_whole() && op != "truediv";
  if (is_whole || !(a.is_free() || b.is_free()) || (op == "truediv" && b.is_zero())) return false;
  const ExtentReal first = real_in_runs(node, "a", a), second = real_in_runs(node, "b", b);
  const std::optional<Ratio> left = node.ratio("a"), right = node.ratio("b");
  node.set_extent_real({Compose(node).binary(found->graph, first.value, second.value),
                        [op, x_of = first.fixed, y_of = second.fixed] {
                          const double x = x_of(), y = y_of();
                          return op == "add" ? x + y : op == "sub" ? x - y : op == "mul" ? x * y : x / y;
                        },
                        left && right ? joined(op, *left, *right) : std::nullopt});
  return true;
}

/// Real numbers of free extents are compared as whole ones are, where they are such numbers exactly.
bool compare_reals_of_extents(NodeContext& node) {
  const bool is_joined = node.op() == "and_" || node.op() == "or_";
  if (!is_comparison(node.op()) || is_joined || !(node.extent_real("a") || node.extent_real("b")))
    return false;
  const std::optional<Ratio> a = node.ratio("a"), b = node.ratio("b");
  const std::optional<Ratio> apart = a && b ? joined("sub", *a, *b) : std::nullopt;
  if (!apart) return false;
  node.set_number(of_integers(node, node.op(), apart->over, 0));
  return true;
}

/// What follows from a real number of free extents, where that is not fixed.
bool set_of_real_of_extents(NodeContext& node) {
  const std::optional<ExtentReal> real = node.extent_real("a");
  if (!real) return false;
  const std::string& op = node.op();
  if (op == "sym_float") {
    node.set_extent_real(*real);
    return true;
  }
  if (op == "neg") {
    node.set_extent_real(
        {Compose(node).unary("neg", real->value), [of = real->fixed] { return -of(); },
         real->ratio ? std::optional(Ratio{-real->ratio->over, real->ratio->under}) : std::nullopt});
    return true;
  }
  if (!real->ratio || op == "sym_not" || op == "round") return false;
  node.set_number(op == "ceil"    ? ceil_of(*real->ratio)
                  : op == "floor" ? floor_of(*real->ratio)
                                  : trunc_of(*real->ratio));
  return true;
}

}  // namespace

void convert_number_binary(NodeContext& node) {
  // What is compared is what a check behind it asserts: the operators demand what they need themselves.
  const bool is_there = node.has("a") && node.has("b");
  if (!is_there || (is_comparison(node.op()) && !node.is_number_used())) return;
  if (node.run_number("a") || node.run_number("b")) return compute_number(node);
  if (set_real_of_extents(node) || compare_reals_of_extents(node)) return;
  const Number a = node.number("a"), b = node.number("b");
  if (std::holds_alternative<bool>(a) && std::holds_alternative<bool>(b)) {
    if (node.op() == "and_") return node.set_number(std::get<bool>(a) && std::get<bool>(b));
    if (node.op() == "or_") return node.set_number(std::get<bool>(a) || std::get<bool>(b));
  }
  const std::optional<ir::SymInt> x = whole_of(a), y = whole_of(b);
  node.set_number(x && y ? of_integers(node, node.op(), *x, *y)
                         : of_reals(node, node.op(), real_of(a), real_of(b)));
}

void convert_number_unary(NodeContext& node) {
  if (node.op() == "sym_not" && node.has("a") && !node.is_number_used()) return;
  if (const auto of_run = node.run_number("a")) return compute_number(node, of_run->value);
  if (set_of_real_of_extents(node)) return;
  const Number a = node.number("a");
  const std::string& op = node.op();
  const std::optional<ir::SymInt> whole = whole_of(a);
  if (op == "sym_float" && whole && !whole->is_constant())
    return node.set_extent_real({Compose(node).cast(Compose(node).dims({*whole}, {}), DType::kFloat64),
                                 [a] { return real_of(a); }, Ratio{*whole}});
  if (op == "sym_float") return node.set_number(real_of(a));
  if (op == "sym_not") return node.set_number(real_of(a) == 0);
  if (op == "neg")
    return whole ? node.set_number(sum_of_numbers(node, 0, *whole, true)) : node.set_number(-real_of(a));
  if (whole) return node.set_number(*whole);
  const double x = real_of(a);
  const double y = op == "ceil"    ? std::ceil(x)
                   : op == "floor" ? std::floor(x)
                   : op == "round" ? std::nearbyint(x)
                                   : std::trunc(x);
  if (!(std::fabs(y) < 0x1p53)) node.invalid("a number that is no integer");
  node.set_number(ir::SymInt(static_cast<int64_t>(y)));
}

namespace {

/// A number of which extents are made, as a symbol that a run binds. What the program checks of it
/// (torch._check) stands in its range, and is checked when it is bound.
ir::SymInt run_time_extent(NodeContext& node, V x, const SymbolRange& range) {
  const int64_t low = std::max<int64_t>(range.min.value_or(0), 0);
  const ir::SymInt extent = node.bind_number(x, low, std::nullopt);
  const bool is_bounded = range.max && *range.max < build::kMaxListed * 256;
  if (is_bounded && !ir::demand(ir::Relation::kLessEqual, extent, *range.max))
    node.invalid("a number from " + std::to_string(low) + " to " + std::to_string(*range.max));
  return extent;
}

}  // namespace

// Of what is known while the graph is built, or of a run; extents are made of symbols.
void convert_item(NodeContext& node) {
  const V x = node.tensor("self");
  const ir::Value& value = node.graph().value(x);
  if (value.known && value.known.elements().size() == 1 && !is_float(node.dtype(x)) &&
      node.dtype(x) != DType::kBool)
    return node.set_number(value.known.elements()[0]);
  if (num_elements(node.shape(x)) != 1)
    node.invalid("a tensor of " + to_string(node.shape(x)) + " is no number");
  const Tensor* known = value.tensor();
  // TorchScript's numbers decide how its code goes on.
  if (known == nullptr && !node.is_typed())
    node.unsupported("self", "a number that a run works out is not implemented");
  if (known == nullptr) {
    const std::optional<SymbolRange> range = node.extent_range();
    if (range && is_integer(node.dtype(x))) return node.set_number(run_time_extent(node, x, *range));
    return node.set_run_number({Compose(node).reshape(x, {})});
  }
  if (node.dtype(x) == DType::kBool) return node.set_number(known->element_as_int(0) != 0);
  if (is_float(node.dtype(x))) return node.set_number(known->element_as_double(0));
  node.set_number(ir::SymInt(known->element_as_int(0)));
}

// Both graphs are computed: none has an effect but its results.
void convert_cond(NodeContext& node) {
  Compose c(node);
  const Graph &yes = node.graph_of("true_graph"), &no = node.graph_of("false_graph");
  if (!node.is_tensor("pred")) {
    node.set_outputs(node.call(node.flag("pred") ? yes : no, "operands"));
    return;
  }
  const V condition = c.reshape(to_bool(node, node.tensor("pred")), {});
  const std::vector<V> first = node.call(yes, "operands"), second = node.call(no, "operands");
  if (first.size() != second.size()) node.invalid("its graphs have other numbers of results");
  std::vector<V> chosen;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!ir::demand_equal(node.shape(first[i]), node.shape(second[i])))
      node.unsupported("true_graph", "results of other extents than the other graph's are not implemented");
    chosen.push_back(c.where(condition, first[i], second[i]));
  }
  node.set_outputs(chosen);
}

namespace {

/// Rounds that are unrolled into kernels.
constexpr int64_t kMostRounds = 1024;

std::vector<V> with_more(std::vector<V> values, const std::vector<V>& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

}  // namespace

// As long as the condition is known: rounds that follow from constants and extents.
void convert_while_loop(NodeContext& node) {
  const Graph &condition = node.graph_of("cond_fn"), &body = node.graph_of("body_fn");
  ir::CheckedList<V> values = node.tensors("carried_inputs");
  const ir::CheckedList<V> more = node.tensors("additional_inputs");
  for (int64_t round = 0;; ++round) {
    const std::vector<V> goes_on = node.call(condition, with_more(values, more));
    if (goes_on.size() != 1) node.invalid("its condition has " + std::to_string(goes_on.size()) + " results");
    const Tensor* known = node.graph().value(goes_on[0]).tensor();
    if (known == nullptr || known->num_elements() != 1)
      node.unsupported("cond_fn", "a number of rounds that a run works out is not implemented");
    if (known->element_as_double(0) == 0) break;
    if (round == kMostRounds)
      node.unsupported("cond_fn", "more than " + std::to_string(kMostRounds) + " rounds are not implemented");
    std::vector<V> next = node.call(body, with_more(values, more));
    if (next.size() != values.size()) node.invalid("its body has other numbers of results than of operands");
    values = std::move(next);
  }
  // A value that went through no round is the operand itself.
  for (V& value : values) value = node.add("identity", {value});
  node.set_outputs(values);
}

// The graph of each element along the first axis of the operands.
void convert_map(NodeContext& node) {
  Compose c(node);
  const Graph& graph = node.graph_of("f");
  const ir::CheckedList<V> elements = node.tensors("xs"), more = node.tensors("pos_args");
  if (elements.empty() || node.rank(elements[0]) == 0) node.invalid("it has nothing to go over");
  const int64_t count = node.shape(elements[0])[0];
  if (count < 1 || count > kMostRounds)
    node.unsupported("xs", std::to_string(count) + " elements are not implemented");
  std::vector<std::vector<V>> parts(node.num_outputs());
  for (int64_t i = 0; i < count; ++i) {
    std::vector<V> at;
    for (const V each : elements) at.push_back(c.squeeze(c.slice(each, 0, i, 1), 0));
    const std::vector<V> results = node.call(graph, with_more(at, more));
    if (results.size() != parts.size()) node.invalid("its graph has other numbers of results than it has");
    for (size_t k = 0; k < results.size(); ++k) parts[k].push_back(c.unsqueeze(results[k], 0));
  }
  for (size_t k = 0; k < parts.size(); ++k)
    node.set_output(k, count == 1 ? node.add("identity", {parts[k][0]}) : c.concat(parts[k], 0));
}

// A graph that is only set apart.
void convert_wrapped(NodeContext& node) {
  if (node.row().name == "wrap_with_set_grad_enabled") static_cast<void>(node.flag("enable_grad"));
  node.set_outputs(node.call(node.graph_of("wrapped_func"), "args"));
}

namespace {

V beside(NodeContext& node, V row, V x, int64_t axis) {
  ir::SymShape along(node.shape(x).size(), 1);
  along[static_cast<size_t>(axis)] = num_elements(node.shape(row));
  return Compose(node).reshape(row, along);
}

/// Scale and zero point as they stand beside x.
struct Steps {
  V scale, zero;
};
Steps steps_of(NodeContext& node, V x, DType dtype) {
  Compose c(node);
  const bool is_channel = node.op().ends_with("per_channel");
  if (is_channel) {
    const int64_t axis = node.axis("axis", node.rank(x));
    return {beside(node, c.cast(node.tensor("scales"), dtype), x, axis),
            beside(node, c.cast(node.tensor("zero_points"), dtype), x, axis)};
  }
  return {node.as(node.operand("scale"), dtype), node.as(node.operand("zero_point"), dtype)};
}

}  // namespace

// clamp(round(x / scale) + zero_point, quant_min, quant_max)
void convert_quantize(NodeContext& node) {
  Compose c(node);
  const V x = c.cast(node.tensor("input"), DType::kFloat32);
  const Steps steps = steps_of(node, x, DType::kFloat32);
  static_cast<void>(node.optional_dtype("dtype"));
  const V inverse = c.unary("reciprocal", steps.scale);
  const V moved = c.add(c.unary("round", c.mul(x, inverse)), steps.zero);
  node.set_output(0, node.as_output(c.clip(moved, node.real("quant_min"), node.real("quant_max"))));
}

void convert_dequantize(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input");
  static_cast<void>(node.optional_dtype("dtype"));
  static_cast<void>(node.real("quant_min"));
  static_cast<void>(node.real("quant_max"));
  if (node.has("out_dtype")) static_cast<void>(node.optional_dtype("out_dtype"));
  const Steps steps = steps_of(node, x, DType::kFloat32);
  node.set_output(0, node.as_output(c.mul(c.sub(c.cast(x, DType::kFloat32), steps.zero), steps.scale)));
}

}  // namespace tensormill::frontend::pytorch
