/// The driver's promises: pure, interruptible, observable; graphs without kernels; equal kernels once.
#include "compiler/driver/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "runtime/base/error.h"
#include "runtime/package/metadata.h"
#include "tests/driver/support.h"
#include "tests/expect_error.h"
#include "tests/ops/cases/chain_graph.h"

namespace tensormill::driver_test {
namespace {

using driver::CompileHooks;
using driver::CompileOptions;
using driver::CompileResult;
using testing::HasSubstr;

/// A convolution with its epilogue, a reduction and a product: four kernels at level 3.
constexpr std::string_view kSmallNet = R"(graph "small" (%x: f32[1,2,5,5]) {
  %w = const f32[2,2,1,1] {0.5, -1.0, 0.25, 2.0}
  %half = const f32[] {0.5}
  %m = const f32[2,2] {1.0, 2.0, 3.0, 4.0}
  %c: f32[1,2,5,5] = conv(%x, %w) from ["conv"]
  %r: f32[1,2,5,5] = relu(%c) from ["relu"]
  %h: f32[1,2,5,5] = mul(%r, %half) from ["half"]
  %mean: f32[1,2] = reduce_mean(%h) {axes: ints[2, 3], keepdims: 0} from ["mean"]
  %y: f32[1,2] = matmul(%mean, %m) from ["fc"]
  return %y
}
)";

Tensor ramp(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element(i, static_cast<double>(i % 11) - 5);
  return tensor;
}

package::Metadata metadata_of(const CompileResult& result) {
  return package::metadata_from_json(result.metadata_json);
}

TEST(Compile, TheSameBytesForEveryRepeatAndThreadCount) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const ir::Graph graph = ops_cases::make_chain_graph(seed).graph;
    CompileOptions options = host_options(3);
    const std::string once = package_text(driver::compile(graph, options));
    EXPECT_EQ(package_text(driver::compile(graph, options)), once);
    options.threads = 4;
    EXPECT_EQ(package_text(driver::compile(ops_cases::make_chain_graph(seed).graph, options)), once);
    options.dumps = {"relay", "te", "tir", "ll", "asm"};
    EXPECT_EQ(package_text(driver::compile(graph, options)), once) << "dumps change nothing";
  }
}

TEST(Compile, WorkerCountsOfARunGiveTheSameBits) {
  for (uint64_t seed = 20; seed < 26; ++seed) {
    const ops_cases::RandomGraph random = ops_cases::make_chain_graph(seed);
    const auto package = load(driver::compile(random.graph, host_options(3)));
    const std::vector<Tensor> one = run(package, random.inputs, 1);
    for (const int threads : {2, 5}) {
      const std::vector<Tensor> many = run(package, random.inputs, threads);
      for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(ops_cases::difference(many[i], one[i], 0), "");
    }
  }
}

TEST(Compile, EveryAskedDumpIsThereAndNoOther) {
  CompileOptions options = host_options(3);
  EXPECT_TRUE(driver::compile(parse(kSmallNet), options).dumps.empty());
  options.dumps = {"relay", "te", "tir", "ll", "asm"};
  const CompileResult all = driver::compile(parse(kSmallNet), options);
  ASSERT_EQ(all.dumps.size(), 5u);
  EXPECT_THAT(all.dumps.at("relay"), HasSubstr("# imported\ngraph \"small\""));
  for (const std::string& pass : metadata_of(all).passes) {
    EXPECT_THAT(all.dumps.at("relay"), HasSubstr("# after " + pass + "\n"));
  }
  for (const package::KernelInfo& kernel : metadata_of(all).kernels) {
    for (const char* stage : {"te", "tir", "ll", "asm"})
      EXPECT_THAT(all.dumps.at(stage), HasSubstr(kernel.symbol));
  }
  options.dumps = {"tir"};
  EXPECT_EQ(driver::compile(parse(kSmallNet), options).dumps.size(), 1u);
}

TEST(Compile, LevelsAndDisabledPassesChooseThePasses) {
  for (int level = 0; level <= 4; ++level) {
    CompileOptions options = host_options(level);
    options.disabled_passes = {"fuse_operators"};
    const package::Metadata metadata = metadata_of(driver::compile(parse(kSmallNet), options));
    std::vector<std::string> expected;
    for (const passes::PassInfo& row : passes::all_passes()) {
      // One is for layouts that are asked for.
      if (row.opt_level <= level && row.name != "fuse_operators" && row.name != "convert_layout")
        expected.emplace_back(row.name);
    }
    EXPECT_EQ(metadata.passes, expected);
    EXPECT_EQ(metadata.opt_level, level);
    EXPECT_EQ(metadata.verify, "full");
    EXPECT_GE(metadata.num_steps, level < 3 ? 5 : 1);
  }
  EXPECT_LT(metadata_of(driver::compile(parse(kSmallNet), host_options(1))).num_steps, 5);
}

