#include "tests/ops/cases/chain_graph.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/ops/ops.h"

namespace tensormill::ops_cases {
namespace {

using Ints = std::vector<int64_t>;

class ChainBuilder {
public:
  explicit ChainBuilder(uint64_t seed) : random_(seed * 7919 + 17), graph_(ops::standard_ops()) {
    for (const Shape& shape : {Shape{2, 3, 4}, Shape{1, 4, 3, 5}, Shape{3, 1, 2}}) {
      input("x", shape);
    }
  }

  RandomGraph build(int steps) {
    using Member = void (ChainBuilder::*)();
    static constexpr Member kRules[] = {
        &ChainBuilder::transpose,    &ChainBuilder::transpose,   &ChainBuilder::transpose_back,
        &ChainBuilder::reshape,      &ChainBuilder::reshape,     &ChainBuilder::elementwise,
        &ChainBuilder::elementwise,  &ChainBuilder::with_scalar, &ChainBuilder::with_scalar,
        &ChainBuilder::with_operand, &ChainBuilder::no_op,       &ChainBuilder::slice,
        &ChainBuilder::pad,          &ChainBuilder::moved_cast,  &ChainBuilder::constant_chain,
        &ChainBuilder::twin,         &ChainBuilder::near_twin,   &ChainBuilder::reduce,
        &ChainBuilder::normalized,   &ChainBuilder::convolution, &ChainBuilder::concat};
    for (int step = 0; step < steps; ++step) (this->*kRules[random_() % std::size(kRules)])();
    finish();
    return {std::move(graph_), std::move(inputs_)};
  }

private:
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  /// By value: adding nodes moves the graph's values.
  Shape shape_of(ir::ValueId id) const { return graph_.value(id).type.shape; }

  void input(const std::string& name, const Shape& shape) {
    pool_.push_back(graph_.add_input(graph_.unique_name(name), {DType::kFloat32, shape}));
    inputs_.push_back(make_tensor({.shape = shape}, DType::kFloat32, random_()));
  }

  ir::ValueId constant(const Shape& shape, Fill fill = Fill::kUnit) {
    return graph_.add_constant(graph_.unique_name("c"),
                               make_tensor({.shape = shape, .fill = fill}, DType::kFloat32, random_()));
  }
  ir::ValueId scalar(double value) {
    Tensor tensor(DType::kFloat32, random_() % 2 == 0 ? Shape{} : Shape{1});
    tensor.set_element(0, value);
    return graph_.add_constant(graph_.unique_name("s"), std::move(tensor));
  }

  ir::ValueId add(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {}) {
    return graph_.add_node(op, std::move(inputs), std::move(attrs),
                           {op + "_" + std::to_string(graph_.nodes().size())})[0];
  }
  void keep(ir::ValueId id) { pool_.push_back(id); }

  /// A recent value, now and then an old one, so that chains grow but values are shared too.
  ir::ValueId any() {
    const size_t recent = std::min<size_t>(pool_.size(), random_() % 4 == 0 ? pool_.size() : 3);
    return pool_[pool_.size() - 1 - random_() % recent];
  }

  std::optional<ir::ValueId> any_of_rank(size_t low, size_t high) {
    for (int tries = 0; tries < 6; ++tries) {
      const ir::ValueId id = any();
      if (shape_of(id).size() >= low && shape_of(id).size() <= high) return id;
    }
    return std::nullopt;
  }

  Ints shuffled(size_t rank) {
    Ints perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = rank; i > 1; --i) std::swap(perm[i - 1], perm[random_() % i]);
    return perm;
  }

  void transpose() {
    const ir::ValueId x = any();
    if (pick(0, 4) == 0) return keep(add("transpose", {x}));
    keep(add("transpose", {x}, {{"perm", shuffled(shape_of(x).size())}}));
  }

