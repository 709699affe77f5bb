/// Pointwise convolutions with what feeds them, by bands of rows: machine code against the interpreter of the
/// same loop IR, bit for bit, and against the reference of the operators one by one.
#include <gtest/gtest.h>

#include "compiler/ir/op_def.h"
#include "compiler/lower/lower.h"
#include "compiler/ops/ops.h"
#include "compiler/schedule/schedule.h"
#include "compiler/te/interpret.h"
#include "tests/codegen/support.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::codegen_test {
namespace {

using Ints = std::vector<int64_t>;

/// Operators one behind the other, as the graph for the reference and as one program.
class Chain {
public:
  Chain() : graph_(ops::standard_ops()) {}

  size_t input(const Shape& shape) {
    const std::string name = "p" + std::to_string(program_.inputs.size());
    program_.inputs.push_back(te::placeholder(name, DType::kFloat32, shape));
    graph_.add_input(name, {DType::kFloat32, shape});
    tensors_.push_back(program_.inputs.back());
    inputs_.push_back(seeded(shape, inputs_.size()));
    return tensors_.size() - 1;
  }

  size_t add(const std::string& op, const std::vector<size_t>& args, const ir::Attrs& attrs = {}) {
    ir::ComputeContext context{attrs, {}, {}, {}, op};
    std::vector<ir::ValueId> values;
    for (const size_t arg : args) {
      values.push_back(static_cast<ir::ValueId>(arg));
      context.inputs.push_back(tensors_[arg]);
      context.input_types.push_back(graph_.value(values.back()).type);
    }
    const ir::ValueId made = graph_.add_node(op, values, attrs, {})[0];
    context.output_types.push_back(graph_.value(made).type);
    tensors_.push_back(graph_.ops().get(op).compute(context)[0]);
    EXPECT_EQ(static_cast<size_t>(made), tensors_.size() - 1);
    return tensors_.size() - 1;
  }

  /// Checks the chain that ends with its last operator; returns its schedule.
  std::string check(const target::Target& target) {
    graph_.set_outputs({static_cast<ir::ValueId>(tensors_.size() - 1)});
    program_.outputs = {tensors_.back()};
    const schedule::Schedule steps = schedule::default_schedule(program_, target);
    const te::Function function = lower::lower(schedule::apply(program_, steps, "kernel"), target);
    const std::vector<Tensor> expected = ir::evaluate_reference(graph_, inputs_);
    std::vector<Tensor> interpreted, computed;
    for (const Tensor& tensor : inputs_) interpreted.push_back(tensor.clone());
    interpreted.push_back(Tensor::zeros(DType::kFloat32, expected[0].shape()));
    for (const Tensor& tensor : interpreted) computed.push_back(tensor.clone());
    EXPECT_EQ(te::interpret(function, interpreted).code, 0);
    EXPECT_EQ(Kernel(function, target).run(computed, {}, 2).code, 0);
    EXPECT_EQ(difference(computed.back(), interpreted.back()), "");
    EXPECT_EQ(ops_cases::difference(computed.back(), expected[0], 2e-5), "");
    return schedule::print(steps);
  }

private:
  static Tensor seeded(const Shape& shape, size_t seed) {
    Tensor tensor(DType::kFloat32, shape);
    uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 1;
    for (float& value : tensor.values<float>()) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
    }
    return tensor;
  }

  ir::Graph graph_;
  te::Program program_;
  std::vector<te::Tensor> tensors_;
  std::vector<Tensor> inputs_;
};

/// The feed may take this much.
target::Target with_feed(int64_t bytes) {
  target::Target target = parse("llvm -mcpu=core-avx2 -num-cores=2");
  target.facts.l1d_bytes = 2 * bytes;
  target.facts.l2_bytes = 8 * bytes;
  return target;
}

struct Separable {
  Shape x;  ///< [N, blocks, rows, columns, lanes]
  int64_t out_blocks, stride;
  bool bias = true;
};

