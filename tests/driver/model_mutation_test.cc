/// Models whose graph bytes (all but the weights) are changed at random: most are refused by the import, and
/// what is accepted compiles and runs or fails with an error of the input.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "compiler/frontend/onnx/import.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/package/metadata.h"
#include "tests/driver/support.h"
#include "tests/frontend/model_bytes.h"

namespace tensormill::driver_test {
namespace {

constexpr int kMutations = 1000;
constexpr size_t kCompiled = 50;
constexpr int64_t kRunBytes = int64_t{64} << 20;

using frontend::onnx::ImportOptions;

ir::Graph import_digits(const std::string& bytes) {
  ImportOptions options;
  options.input_shapes["image"] = {Dim(int64_t{1}), Dim(int64_t{1}), Dim(int64_t{28}), Dim(int64_t{28})};
  return frontend::onnx::import_model(frontend::onnx::file_of(bytes), options, ops::standard_ops());
}

/// Positions of the bytes that are no weights: the constants are found by their content.
std::vector<size_t> graph_bytes(const std::string& model) {
  std::vector<bool> weight(model.size(), false);
  const ir::Graph graph = import_digits(model);
  for (const ir::Value& value : graph.values()) {
    if (!value.constant || value.constant->num_bytes() < 32) continue;
    const std::string_view bytes(static_cast<const char*>(value.constant->data()),
                                 value.constant->num_bytes());
    // Equal constants (fresh biases are) stand in the file more than once.
    for (size_t at = model.find(bytes); at != std::string::npos; at = model.find(bytes, at + bytes.size())) {
      std::fill_n(weight.begin() + static_cast<std::ptrdiff_t>(at), bytes.size(), true);
    }
  }
  std::vector<size_t> positions;
  for (size_t i = 0; i < model.size(); ++i) {
    if (!weight[i]) positions.push_back(i);
  }
  return positions;
}

/// One to four bit flips, inserted or dropped bytes.
std::string mutated(const std::string& model, const std::vector<size_t>& positions, std::mt19937_64& random) {
  std::string bytes = model;
  const int edits = 1 + static_cast<int>(random() % 4);
  for (int edit = 0; edit < edits; ++edit) {
    const size_t at = std::min(positions[random() % positions.size()], bytes.size() - 1);
    if (edit == 0 && random() % 8 == 0) {
      bytes.erase(at, 1);
    } else if (edit == 0 && random() % 8 == 0) {
      bytes.insert(at, 1, static_cast<char>(random()));
    } else {
      bytes[at] ^= static_cast<char>(1u << (random() % 8));
    }
  }
  return bytes;
}

/// Compiles and, where it is small enough, runs; only errors of the input may come out.
void compile_and_run(const ir::Graph& graph, int level) {
  driver::CompileOptions options = host_options(level);
  options.verify = driver::VerifyMode::kNone;
  try {
    const driver::CompileResult result = driver::compile(graph, options);
    if (package::metadata_from_json(result.metadata_json).arena_bytes > kRunBytes) return;
    std::vector<Tensor> inputs;
    for (const ir::ValueId input : graph.inputs()) {
      inputs.push_back(Tensor::zeros(graph.value(input).type.dtype, graph.value(input).type.shape));
    }
    EXPECT_EQ(run(load(result), inputs).size(), graph.outputs().size());
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.message();
    EXPECT_NE(error.code(), ErrorCode::kWrongAnswer) << error.message();
  }
}

TEST(ModelMutation, GraphBytesAreMostlyRefusedAndTheRestCompilesOrFailsCleanly) {
  const std::string model = read_file(std::string(TM_SOURCE_DIR) + "/tests/models/digits.onnx");
  const std::vector<size_t> positions = graph_bytes(model);
  ASSERT_GT(positions.size(), 500u);
  ASSERT_LT(positions.size(), model.size() / 10) << "the weights were not found";
  std::mt19937_64 random(11);
  std::vector<ir::Graph> accepted;
  int refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    try {
      accepted.push_back(import_digits(mutated(model, positions, random)));
      ir::verify(accepted.back());
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.message();
      EXPECT_FALSE(error.message().empty());
      ++refused;
    }
  }
  std::cout << positions.size() << " graph bytes; " << refused << " of " << kMutations << " refused\n";
  EXPECT_GE(refused, kMutations * 6 / 10);
  const size_t step = std::max<size_t>(accepted.size() / kCompiled, 1);
  for (size_t i = 0; i < accepted.size(); i += step) {
    SCOPED_TRACE("accepted mutation " + std::to_string(i));
    ASSERT_NO_THROW(compile_and_run(accepted[i], static_cast<int>(i / step % 4)));
  }
}

}  // namespace
}  // namespace tensormill::driver_test