TEST(Compile, WhatTheUserGetsWrongIsNamed) {
  CompileOptions options = host_options(5);
  expect_error(ErrorCode::kInvalidArgument, "opt level is 5",
               [&] { driver::compile(parse(kSmallNet), options); });
  options = host_options(3);
  options.disabled_passes = {"make_fast"};
  expect_error(ErrorCode::kInvalidArgument, "make_fast", [&] { driver::compile(parse(kSmallNet), options); });
  expect_error(ErrorCode::kInvalidArgument, "expected full, sample or none",
               [] { driver::parse_verify_mode("some"); });
}

TEST(Compile, StopsWhenAskedAndReportsItsProgress) {
  std::vector<driver::Progress> seen;
  std::stop_source stop;
  CompileHooks hooks;
  hooks.stop = stop.get_token();
  hooks.progress = [&](const driver::Progress& progress) { seen.push_back(progress); };
  driver::compile(parse(kSmallNet), host_options(0), hooks);
  int64_t kernels = 0;
  for (const driver::Progress& progress : seen) {
    EXPECT_LE(progress.done, progress.total);
    if (progress.stage != "kernels") continue;
    EXPECT_EQ(progress.done, ++kernels);
    EXPECT_EQ(progress.total, 5);
  }
  EXPECT_EQ(kernels, 5);
  EXPECT_EQ(seen.front().stage, "passes");
  EXPECT_EQ(seen.back().stage, "plan");
  for (const char* at : {"passes", "kernels", "link", "plan"}) {
    std::stop_source now;
    hooks.stop = now.get_token();
    hooks.progress = [&](const driver::Progress& progress) {
      if (progress.stage == at) now.request_stop();
    };
    if (std::string(at) == "plan") {
      EXPECT_NO_THROW(driver::compile(parse(kSmallNet), host_options(0), hooks)) << "nothing is left to stop";
    } else {
      expect_error(ErrorCode::kCancelled, "cancelled",
                   [&] { driver::compile(parse(kSmallNet), host_options(0), hooks); });
    }
  }
}

TEST(Compile, HugeTensorsAreNotMadeToVerifyAKernel) {
  CompileOptions options = host_options(3);
  options.verify = driver::VerifyMode::kSample;
  const ir::Graph graph = parse(R"(graph "huge" (%x: f32[1000000000]) {
  %y: f32[1000000000] = relu(%x)
  return %y
}
)");
  const package::Metadata metadata = metadata_of(driver::compile(graph, options));
  ASSERT_EQ(metadata.kernels.size(), 1u);
  EXPECT_EQ(metadata.kernels[0].verified, "not_run");
  EXPECT_EQ(metadata_of(driver::compile(parse(kSmallNet), options)).kernels[0].verified, "sample");
}

TEST(Compile, GraphsWithoutKernelsRun) {
  const ir::Graph graph = parse(R"(graph "moves" (%x: f32[2,3], %unused: i64[1]) {
  %c = const f32[2] {1.5, -2.0}
  %flat: f32[6] = reshape(%x) {shape: ints[6]}
  %same: f32[2,3] = identity(%x)
  %n: f32[2] = neg(%c)
  return %flat, %x, %c, %same, %n
}
)");
  const std::vector<Tensor> inputs = {ramp({2, 3}), Tensor::zeros(DType::kInt64, {1})};
  const std::vector<Tensor> expected = ir::evaluate_reference(graph, inputs);
  for (int level = 0; level <= 4; ++level) {
    const std::vector<Tensor> actual = run(load(driver::compile(graph, host_options(level))), inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(ops_cases::difference(actual[i], expected[i], 0), "")
          << "output " << i << ", level " << level;
    }
  }
}

TEST(Compile, EqualKernelsAreCompiledOnceAndKeepTheirOwnConstants) {
  const ir::Graph graph = parse(R"(graph "twice" (%x: f32[3,4]) {
  %a = const f32[4] {1.0, 2.0, 3.0, 4.0}
  %b = const f32[4] {-1.0, 0.5, 7.0, 0.0}
  %c = const f32[] {2.0}
  %d = const f32[] {3.0}
  %p: f32[3,4] = add(%x, %a)
  %q: f32[3,4] = add(%x, %b)
  %r: f32[3,4] = mul(%x, %c)
  %s: f32[3,4] = mul(%x, %d)
  return %p, %q, %r, %s
}
)");
  const CompileResult result = driver::compile(graph, host_options(3));
  EXPECT_EQ(metadata_of(result).num_steps, 4);
  EXPECT_EQ(metadata_of(result).kernels.size(), 3u) << "one add, and a mul for each immediate";
  const std::vector<Tensor> inputs = {ramp({3, 4})};
  const std::vector<Tensor> expected = ir::evaluate_reference(graph, inputs);
  const std::vector<Tensor> actual = run(load(result), inputs);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ops_cases::difference(actual[i], expected[i], 0), "");
}

TEST(Compile, OutputsKeepTheImportedNames) {
  for (int level = 0; level <= 4; ++level) {
    const package::Metadata metadata = metadata_of(driver::compile(parse(kSmallNet), host_options(level)));
    ASSERT_EQ(metadata.outputs.size(), 1u);
    EXPECT_EQ(metadata.outputs[0].name, "y");
    EXPECT_EQ(metadata.inputs[0].name, "x");
    EXPECT_EQ(metadata.host_steps, 0);
  }
}

}  // namespace
}  // namespace tensormill::driver_test