std::string check_separable(const Separable& layer, const target::Target& target) {
  Chain chain;
  const int64_t blocks = layer.x[1], lanes = layer.x[4];
  const size_t x = chain.input(layer.x);
  std::vector<size_t> depthwise = {x, chain.input({blocks, 3, 3, lanes})};
  std::vector<size_t> pointwise = {0, chain.input({layer.out_blocks, blocks, 1, 1, lanes, lanes})};
  if (layer.bias) depthwise.push_back(chain.input({blocks * lanes}));
  if (layer.bias) pointwise.push_back(chain.input({layer.out_blocks * lanes}));
  pointwise[0] = chain.add("conv_depthwise", depthwise,
                           {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{layer.stride, layer.stride}}});
  if (layer.bias) pointwise[0] = chain.add("relu", {pointwise[0]});
  const ir::Attrs some = {{"channels", blocks * lanes - 3}};
  const size_t sums = chain.add("conv_blocked", pointwise, layer.bias ? some : ir::Attrs{});
  if (layer.bias) chain.add("relu", {sums});
  return chain.check(target);
}

bool has(const std::string& schedule, const std::string& step) {
  return schedule.find(step) != std::string::npos;
}

/// A row of the feed has 7 x 2 x 8 floats, 448 bytes; the root's tiles are split once more.
TEST(Bands, RowsOfADepthwiseConvolutionFitAPartOfTheCache) {
  const Separable layer{{1, 2, 12, 7, 8}, 3, 1};
  const auto rows = [](const std::string& schedule, int64_t count) {
    return has(schedule, "i2+i3 " + std::to_string(7 * count) + "\n");
  };
  EXPECT_TRUE(rows(check_separable(layer, with_feed(1024)), 2));
  EXPECT_TRUE(rows(check_separable(layer, with_feed(128)), 1)) << "less than a row";
  EXPECT_TRUE(rows(check_separable(layer, with_feed(16384)), 6)) << "half of the image for each core";
}

/// Seven rows make no halves: each core computes the whole feed for its part of the 9 blocks.
TEST(Bands, CoresShareTheChannelsWhereRowsMakeNoEqualParts) {
  const Separable layer{{1, 3, 7, 7, 8}, 9, 1};
  const std::string schedule = check_separable(layer, with_feed(1024));
  EXPECT_TRUE(has(schedule, " i1.o ")) << schedule;
  EXPECT_TRUE(has(schedule, "parallel s5 i0+i1.o.o\n")) << schedule;
}

TEST(Bands, AnyDepthwiseConvolution) {
  const target::Target target = with_feed(1024);
  for (const Separable& layer :
       {Separable{{1, 1, 9, 5, 8}, 1, 1}, Separable{{2, 2, 8, 11, 8}, 5, 2}, Separable{{1, 3, 1, 1, 8}, 2, 1},
        Separable{{3, 1, 7, 14, 8}, 2, 2}, Separable{{1, 2, 4, 33, 8}, 2, 1, false}}) {
    EXPECT_TRUE(has(check_separable(layer, target), "compute_at s"));
  }
}

TEST(Bands, ChannelsOfOtherTensors) {
  for (const int64_t rows : {6, 7}) {
    Chain chain;
    const size_t a = chain.input({1, 2, rows, 5, 8}), b = chain.input({1, 1, rows, 5, 8});
    const size_t weights = chain.input({2, 2, 1, 1, 8, 8});
    const size_t moved =
        chain.add("gather_channels", {a, b}, {{"channels", Ints{3, 4, 5, 9, 20, 21, 16, 0, 2}}});
    chain.add("conv_blocked", {moved, weights}, {{"channels", int64_t{9}}});
    EXPECT_TRUE(has(chain.check(with_feed(512)), "compute_at s0 "));
  }
}

}  // namespace
}  // namespace tensormill::codegen_test
