/// What passes believe of values that nobody has computed yet: no value of a random graph leaves its
/// interval, and none that is said to be whole has a fraction.
#include "compiler/passes/values/value_facts.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"

namespace tensormill {
namespace {

class RandomGraph {
public:
  explicit RandomGraph(uint64_t seed) : random_(seed), graph_(ops::standard_ops()) {
    for (const DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kFloat32,
                              DType::kFloat16, DType::kBool, DType::kInt64})
      values_.push_back(graph_.add_input("x" + std::to_string(values_.size()), {dtype, {2, 3}}));
    for (int i = 0; i < 4; ++i) add_constant();
    for (int i = 0; i < 40; ++i) add_node();
    graph_.set_outputs({values_.back()});
  }

  const ir::Graph& graph() const { return graph_; }

  Tensor input(ir::ValueId id) {
    const ir::ValueType& type = graph_.value(id).type;
    Tensor tensor(type.dtype, type.shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (is_float(type.dtype)) {
        static constexpr double kSpecial[] = {0.5,  -0.5,  1.5,    2.5,     1e9,
                                              -1e9, 60000, 2049.5, 0x1p-14, 16777217};
        const uint64_t choice = random_() % 20;
        tensor.set_element(i,
                           choice < 10 ? kSpecial[choice] : static_cast<double>(random_() % 4096) / 16 - 128);
      } else {
        const uint64_t choice = random_() % 4;
        const auto any = static_cast<int64_t>(random_());
        tensor.set_element_int(i, choice == 0 ? INT64_MAX : choice == 1 ? INT64_MIN : any);
      }
    }
    return tensor;
  }

private:
  ir::ValueId any() { return values_[random_() % values_.size()]; }
  DType dtype(ir::ValueId id) const { return graph_.value(id).type.dtype; }

  void add_constant() {
    static constexpr DType kTypes[] = {DType::kFloat32, DType::kInt32, DType::kInt8, DType::kFloat16,
                                       DType::kUInt32};
    const DType type = kTypes[random_() % 5];
    Tensor tensor(type, random_() % 2 == 0 ? Shape{} : Shape{3});
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const double whole = static_cast<double>(random_() % 300) - 150;
      tensor.set_element(i, is_float(type) && random_() % 2 == 0 ? whole + 0.5 : whole);
    }
    values_.push_back(graph_.add_constant(graph_.unique_name("c"), tensor));
  }

  void add_node() {
    static constexpr const char* kOps[] = {"cast",  "cast", "cast", "sub",  "sub",       "add",     "round",
                                           "floor", "ceil", "mul",  "relu", "transpose", "reshape", "neg"};
    const std::string op = kOps[random_() % std::size(kOps)];
    const ir::ValueId x = any();
    if (graph_.value(x).type.shape.size() != 2) return;
    if (op == "cast") {
      static constexpr DType kTypes[] = {DType::kFloat32, DType::kInt32, DType::kInt8,   DType::kUInt8,
                                         DType::kFloat16, DType::kInt16, DType::kFloat64};
      return keep(graph_.add_node(op, {x}, {{"to", kTypes[random_() % std::size(kTypes)]}}));
    }
    if (op == "transpose") return keep(graph_.add_node(op, {x}, {{"perm", std::vector<int64_t>{0, 1}}}));
    if (op == "reshape") return keep(graph_.add_node(op, {x}, {{"shape", Shape{2, 3}}}));
    const bool is_binary = op == "sub" || op == "add" || op == "mul";
    if (dtype(x) == DType::kBool || (!is_binary && !is_float(dtype(x)) && op != "neg" && op != "relu"))
      return;
    if (!is_binary) return keep(graph_.add_node(op, {x}));
    std::vector<ir::ValueId> alike;
    for (const ir::ValueId value : values_) {
      if (dtype(value) == dtype(x)) alike.push_back(value);
    }
    keep(graph_.add_node(op, {x, alike[random_() % alike.size()]}));
  }

  void keep(const std::vector<ir::ValueId>& made) { values_.push_back(made[0]); }

  std::mt19937_64 random_;
  ir::Graph graph_;
  std::vector<ir::ValueId> values_;
};

TEST(ValueFacts, HoldForWhateverIsComputed) {
  int64_t intervals = 0, whole = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomGraph random(seed);
    const ir::Graph& graph = random.graph();
    for (int run = 0; run < 3; ++run) {
      std::vector<Tensor> inputs;
      for (const ir::ValueId id : graph.inputs()) inputs.push_back(random.input(id));
      const std::vector<Tensor> values = ir::evaluate_all_values(graph, inputs);
      for (size_t id = 0; id < values.size(); ++id) {
        const auto value = static_cast<ir::ValueId>(id);
        const std::optional<passes::Interval> interval = passes::interval_of(graph, value);
        const bool is_whole = passes::is_whole(graph, value);
        intervals += interval ? 1 : 0;
        whole += is_whole ? 1 : 0;
        for (int64_t i = 0; i < values[id].num_elements(); ++i) {
          const double element = values[id].element_as_double(i);
          if (interval) {
            ASSERT_LE(interval->low, element) << "seed " << seed << " value " << graph.value(value).name;
            ASSERT_GE(interval->high, element) << "seed " << seed << " value " << graph.value(value).name;
          }
          if (is_whole && std::isfinite(element)) {
            ASSERT_EQ(element, std::floor(element))
                << "seed " << seed << " value " << graph.value(value).name;
          }
        }
      }
    }
  }
  EXPECT_GT(intervals, 10'000) << "the graphs say nothing";
  EXPECT_GT(whole, 4'000);
}

TEST(ValueFacts, ARoundedValuePlusAFractionIsNotWhole) {
  ir::Graph graph(ops::standard_ops());
  const ir::ValueId x = graph.add_input("x", {DType::kFloat32, {4}});
  const ir::ValueId rounded = graph.add_node("round", {x})[0];
  const auto plus = [&](ir::ValueId y) { return graph.add_node("add", {rounded, y})[0]; };
  const auto number = [&](float value) {
    return graph.add_constant(graph.unique_name("c"), Tensor::from<float>({}, std::vector<float>{value}));
  };
  const ir::ValueId zero_point =
      graph.add_node("cast", {graph.add_input("z", {DType::kInt8, {}})}, {{"to", DType::kFloat32}})[0];
  EXPECT_TRUE(passes::is_whole(graph, rounded));
  EXPECT_TRUE(passes::is_whole(graph, plus(number(-3))));
  EXPECT_TRUE(passes::is_whole(graph, plus(zero_point)));
  EXPECT_FALSE(passes::is_whole(graph, plus(number(0.5))));
  EXPECT_FALSE(passes::is_whole(graph, plus(x)));
  EXPECT_FALSE(passes::is_whole(graph, x));
}

}  // namespace
}  // namespace tensormill
