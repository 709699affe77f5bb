#include <gtest/gtest.h>

#include <random>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "tests/frontend/model_bytes.h"

namespace tensormill::frontend::onnx::mutation_test {
namespace {

constexpr int kMutations = 2000;

ir::Graph import_digits(const std::string& bytes) {
  ImportOptions options;
  options.input_shapes["image"] = {Dim(int64_t{1}), Dim(int64_t{1}), Dim(int64_t{28}), Dim(int64_t{28})};
  return import_model(file_of(bytes), options, ops::standard_ops());
}

std::string digits() { return read_file(std::string(TM_SOURCE_DIR) + "/tests/models/digits.onnx"); }

/// True when the bytes are refused with an error of the input; an accepted model must pass the verifier.
bool is_refused(const std::string& bytes) {
  try {
    ir::verify(import_digits(bytes));
    return false;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.message();
    EXPECT_FALSE(error.message().empty());
    return true;
  }
}

TEST(ImportMutationTest, TheModelItselfImports) {
  const ir::Graph graph = import_digits(digits());
  EXPECT_EQ(graph.inputs().size(), 1u);
  EXPECT_EQ(graph.outputs().size(), 1u);
  EXPECT_EQ(ir::print(graph), ir::print(import_digits(digits())));
}

TEST(ImportMutationTest, TruncatedModelsAreRefused) {
  const std::string bytes = digits();
  std::mt19937_64 random(1);
  for (int i = 0; i < kMutations / 2; ++i) {
    EXPECT_TRUE(is_refused(bytes.substr(0, random() % bytes.size())));
  }
}

TEST(ImportMutationTest, FlippedBitsAreRefusedOrGiveAValidGraph) {
  const std::string bytes = digits();
  std::mt19937_64 random(2);
  int refused = 0;
  for (int i = 0; i < kMutations / 2; ++i) {
    std::string mutated = bytes;
    for (int flips = 0; flips < 4; ++flips) {
      mutated[random() % mutated.size()] ^= static_cast<char>(1u << (random() % 8));
    }
    refused += is_refused(mutated) ? 1 : 0;
  }
  // Most bytes of the file are weights, whose bits may be anything.
  EXPECT_LT(refused, kMutations / 2);
}

TEST(ImportTest, FreeDimsMustBeBound) {
  try {
    import_model(file_of(digits()), {}, ops::standard_ops());
    FAIL() << "a free dim was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kShapeRequired);
  }
}

TEST(ImportTest, UnknownInputAndOutputNamesAreNamed) {
  ImportOptions options;
  options.input_shapes["nothing"] = {Dim(int64_t{1})};
  EXPECT_THROW(import_model(file_of(digits()), options, ops::standard_ops()), Error);
  options.input_shapes.clear();
  options.input_shapes["image"] = {Dim(int64_t{1}), Dim(int64_t{1}), Dim(int64_t{28}), Dim(int64_t{28})};
  options.outputs = {"nothing"};
  EXPECT_THROW(import_model(file_of(digits()), options, ops::standard_ops()), Error);
}

}  // namespace
}  // namespace tensormill::frontend::onnx::mutation_test
