/// tests/golden/loops: loop IR before and after one lowering pass. The interpreter runs both on the same
/// data.
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/lower/passes.h"
#include "compiler/te/interpret.h"
#include "compiler/te/text.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"
#include "tests/golden/golden_file.h"
#include "tests/ops/cases/cases.h"

namespace tensormill::golden::loop_golden_test {
namespace {

using LowerPass = te::Function (*)(const te::Function&, const target::Target&);

struct Row {
  std::string_view name;
  LowerPass run;
  te::Level level;
};

constexpr Row kRows[] = {
#define TM_LOWER_PASS(name, function, level, meaning) {#name, &lower::function, te::Level::level},
#include "compiler/lower/lower_passes.def"
#undef TM_LOWER_PASS
};

const Row& pass_of(const GoldenFile& file) {
  for (const Row& row : kRows) {
    if (row.name == file.settings.at("pass")) return row;
  }
  throw Error(ErrorCode::kInvalidArgument, file.path + ": no lowering pass " + file.settings.at("pass"));
}

/// Both sides keep their parameters' sizes, though a pass may flatten their shapes.
std::vector<Tensor> arguments_of(const te::Function& function) {
  std::vector<Tensor> arguments;
  for (const te::Parameter& parameter : function.parameters) {
    Shape shape;
    for (const te::Expr& extent : parameter.buffer->shape) shape.push_back(*te::as_int(extent));
    arguments.push_back(
        ops_cases::make_tensor({.shape = shape}, parameter.buffer->dtype, arguments.size() + 1));
  }
  return arguments;
}

std::vector<Tensor> results_of(const te::Function& function) {
  std::vector<Tensor> arguments = arguments_of(function);
  EXPECT_EQ(te::interpret(function, arguments, {}, 3).code, 0);
  return arguments;
}

/// Parallel loops as serial ones: what a function means, also where it nests them.
std::string serial(std::string text) {
  for (size_t at = text.find("parallel "); at != std::string::npos; at = text.find("parallel ", at)) {
    text.replace(at, 9, "for ");
  }
  return text;
}

class Loops : public testing::TestWithParam<std::string> {};

TEST_P(Loops, BecomeWhatTheFileSays) {
  const GoldenFile file = read_golden(GetParam());
  const target::Target target = target::parse_target(file.settings.at("target"), target::Target{});
  const te::Function before = te::parse_function(file.before);
  EXPECT_EQ(te::print(before), file.before) << "the text is not in its printed form";
  const Row& pass = pass_of(file);
  const te::Function after = pass.run(before, target);
  ASSERT_NO_THROW(te::verify(after, pass.level));
  expect_golden(file, te::print(after));
  const std::vector<Tensor> expected = results_of(te::parse_function(serial(file.before)));
  const std::vector<Tensor> actual = results_of(after);
  for (size_t i = 0; i < expected.size(); ++i) {
    // Only fused multiply-adds round otherwise.
    const double tolerance = pass.name == "legalize" && is_float(expected[i].dtype()) ? 1e-6 : 0;
    EXPECT_EQ(ops_cases::difference(actual[i].reshaped(expected[i].shape()), expected[i], tolerance), "");
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}
INSTANTIATE_TEST_SUITE_P(Golden, Loops, testing::ValuesIn(golden_files("loops")), name_of);

}  // namespace
}  // namespace tensormill::golden::loop_golden_test
