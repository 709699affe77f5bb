/// tests/golden/graphs: graph text before and after the named passes. Whatever the text says, the values must
/// be the same.
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "runtime/base/error.h"
#include "tests/golden/golden_file.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::golden {
namespace {

/// "a, b" as rows of passes.def.
std::vector<const passes::PassInfo*> passes_of(const GoldenFile& file) {
  std::vector<const passes::PassInfo*> rows;
  std::string rest = file.settings.at("pass");
  while (!rest.empty()) {
    const size_t comma = rest.find(", ");
    const std::string name = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 2);
    for (const passes::PassInfo& row : passes::all_passes()) {
      if (row.name == name) rows.push_back(&row);
    }
    if (rows.empty() || rows.back()->name != name) {
      throw Error(ErrorCode::kInvalidArgument, file.path + ": no pass " + name);
    }
  }
  return rows;
}

class Graphs : public testing::TestWithParam<std::string> {};

TEST_P(Graphs, BecomeWhatTheFileSays) {
  const GoldenFile file = read_golden(GetParam());
  const ir::Graph before = ir::parse_graph(file.before, ops::standard_ops());
  ir::Graph after = before;
  const passes::PassContext context = {{.vector_bits = 256, .vector_registers = 16, .fma = true}, 3};
  for (const passes::PassInfo* pass : passes_of(file)) after = pass->run(after, context);
  ASSERT_NO_THROW(ir::verify(after));
  expect_golden(file, ir::print(after));
  std::vector<Tensor> inputs;
  for (const ir::ValueId input : before.inputs()) {
    const ir::ValueType& type = before.value(input).type;
    inputs.push_back(ops_cases::make_tensor({.shape = type.shape}, type.dtype, inputs.size() + 1));
  }
  const std::vector<Tensor> expected = ir::evaluate_reference(before, inputs);
  const std::vector<Tensor> actual = ir::evaluate_reference(after, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(ops_cases::difference(actual[i], expected[i], is_float(expected[i].dtype()) ? 1e-5 : 0), "");
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}
INSTANTIATE_TEST_SUITE_P(Golden, Graphs, testing::ValuesIn(golden_files("graphs")), name_of);

}  // namespace
}  // namespace tensormill::golden
