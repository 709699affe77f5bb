#include "compiler/frontend/onnx/turning_numbers.h"

#include <gtest/gtest.h>

#include "tests/frontend/model_bytes.h"

namespace tensormill::frontend::onnx {
namespace {

/// An initializer of these int64 values, each below 2^14.
std::string numbers(const std::string& name, const std::vector<int>& values) {
  std::string data;
  for (const int value : values)
    data += value < 128
                ? std::string(1, static_cast<char>(value))
                : std::string{static_cast<char>((value & 0x7f) | 0x80), static_cast<char>(value >> 7)};
  return field(5, field(1, static_cast<int>(values.size())) + field(2, 7) + field(7, data) + field(8, name));
}

std::string node(const std::string& op, const std::string& operand, const std::string& result) {
  return field(1, field(1, "x") + field(1, operand) + field(2, result) + field(4, op));
}

TEST(TurningNumbersTest, AreWhatExtentsAreComparedWith) {
  const ModelSource source =
      source_of(node("Greater", "a", "p") + node("Min", "b", "q") + node("Add", "c", "r") +
                node("Less", "few", "s") + node("Equal", "many", "t") + node("Less", "x", "u") +
                field(2, "g") + numbers("a", {5000}) + numbers("b", {640, 641}) + numbers("c", {700}) +
                numbers("few", {7}) + numbers("many", {101, 102, 103, 104, 105}) +
                field(11, tensor_value("x", 7, {"N"})) + field(12, field(1, "p")));
  EXPECT_EQ(compared_numbers(source), (std::set<int64_t>{640, 641, 5000}));
}

TEST(TurningNumbersTest, AreFew) {
  std::string nodes, initializers;
  for (int i = 0; i < 20; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    nodes += node("Mod", name, name + "r");
    initializers += numbers(name, {2000 - i});
  }
  const ModelSource source = source_of(nodes + field(2, "g") + initializers +
                                       field(11, tensor_value("x", 7, {"N"})) + field(12, field(1, "ar")));
  const std::set<int64_t> found = compared_numbers(source);
  ASSERT_FALSE(found.empty());
  EXPECT_LT(found.size(), 20u);
  EXPECT_EQ(*found.begin(), 1981);
}

}  // namespace
}  // namespace tensormill::frontend::onnx
