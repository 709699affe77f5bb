/// Plans for all extents, made of a graph whose extents are expressions: formulas of the graph's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/driver/generic_planner.h"
#include "compiler/driver/symbolic.h"
#include "compiler/driver/warn_of_shapes.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"
#include "runtime/exec/graph_executor.h"
#include "tests/driver/support.h"

namespace tensormill::driver_test::symbolic_plans {
namespace {

using testing::HasSubstr;

/// A padded strided convolution, a maximum of windows, a concatenation, a slice that ends at an expression, a
/// reshape by a product, a mean over the image, a product and a softmax.
constexpr const char* kNet = R"(graph "net" dims(H: 33, N: 3) (%x: f32[N,2,H,7]) {
  %w = const f32[4,2,1,1] {0.5, -1.0, 0.25, 2.0, 1.5, -0.5, 0.75, 1.0}
  %m = const f32[4,3] {1.0, 2.0, 3.0, 4.0, 0.5, 0.25, -1.0, -2.0, 1.0, 0.0, 1.0, -3.0}
  %c: f32[N,4,(H + 3)//2,6] = conv(%x, %w) {pads: ints[1, 2, 1, 2], strides: ints[2, 2]} from ["conv"]
  %p: f32[N,4,(H + 3)//2,6] = max_pool(%c) {kernel: ints[3, 1], pads: ints[1, 0, 1, 0]} from ["pool"]
  %both: f32[N,4,2*((H + 3)//2),6] = concat(%c, %p) {axis: 2} from ["concat"]
  %part: f32[N,4,(H + 3)//2,6] = slice(%both) {extents: dims[N, 4, (H + 3)//2, 6], starts: dims[0, 0, (H + 3)//2, 0]} from ["slice"]
  %flat: f32[N*4*((H + 3)//2),6] = reshape(%part) {shape: dims[N*4*((H + 3)//2), 6]} from ["flat"]
  %r: f32[N*4*((H + 3)//2),6] = relu(%flat) from ["relu"]
  %back: f32[N,4,(H + 3)//2,6] = reshape(%r) {shape: dims[N, 4, (H + 3)//2, 6]} from ["back"]
  %mean: f32[N,4] = reduce_mean(%back) {axes: ints[2, 3], keepdims: 0} from ["mean"]
  %y: f32[N,3] = matmul(%mean, %m) from ["fc"]
  %s: f32[N,3] = softmax(%y) {axis: 1} from ["softmax"]
  return %s, %r
}
)";

ir::Variants variants(const std::string& text, std::vector<std::string> symbols, DimShape input) {
  ir::Variants result;
  for (const Dim& dim : input) {
    if (const auto* name = std::get_if<std::string>(&dim)) result.free_dims.push_back(*name);
  }
  result.input_shapes = {std::move(input)};
  result.symbolic = ir::SymbolicModel{parse(text), std::move(symbols)};
  return result;
}

ir::Variants net() { return variants(kNet, {"N", "H"}, {"batch size", int64_t{2}, "H", int64_t{7}}); }

Tensor ramp(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element(i, static_cast<double>(i % 11) - 5);
  return tensor;
}

void expect_reference(exec::GraphExecutor& executor, const ir::Graph& graph) {
  parallel::ThreadPool pool(2);
  std::vector<Tensor> inputs;
  for (const ir::ValueId input : graph.inputs()) inputs.push_back(ramp(graph.value(input).type.shape));
  for (size_t i = 0; i < inputs.size(); ++i)
    executor.set_input(i, {inputs[i].dtype(), inputs[i].shape(), inputs[i].data()});
  executor.run(pool, {.threads = 2});
  const std::vector<Tensor> expected = ir::evaluate_reference(graph, inputs);
  for (size_t k = 0; k < expected.size(); ++k) {
    const Tensor actual = executor.copy_output(k);
    ASSERT_EQ(actual.shape(), expected[k].shape());
    for (int64_t i = 0; i < actual.num_elements(); ++i)
      ASSERT_NEAR(actual.element_as_double(i), expected[k].element_as_double(i), 1e-4) << "element " << i;
  }
}

TEST(Symbolic, OnePlanServesEveryShape) {
  const ir::Variants model = net();
  ASSERT_TRUE(driver::takes_symbolic(*model.symbolic)) << ir::print(model.symbolic->graph);
  const auto result = driver::compile(model, host_options(3));
  EXPECT_EQ(result.generic_refused, "");
  exec::GraphExecutor executor(load(result), {.max_threads = 2});
  for (const auto& [n, h] :
       {std::pair<int64_t, int64_t>{1, 1}, {3, 33}, {2, 2}, {9, 40}, {4, 17}, {1, 255}, {0, 8}})
    expect_reference(executor, ir::bind_symbols(model.symbolic->graph, {{"N", n}, {"H", h}}));
}

/// What no free extent reaches has the kernels, and the tuning records, that it has in a model without free
/// dims.
TEST(Symbolic, NodesOfConstantExtentsHaveTheKernelsOfFixedModels) {
  const std::string fixed = R"((%t: f32[40,24]) {
  %gram: f32[40,40] = matmul(%t, %t) {transpose_b: 1} from ["gram"]
  %s: f32[40,40] = softmax(%gram) {axis: 1} from ["softmax"]
)";
  const ir::Graph alone = parse("graph \"fixed\" " + fixed + "  return %s\n}\n");
  ir::Variants model;
  model.free_dims = {"N"};
  model.input_shapes = {{int64_t{40}, int64_t{24}}, {"N", int64_t{40}}};
  const std::string beside = "(%t: f32[40,24], %x: f32[N,40]) {";
  model.symbolic = ir::SymbolicModel{
      parse("graph \"both\" dims(N: 5) " + beside + fixed.substr(fixed.find('\n')) +
            "  %y: f32[N,40] = matmul(%x, %s) from [\"product\"]\n" + "  return %y, %s\n}\n"),
      {"N"}};
  const auto result = driver::compile(model, host_options(3));
  const auto kernels_of = [](const driver::CompileResult& of) {
    return package::metadata_from_json(of.metadata_json).kernels;
  };
  const std::vector<package::KernelInfo> kernels = kernels_of(result);
  for (const package::KernelInfo& expected : kernels_of(driver::compile(alone, host_options(3)))) {
    const auto found = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const auto& each) { return each.symbol == expected.symbol; });
    ASSERT_NE(found, kernels.end()) << expected.symbol;
    EXPECT_EQ(found->task_key, expected.task_key);
    EXPECT_EQ(found->tuning_reason, expected.tuning_reason);
    EXPECT_EQ(found->origins, expected.origins);
  }
  exec::GraphExecutor executor(load(result), {.max_threads = 2});
  for (const int64_t n : {1, 5, 0, 33}) {
    const ir::Graph graph = ir::bind_symbols(model.symbolic->graph, {{"N", n}});
    expect_reference(executor, graph);
  }
}

TEST(Symbolic, FormulasStandInThePlanAsTexts) {
  const auto result = driver::compile(net(), host_options(3));
  EXPECT_THAT(result.plan_json, HasSubstr(R"("formula":"(H + 1)//2")"));
  const package::Metadata metadata = package::metadata_from_json(result.metadata_json);
  EXPECT_EQ(to_string(metadata.inputs.at(0).shape), "[batch size,2,H,7]");
  EXPECT_EQ(to_string(metadata.outputs.at(0).shape), "[batch size,3]");
}

TEST(Symbolic, TheSamePackageTwice) {
  EXPECT_EQ(package_text(driver::compile(net(), host_options(3))),
            package_text(driver::compile(net(), host_options(3))));
}

/// What an importer asks and what is compiled then are one plan; options that it was not made for, or other
/// names, make another one of the same model.
TEST(Symbolic, APlanThatAPlannerKeptMakesTheSamePackage) {
  for (const char* name : {"N", "batch size"}) {
    for (const int level : {3, 0}) {
      const auto compiled = [&](bool keeps) {
        ir::Variants model = net();
        model.free_dims[0] = name;
        std::get<std::string>(model.input_shapes[0][0]) = name;
        const driver::CompileOptions options = host_options(level);
        driver::GenericPlanner planner(options.target);
        EXPECT_TRUE(keeps ? planner.takes(*model.symbolic) : driver::takes_symbolic(*model.symbolic));
        driver::CompileHooks hooks;
        if (keeps) hooks.planner = &planner;
        return package_text(driver::compile(model, options, hooks));
      };
      EXPECT_EQ(compiled(true), compiled(false)) << name << " at level " << level;
    }
  }
}

TEST(Symbolic, OfConditionsThatNobodyReadsTheNumberIsTold) {
  package::PlanSet set;
  set.generic.emplace();
  set.model.emplace();
  const std::string long_one(1000, 'x');
  EXPECT_THAT(driver::warn_of_shapes(set, "", {"N != 1", long_one, "N != 1", "H >= 2"}),
              HasSubstr("where N != 1, H >= 2, and 1 more conditions hold;"));
  EXPECT_THAT(driver::warn_of_shapes(set, "", {long_one}), HasSubstr("where 1 conditions on extents hold;"));
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back("N != " + std::to_string(i));
  EXPECT_LT(driver::warn_of_shapes(set, "", many).size(), 400u);
}

/// A reshape to rows of 4, which needs a multiple, and windows of 7 of what is left of it.
TEST(Symbolic, ABrokenGuardSaysBothNumbers) {
  const ir::Variants model = variants(R"(graph "net" dims(L: 32) (%x: f32[L]) {
  %r: f32[1,4,L//4] = reshape(%x) {shape: dims[1, 4, L//4]} from ["rows of four"]
  %y: f32[1,4,L//4 - 6] = max_pool(%r) {kernel: ints[7]} from ["windows"]
  return %y
}
)",
                                      {"L"}, {"L"});
  exec::GraphExecutor executor(load(driver::compile(model, host_options(3))), {.max_threads = 1});
  expect_reference(executor, ir::bind_symbols(model.symbolic->graph, {{"L", 36}}));
  for (const auto& [extent, said] :
       {std::pair<int64_t, const char*>{37, "L is 37, the model takes multiples of 4"},
        {24, "7 has to be <= L//4 (6)"}}) {
    const Tensor odd = ramp({extent});
    try {
      executor.set_input(0, {odd.dtype(), odd.shape(), odd.data()});
      FAIL() << extent << " elements are taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidTensor);
      EXPECT_THAT(error.message(), HasSubstr(said));
    }
  }
}

/// What a dim is made of others by a demand is worked out by the executor.
TEST(Symbolic, ADimThatFollowsFromOthersIsNoFreeOne) {
  const ir::Variants model = variants(R"(graph "net" dims(L: 32, M: 64) (%x: f32[L,M]) {
  %t: f32[M,L] = transpose(%x) {perm: ints[1, 0]} from ["turn"]
  %b: f32[2*L,L] = reshape(%t) {shape: dims[2*L, L]} from ["as rows"]
  %y: f32[2*L,L] = relu(%b) from ["relu"]
  return %y
}
)",
                                      {"L", "M"}, {"L", "M"});
  const auto result = driver::compile(model, host_options(3));
  exec::GraphExecutor executor(load(result), {.max_threads = 1});
  expect_reference(executor, ir::bind_symbols(model.symbolic->graph, {{"L", 3}, {"M", 6}}));
}

/// The quotient in the extent of the slice is below 0 for most extents, the sum never.
TEST(Symbolic, PartsOfAKernelsExtentMayBeNegative) {
  const ir::Variants model = variants(R"(graph "net" dims(T: 224) (%x: f32[T]) {
  %part: f32[(max(T, 8) - max(T, 12) + 1)//2 + 2] = slice(%x) {extents: dims[(max(T, 8) - max(T, 12) + 1)//2 + 2], starts: dims[max(T, 12) - 12], steps: ints[2]} from ["part"]
  %y: f32[T + (max(T, 8) - max(T, 12) + 1)//2 + 2] = concat(%x, %part) {axis: 0} from ["both"]
  return %y
}
)",
                                      {"T"}, {"T"});
  ASSERT_TRUE(driver::takes_symbolic(*model.symbolic));
  exec::GraphExecutor executor(load(driver::compile(model, host_options(3))), {.max_threads = 1});
  for (const int64_t extent : {9, 10, 11, 12, 13, 40})
    expect_reference(executor, ir::bind_symbols(model.symbolic->graph, {{"T", extent}}));
}

/// Where one of two extents that broadcast may be 1 and the other is more, the model takes it; only a guard
/// that has been assumed says that there is no such place.
TEST(Symbolic, AGuardIsNoProofOfBeingHarmless) {
  const auto table = std::make_shared<ir::SymbolTable>();
  static_cast<void>(table->add("H", 32));
  table->add_guard({ir::Relation::kEqual, true, te::parse_dim("(H + 15)//16"),
                    te::parse_dim("2*((H + 31)//32)"), "add", false});
  EXPECT_FALSE(driver::is_open(*table));
  const auto other = std::make_shared<ir::SymbolTable>();
  for (const char* name : {"N", "M"}) static_cast<void>(other->add(name, 4));
  other->add_guard({ir::Relation::kEqual, true, te::parse_dim("N"), te::parse_dim("M"), "add", false});
  EXPECT_TRUE(driver::is_open(*other)) << "there are plans of extents of 1";
}

/// A squeeze by a decision that holds at some extents alone leaves others out: it is no plan for all.
TEST(Symbolic, WhatTakesOneExtentAloneIsToldBefore) {
  const ir::Variants model = net();
  static_cast<void>(int64_t{model.symbolic->graph.value(model.symbolic->graph.inputs()[0]).type.shape[2]});
  EXPECT_FALSE(driver::takes_symbolic(*model.symbolic));
}

}  // namespace
}  // namespace tensormill::driver_test::symbolic_plans
