#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "compiler/frontend/pytorch/model.h"
#include "compiler/frontend/pytorch/unpickle.h"
#include "runtime/base/error.h"
#include "tests/readers/fixture_files.h"

namespace tensormill::frontend::pytorch {
namespace {

std::vector<double> values_of(const StoredTensor& tensor) {
  const std::string bytes = contiguous_bytes(tensor, 1 << 20);
  std::vector<double> values;
  const auto width = static_cast<size_t>(scalar_bytes(tensor.dtype));
  for (size_t at = 0; at < bytes.size(); at += width) {
    float real = 0;
    int64_t whole = 0;
    if (tensor.dtype == ScalarType::kFloat32) {
      std::memcpy(&real, bytes.data() + at, sizeof(real));
      values.push_back(real);
    } else {
      std::memcpy(&whole, bytes.data() + at, width);
      values.push_back(static_cast<double>(whole));
    }
  }
  return values;
}

void expect_tensors(const Program& program, const Json& said) {
  for (const auto& [name, tensor] : said.at("tensors").items()) {
    InputSpec input;
    input.target = name;
    const StoredTensor* stored = program.stored(input);
    ASSERT_NE(stored, nullptr) << name;
    EXPECT_EQ(stored->sizes, tensor.at("shape").get<std::vector<int64_t>>()) << name;
    EXPECT_EQ(stored->strides, tensor.at("stride").get<std::vector<int64_t>>()) << name;
    EXPECT_EQ(scalar_name(stored->dtype), tensor.at("dtype").get<std::string>()) << name;
    EXPECT_EQ(values_of(*stored), tensor.at("values").get<std::vector<double>>()) << name;
  }
}

class Pt2FixtureTest : public testing::TestWithParam<const char*> {};

TEST_P(Pt2FixtureTest, HasTheNodesAndTensorsThatTorchSays) {
  const std::string name = GetParam();
  const Json said = fixture_json("pytorch/" + name.substr(0, name.find('_')) + ".json");
  const auto file = fixture("pytorch/" + name + ".pt2");
  const Program program = read_program(file->text());
  EXPECT_EQ(program.schema_major, 8);
  expect_tensors(program, said);
  std::vector<std::string> targets;
  for (const Node& node : program.graph.nodes) targets.push_back(node.target);
  // The writer folds what takes an element of a list into the node that gives the list.
  auto expected = said.at("nodes").get<std::vector<std::string>>();
  std::erase_if(expected,
                [](const std::string& target) { return target.find("getitem") != std::string::npos; });
  ASSERT_EQ(targets.size(), expected.size());
  for (size_t i = 0; i < targets.size(); ++i)
    EXPECT_TRUE(targets[i].ends_with(expected[i])) << targets[i] << ", torch says " << expected[i];
  std::vector<std::string> inputs;
  for (const InputSpec& input : program.inputs)
    if (input.kind == "user_input") inputs.push_back(input.name);
  EXPECT_EQ(inputs, said.at("inputs").get<std::vector<std::string>>());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Pt2FixtureTest,
                         testing::Values("net", "net_torch2_7", "net_torch2_8", "branches"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Pt2Test, FreeDimsAreSymbolsWithRanges) {
  const auto file = fixture("pytorch/net.pt2");
  const Program program = read_program(file->text());
  const TensorMeta& image = program.graph.tensors.at("image");
  ASSERT_EQ(image.sizes.size(), 4u);
  ASSERT_TRUE(image.sizes[0].expr);
  EXPECT_EQ(image.sizes[0].expr->kind, SymExpr::Kind::kSymbol);
  EXPECT_EQ(image.sizes[1].value, 3);
  const SymbolRange& range = program.ranges.at(image.sizes[0].expr->name);
  EXPECT_EQ(range.min, 2);
  EXPECT_EQ(range.max, 64);
  bool has_infinity = false;
  for (const Node& node : program.graph.nodes)
    for (const NamedArgument& input : node.inputs) has_infinity |= input.argument.value == "-Infinity";
  EXPECT_TRUE(has_infinity);
}

TEST(Pt2Test, BranchesAreGraphsAndSizesAreExpressions) {
  const auto file = fixture("pytorch/branches.pt2");
  const Program program = read_program(file->text());
  size_t graphs = 0;
  for (const Node& node : program.graph.nodes)
    for (const NamedArgument& input : node.inputs)
      if (input.argument.graph) graphs += input.argument.graph->nodes.empty() ? 0 : 1;
  EXPECT_EQ(graphs, 2u);
  const std::string& output = program.outputs.front().name;
  const SymDim& length = program.graph.tensors.at(output).sizes.at(0);
  ASSERT_TRUE(length.expr);
  EXPECT_EQ(length.expr->kind, SymExpr::Kind::kCall);
}

TEST(Pt2Test, FactsHaveSymbolsAndParameters) {
  const auto file = fixture("pytorch/net.pt2");
  const FileFacts facts = facts_of(read_program(file->text()));
  ASSERT_EQ(facts.inputs.size(), 1u);
  EXPECT_EQ(facts.inputs[0].name, "image");
  EXPECT_EQ(facts.outputs.size(), 2u);
  EXPECT_EQ(facts.ops.at("aten.relu_.default"), 1);
  EXPECT_EQ(facts.ops.at("aten.conv2d.default"), 1);
}

TEST(SymExprTest, BothFormsAreRead) {
  const auto text_of = [](const char* text) { return to_string(parse_sym_expr(text)); };
  EXPECT_EQ(text_of("2*s0 + 1"), "((2*s0) + 1)");
  EXPECT_EQ(text_of("Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))"),
            "((2*s77) + 1)");
  EXPECT_EQ(text_of("s0 - s1"), "(s0 + (-1*s1))");
  EXPECT_EQ(text_of("FloorDiv(s0, 2)"), "FloorDiv(s0,2)");
  EXPECT_EQ(text_of("s0//2 % 3"), "Mod(FloorDiv(s0,2),3)");
  EXPECT_EQ(text_of("-3**2"), "(-1*Pow(3,2))");
  EXPECT_EQ(text_of("Max(1, s0 + s1)"), "Max(1,(s0 + s1))");
  EXPECT_EQ(text_of("TruncToInt(Mul(Float('1.5', precision=53), ToFloat(Symbol('s7', integer=True))))"),
            "TruncToInt((1.5*ToFloat(s7)))");
  EXPECT_EQ(text_of("TruncToInt(0.5*s7)"), "TruncToInt((0.5*s7))");
  for (const char* wrong : {"", "2*", "(s0", "s0 s1", "f(", "9223372036854775808", "1.5", "Symbol(s0)"})
    EXPECT_THROW(parse_sym_expr(wrong), Error) << wrong;
  EXPECT_THROW(parse_sym_expr(std::string(1000, '(')), Error);
  EXPECT_THROW(parse_sym_expr(std::string(1000, '-')), Error);
}

TEST(UnpickleTest, AStateDictIsRead) {
  const auto file = fixture("pytorch/state_dict.pt");
  wire::ZipFile zip(file->text());
  const auto tensors = read_saved_tensors(zip);
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("weight").sizes, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(tensors.at("bias").dtype, ScalarType::kFloat32);
}

TEST(UnpickleTest, AModuleIsRefusedByWhatItImports) {
  const auto file = fixture("pytorch/module.pt");
  wire::ZipFile zip(file->text());
  try {
    read_saved_tensors(zip);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
    EXPECT_NE(error.message().find("torch.nn.modules.linear.Linear"), std::string::npos) << error.message();
  }
}

TEST(StoredTensorTest, ElementsOutsideOfTheStorageAreRefused) {
  StoredTensor tensor{
      ScalarType::kFloat32, {2, 3}, {3, 1}, 0, std::string_view("0123456789abcdefghijklmn", 24)};
  check_stored(tensor, "whole");
  tensor.offset = 1;
  EXPECT_THROW(check_stored(tensor, "moved"), Error);
  tensor.offset = 0;
  tensor.strides = {int64_t{1} << 62, 1};
  EXPECT_THROW(check_stored(tensor, "wide"), Error);
  tensor.strides = {-1, 1};
  EXPECT_THROW(check_stored(tensor, "backward"), Error);
}

template <typename Read>
int refused_of(const std::string& whole, int count, const Read& read) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = broken_copy(whole, random);
    try {
      read(bytes);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kNotSupported ||
                  error.code() == ErrorCode::kTooLarge)
          << error.message();
      ++refused;
    }
  }
  return refused;
}

TEST(Pt2Test, TwoThousandBrokenCopiesAreRefusedOrRead) {
  // Members have checksums, so that most changes are seen at once; what is behind them is changed in the next
  // test.
  EXPECT_GT(refused_of(std::string(fixture("pytorch/branches.pt2")->text()), 1000,
                       [](const std::string& bytes) { read_program(bytes); }),
            500);
  EXPECT_GT(refused_of(std::string(fixture("pytorch/net_torch2_8.pt2")->text()), 1000,
                       [](const std::string& bytes) { read_program(bytes); }),
            500);
}

}  // namespace
}  // namespace tensormill::frontend::pytorch