  /// f(transpose(x)) and the way back.
  void transpose_back() {
    const ir::ValueId x = any();
    const Ints perm = shuffled(shape_of(x).size());
    Ints inverse(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
    ir::ValueId moved = add("transpose", {x}, {{"perm", perm}});
    if (pick(0, 2) != 0) moved = add("neg", {moved});
    keep(add("transpose", {moved}, {{"perm", inverse}}));
  }

  void reshape() {
    const ir::ValueId x = any();
    Shape shape = shape_of(x);
    switch (pick(0, 3)) {
      case 0:
        shape = {num_elements(shape)};
        break;
      case 1:
        shape.insert(shape.begin() + pick(0, static_cast<int64_t>(shape.size())), 1);
        break;
      case 2:
        if (shape.size() > 1) {
          shape[1] *= shape[0];
          shape.erase(shape.begin());
        }
        break;
      default:
        break;
    }
    if (shape.size() <= 5) keep(add("reshape", {x}, {{"shape", shape}}));
  }

  void elementwise() {
    static const std::vector<std::string> operators = {"neg",     "abs", "tanh",    "relu",
                                                       "sigmoid", "erf", "identity"};
    keep(add(operators[random_() % operators.size()], {any()}));
  }

  void with_scalar() {
    static const std::vector<double> scalars = {0, 1, 1, 2, 2, -0.5};
    const ir::ValueId x = any();
    const double value = scalars[random_() % scalars.size()];
    const bool fits = shape_of(x).size() > 0;
    switch (pick(0, 4)) {
      case 0:
        return keep(add("mul", {x, scalar(value)}));
      case 1:
        return keep(bounded(add("div", {x, scalar(value == 0 ? 1 : value)})));
      case 2:
        return keep(bounded(
            add("add", fits && value != 1 ? std::vector{scalar(value), x} : std::vector{x, scalar(value)})));
      case 3:
        return keep(bounded(add("pow", {add("tanh", {x}), scalar(std::max(value, 1.0))})));
      default:
        return keep(bounded(add("sub", {scalar(value), x})));
    }
  }

  ir::ValueId bounded(ir::ValueId x) { return add("clip", {x}, {{"min", -8.0}, {"max", 8.0}}); }

  /// With another value of the shape, a transposed one, or a constant row.
  void with_operand() {
    const ir::ValueId x = any();
    for (int tries = 0; tries < 4; ++tries) {
      const ir::ValueId y = any();
      if (shape_of(y) == shape_of(x)) return keep(bounded(add(pick(0, 1) == 0 ? "sub" : "add", {x, y})));
    }
    const Shape shape = shape_of(x);
    const Shape row = shape.empty() ? Shape{} : Shape{shape.back()};
    keep(bounded(add(pick(0, 1) == 0 ? "mul" : "add", {x, constant(pick(0, 1) == 0 ? shape : row)})));
  }

  void no_op() {
    const ir::ValueId x = any();
    const Shape shape = shape_of(x);
    const Ints ones(shape.size(), 1), zeros(shape.size(), 0), pads(2 * shape.size(), 0);
    switch (pick(0, 5)) {
      case 0:
        return keep(add("expand", {x}, {{"shape", shape}}));
      case 1:
        return keep(add("tile", {x}, {{"repeats", ones}}));
      case 2:
        return keep(add("slice", {x}, {{"starts", zeros}, {"extents", shape}, {"steps", ones}}));
      case 3:
        return keep(add("pad", {x}, {{"pads", pads}}));
      case 4:
        return keep(add("cast", {x}, {{"to", DType::kFloat32}}));
      default:
        if (!shape.empty()) keep(add("concat", {x}, {{"axis", int64_t{0}}}));
        return;
    }
  }

  /// Of the same shape but reversed, or a part.
  void slice() {
    const ir::ValueId x = any();
    const Shape shape = shape_of(x);
    if (shape.empty()) return;
    const size_t d = random_() % shape.size();
    Ints starts(shape.size(), 0), extents = shape, steps(shape.size(), 1);
    if (pick(0, 1) == 0) {
      starts[d] = shape[d] - 1;
      steps[d] = -1;
    } else if (shape[d] > 1) {
      starts[d] = 1;
      extents[d] = shape[d] - 1;
    }
    keep(add("slice", {x}, {{"starts", starts}, {"extents", extents}, {"steps", steps}}));
  }

  /// Of the same shape but shifted, or larger.
  void pad() {
    const ir::ValueId x = any();
    const size_t rank = shape_of(x).size();
    if (rank == 0 || num_elements(shape_of(x)) > 200) return;
    const size_t d = random_() % rank;
    Ints pads(2 * rank, 0);
    pads[d] = 1;
    pads[rank + d] = pick(0, 1) == 0 ? -1 : 1;
    keep(add("pad", {x}, {{"pads", pads}, {"value", 0.5}}));
  }

  /// cast(narrow) -> move -> cast back: the move may run in the narrow type.
  void moved_cast() {
    const ir::ValueId narrow = add("cast", {any()}, {{"to", DType::kFloat16}});
    ir::ValueId wide = add("cast", {narrow}, {{"to", DType::kFloat32}});
    if (pick(0, 3) == 0) keep(wide);
    if (pick(0, 1) == 0) wide = add("transpose", {wide}, {{"perm", shuffled(shape_of(wide).size())}});
    keep(add("reshape", {wide}, {{"shape", Ints{num_elements(shape_of(wide))}}}));
  }

  void constant_chain() {
    const ir::ValueId x = any();
    const Shape shape = shape_of(x);
    const ir::ValueId c = constant(Shape(shape.rbegin(), shape.rend()));
    const ir::ValueId folded = add("tanh", {add("transpose", {c})});
    keep(bounded(add("add", {x, folded})));
  }

  /// The same node twice, the operands of the second swapped where that changes nothing.
  void twin() {
    const ir::ValueId x = any();
    const ir::ValueId y = add("tanh", {x});
    const ir::ValueId a = add("add", {x, y});
    const ir::ValueId b = add("add", {y, x});
    keep(bounded(add("mul", {add("tanh", {a}), add("neg", {b})})));
  }

  /// Nodes that differ in one attribute, in the order of operands that may not swap, or in one constant.
  void near_twin() {
    const ir::ValueId x = any();
    if (shape_of(x).empty()) return;
    const int64_t last = static_cast<int64_t>(shape_of(x).size()) - 1;
    const ir::ValueId a = add("softmax", {x}, {{"axis", int64_t{0}}});
    const ir::ValueId b = add("softmax", {x}, {{"axis", last}});
    const ir::ValueId y = add("tanh", {x});
    const ir::ValueId c = add("sub", {x, y});
    const ir::ValueId d = add("sub", {y, x});
    keep(bounded(add("add", {add("sub", {a, b}), add("sub", {c, add("mul", {d, scalar(2)})})})));
  }

  void reduce() {
    const std::optional<ir::ValueId> x = any_of_rank(2, 5);
    if (!x) return;
    const auto axis = static_cast<int64_t>(random_() % shape_of(*x).size());
    const char* op = pick(0, 1) == 0 ? "reduce_mean" : "reduce_max";
    keep(add(op, {*x},
             {{"axes", Ints{pick(0, 1) == 0 ? axis : axis - static_cast<int64_t>(shape_of(*x).size())}},
              {"keepdims", pick(0, 1)}}));
  }

  std::vector<ir::ValueId> norm_constants(int64_t channels) {
    const Shape shape = {channels};
    return {constant(shape), constant(shape), constant(shape), constant(shape, Fill::kPositive)};
  }

  void normalized() {
    const std::optional<ir::ValueId> x = any_of_rank(2, 4);
    if (!x) return;
    std::vector<ir::ValueId> inputs = norm_constants(shape_of(*x)[1]);
    inputs.insert(inputs.begin(), *x);
    keep(bounded(add("batch_norm", inputs, pick(0, 1) == 0 ? ir::Attrs{} : ir::Attrs{{"epsilon", 0.25}})));
  }

  /// conv (-> batch_norm) (-> relu); now and then the convolution has another reader.
  void convolution() {
    const std::optional<ir::ValueId> x = any_of_rank(4, 4);
    if (!x) return;
    const int64_t channels = shape_of(*x)[1], filters = pick(1, 5), kernel = pick(0, 1) == 0 ? 1 : 3;
    const int64_t pad = kernel / 2;
    std::vector<ir::ValueId> operands = {*x, constant({filters, channels, kernel, kernel})};
    if (pick(0, 1) == 0) operands.push_back(constant({filters}));
    const ir::ValueId conv = add("conv", operands, {{"pads", Ints{pad, pad, pad, pad}}});
    if (pick(0, 3) == 0) keep(bounded(conv));
    std::vector<ir::ValueId> norm = norm_constants(filters);
    norm.insert(norm.begin(), conv);
    const ir::ValueId scaled = add("batch_norm", norm, {{"epsilon", 1e-3}});
    keep(bounded(pick(0, 1) == 0 ? add("relu", {scaled}) : scaled));
  }

  void concat() {
    const ir::ValueId x = any();
    const Shape shape = shape_of(x);
    if (shape.empty() || num_elements(shape) > 200) return;
    const auto axis = static_cast<int64_t>(random_() % shape.size());
    keep(add("concat", {x, add("neg", {x}), constant(shape)},
             {{"axis", pick(0, 1) == 0 ? axis : axis - static_cast<int64_t>(shape.size())}}));
  }

  /// The last value and some others are outputs; the rest may be dead.
  void finish() {
    std::vector<ir::ValueId> outputs = {pool_.back()};
    for (const ir::ValueId id : pool_) {
      const bool made = graph_.value(id).producer != ir::kAbsent;
      if (made && id != pool_.back() && random_() % 5 == 0) outputs.push_back(id);
    }
    graph_.set_outputs(std::move(outputs));
  }

  std::mt19937_64 random_;
  ir::Graph graph_;
  std::vector<Tensor> inputs_;
  std::vector<ir::ValueId> pool_;
};

}  // namespace

RandomGraph make_chain_graph(uint64_t seed, int steps) { return ChainBuilder(seed).build(steps); }

}  // namespace tensormill::ops_cases
