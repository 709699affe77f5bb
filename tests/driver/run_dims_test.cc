/// Plans whose extents a run decides: steps in segments, each bound to the numbers that the one before left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/driver/generic_planner.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/patch.h"
#include "compiler/ir/run_dims.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/package/segments.h"
#include "tests/driver/support.h"
#include "tests/expect_error.h"

namespace tensormill::driver_test::run_dims {
namespace {

/// The elements above 0, squared; and as many numbers as their sum says, which are those below 3 again.
constexpr const char* kNet =
    R"text(graph "kept" dims(N: 32) run_dims (run0: 5 from 0 to "N", run1: 9, run2: 3 from 0 to "max(run1, 0)") (%x: f32[N]) {
  %zero = const f32[1] {0.0}
  %three = const i64[1] {3}
  %above: bool[N] = greater(%x, %zero) from ["above"]
  %places: i64[1,N], %count: i64[1] = find_nonzero(%above) from ["places"]
  %kept_count: i64[1] = bind_extents(%count) {extents: dims[run0]} from ["places"]
  %there: i64[1,run0] = slice(%places) {extents: dims[1, run0], starts: dims[0, 0], steps: ints[1, 1]} from ["places"]
  %flat: i64[run0] = reshape(%there) {shape: dims[run0]} from ["flat"]
  %kept: f32[run0] = gather(%x, %flat) {axis: 0} from ["kept"]
  %squares: f32[run0] = mul(%kept, %kept) from ["squares"]
  %sum: f32[1] = reduce_sum(%x) {axes: ints[0], keepdims: 1} from ["sum"]
  %length: i64[1] = cast(%sum) {to: i64} from ["length"]
  %steps_count: i64[1] = bind_extents(%length) {extents: dims[run1]} from ["length"]
  %steps: i64[max(run1, 0)] = iota() {extent: dim max(run1, 0)} from ["steps"]
  %few: bool[max(run1, 0)] = less(%steps, %three) from ["few"]
  %few_places: i64[1,max(run1, 0)], %few_count: i64[1] = find_nonzero(%few) from ["few places"]
  %bound_few: i64[1] = bind_extents(%few_count) {extents: dims[run2]} from ["few places"]
  %last: i64[1,run2] = slice(%few_places) {extents: dims[1, run2], starts: dims[0, 0], steps: ints[1, 1]} from ["few places"]
  return %squares, %last, %steps
}
)text";

ir::Variants net() {
  ir::Variants result;
  result.free_dims = {"N"};
  result.input_shapes = {{"N"}};
  result.symbolic = ir::SymbolicModel{parse(kNet), {"N"}};
  return result;
}

void run(exec::GraphExecutor& executor, const std::vector<float>& x) {
  parallel::ThreadPool pool(2);
  executor.set_input(0, {DType::kFloat32, {static_cast<int64_t>(x.size())}, x.data()});
  executor.run(pool, {.threads = 2});
}

void expect_right(exec::GraphExecutor& executor, const std::vector<float>& x) {
  run(executor, x);
  std::vector<float> squares;
  float sum = 0;
  for (const float value : x) {
    if (value > 0) squares.push_back(value * value);
    sum += value;
  }
  const auto steps = static_cast<int64_t>(std::max(sum, 0.0f)), few = std::min<int64_t>(steps, 3);
  ASSERT_EQ(executor.output(0).shape, Shape{static_cast<int64_t>(squares.size())});
  ASSERT_EQ(executor.output(1).shape, (Shape{1, few}));
  ASSERT_EQ(executor.output(2).shape, Shape{steps});
  const Tensor kept = executor.copy_output(0), last = executor.copy_output(1), all = executor.copy_output(2);
  for (size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(kept.values<float>()[i], squares[i]);
  for (int64_t i = 0; i < few; ++i) EXPECT_EQ(last.element_as_int(i), i);
  for (int64_t i = 0; i < steps; ++i) EXPECT_EQ(all.element_as_int(i), i);
}

TEST(RunDims, AreBoundInTheRun) {
  const ir::Variants model = net();
  ASSERT_TRUE(driver::takes_symbolic(*model.symbolic));
  const auto result = driver::compile(model, host_options(3));
  EXPECT_EQ(result.generic_refused, "");
  exec::GraphExecutor executor(load(result), {.max_threads = 2});
  // The same numbers again, others, none, more than in any run before, other free dims.
  for (const std::vector<float>& x : {std::vector<float>{1, -2, 3, 4},
                                      {1, -2, 3, 4},
                                      {5, -2, 3, -1},
                                      {-1, -2, -3, -4},
                                      {9, 30, 80, 900},
                                      {0, 0},
                                      {},
                                      std::vector<float>(70, 2.0f),
                                      {1, -2, 3, 4}})
    expect_right(executor, x);
}

TEST(RunDims, ExtentsPastALimitNameTheNode) {
  exec::GraphExecutor executor(load(driver::compile(net(), host_options(3))), {.max_threads = 1});
  expect_error(ErrorCode::kMemoryBudget, "length", [&] { run(executor, {1e15f, 1}); });
  expect_right(executor, {1, 2});
}

TEST(RunDims, SegmentsRunInWhatThoseBeforeHaveLeft) {
  // The places of the first segment have 800 kB, and nothing reads them where as many steps are made.
  constexpr int64_t kExtent = 100'000, kEight = 8 * kExtent;
  std::vector<float> x(kExtent, 0.0f);
  x.back() = static_cast<float>(kExtent);
  constexpr int64_t kFirst = kExtent * (4 + 1) + kEight, kSecond = kExtent + 2 * kEight, kSmall = 20'000;
  const auto package = load(driver::compile(net(), host_options(3)));
  exec::GraphExecutor executor(package, {.memory_budget = kFirst + kSecond - kEight + kSmall});
  expect_right(executor, x);
  // What was large is kept, and is no room for less or for others.
  for (const std::vector<float>& other : {std::vector<float>{1, -2, 3, 4}, x, std::vector<float>(70, 2.0f)})
    expect_right(executor, other);
}

TEST(RunDims, OutputsHaveDimsWithoutNames) {
  const package::Metadata metadata =
      package::metadata_from_json(driver::compile(net(), host_options(3)).metadata_json);
  EXPECT_EQ(metadata.outputs.at(0).shape, DimShape{std::string()});
  EXPECT_EQ(metadata.outputs.at(1).shape, (DimShape{int64_t{1}, std::string()}));
}

TEST(RunDims, AreInTheGraphsText) {
  const ir::Graph graph = parse(kNet);
  EXPECT_EQ(ir::print(parse(ir::print(graph))), ir::print(graph));
  ASSERT_EQ(graph.symbols()->run_time_symbols().size(), 3U);
  EXPECT_EQ(graph.symbols()->run_time_symbols()[0].high, te::Dim::symbol("N"));
  EXPECT_EQ(graph.symbols()->run_time_symbols()[1].low, std::nullopt);
}

TEST(RunDims, SegmentsAreAsFewAsTheSymbolsAllow) {
  const ir::Graph graph = ir::in_segments(ir::remove_dead(parse(kNet)));
  EXPECT_EQ(ir::run_symbols(graph), (std::vector<std::string>{"run0", "run1", "run2"}));
  std::string kinds;
  for (const ir::Node& node : graph.nodes()) {
    const char kind = ir::has_effect(node) ? 'b' : '.';
    if (kinds.empty() || kinds.back() != kind) kinds += kind;
  }
  EXPECT_EQ(kinds, ".b.b.") << "run0 and run1 are bound together";
}

/// A running sum of the elements above 0.
constexpr const char* kLoop =
    R"text(graph "summed" dims(N: 32) run_dims (run0: 5 from 0 to "N") (%x: f32[N]) {
  %zero = const f32[1] {0.0}
  %start = const f32[] {0.0}
  %above: bool[N] = greater(%x, %zero) from ["above"]
  %places: i64[1,N], %count: i64[1] = find_nonzero(%above) from ["places"]
  %bound: i64[1] = bind_extents(%count) {extents: dims[run0]} from ["places"]
  %there: i64[1,run0] = slice(%places) {extents: dims[1, run0], starts: dims[0, 0], steps: ints[1, 1]} from ["places"]
  %flat: i64[run0] = reshape(%there) {shape: dims[run0]} from ["flat"]
  %kept: f32[run0] = gather(%x, %flat) {axis: 0} from ["kept"]
  %number: i64[], %sum: f32[], %row: f32[] = loop_begin(%start, %kept) {carried: 1, condition: 0, loop: 0, max_trips: 0} from ["loop"]
  %next: f32[] = add(%sum, %row) from ["next"]
  %last: f32[], %sums: f32[run0], %trips: i64[1] = loop_end(%number, %next, %next) {carried: 1, condition: 0, counted: 0, loop: 0, trips: dim run0} from ["loop"]
  return %last, %sums
}
)text";

TEST(RunDims, ALoopIsInOneSegment) {
  ir::Variants model = net();
  model.symbolic = ir::SymbolicModel{parse(kLoop), {"N"}};
  const ir::Graph graph = ir::in_segments(model.symbolic->graph);
  std::string kinds;
  for (const ir::Node& node : graph.nodes()) {
    const char kind = ir::has_effect(node) ? 'b' : node.op.rfind("loop_", 0) == 0 ? 'l' : '.';
    if (kinds.empty() || kinds.back() != kind) kinds += kind;
  }
  EXPECT_EQ(kinds, ".b.l.l");
  const auto result = driver::compile(model, host_options(3));
  EXPECT_EQ(result.generic_refused, "");
  exec::GraphExecutor executor(load(result), {.max_threads = 2});
  for (const std::vector<float>& x : {std::vector<float>{1, -2, 3, 0, 5}, {-1, -2}, {7}}) {
    run(executor, x);
    std::vector<float> sums;
    for (const float value : x) {
      if (value > 0) sums.push_back((sums.empty() ? 0 : sums.back()) + value);
    }
    EXPECT_EQ(executor.copy_output(0).values<float>()[0], sums.empty() ? 0 : sums.back());
    ASSERT_EQ(executor.output(1).shape, Shape{static_cast<int64_t>(sums.size())});
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(executor.copy_output(1).values<float>()[i], sums[i]);
  }
}

/// Running sums of the first elements, as many as each of `ends` says; what they are twice.
constexpr const char* kFirst =
    R"text(graph "first" dims(N: 32, T: 7) run_dims (run0: 5) (%x: f32[N], %ends: i64[T]) {
  %start = const f32[] {0.0}
  %number: i64[], %sum: f32[], %end: i64[] = loop_begin(%start, %ends) {carried: 1, condition: 0, loop: 0, max_trips: 0} from ["loop"]
  %places: i64[max(run0, 0)] = iota() {extent: dim max(run0, 0)} from ["places"]
  %one_end: i64[1] = reshape(%end) {shape: ints[1]} from ["end"]
  %bound: i64[1] = bind_extents(%one_end) {extents: dims[run0]} from ["end"]
  %few: f32[max(run0, 0)] = gather(%x, %places) {axis: 0} from ["few"]
  %total: f32[] = reduce_sum(%few) {axes: ints[0], keepdims: 0} from ["total"]
  %next: f32[] = add(%sum, %total) from ["next"]
  %last: f32[], %sums: f32[T], %trips: i64[1] = loop_end(%number, %next, %next) {carried: 1, condition: 0, counted: 0, loop: 0, trips: dim T} from ["loop"]
  %twice: f32[T] = add(%sums, %sums) from ["twice"]
  return %last, %twice
}
)text";

ir::Variants first() {
  ir::Variants result;
  result.free_dims = {"N", "T"};
  result.input_shapes = {{"N"}, {"T"}};
  result.symbolic = ir::SymbolicModel{parse(kFirst), {"N", "T"}};
  return result;
}

void run_first(exec::GraphExecutor& executor, const std::vector<float>& x, const std::vector<int64_t>& ends) {
  parallel::ThreadPool pool(2);
  executor.set_input(0, {DType::kFloat32, {static_cast<int64_t>(x.size())}, x.data()});
  executor.set_input(1, {DType::kInt64, {static_cast<int64_t>(ends.size())}, ends.data()});
  executor.run(pool, {.threads = 2});
  std::vector<float> sums;
  float sum = 0;
  for (const int64_t end : ends) {
    for (int64_t i = 0; i < end; ++i) sum += x.at(static_cast<size_t>(i));
    sums.push_back(2 * sum);
  }
  EXPECT_EQ(executor.copy_output(0).values<float>()[0], sum);
  ASSERT_EQ(executor.output(1).shape, Shape{static_cast<int64_t>(ends.size())});
  const Tensor twice = executor.copy_output(1);
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(twice.values<float>()[i], sums[i]);
}

/// Iterations bind their own numbers: what has them in its type alone is in the body as well.
TEST(RunDims, AreBoundInEachIteration) {
  const ir::Graph graph = ir::in_segments(parse(kFirst));
  std::string kinds;
  for (const ir::Node& node : graph.nodes()) {
    const char kind = ir::has_effect(node) ? 'b' : node.op.rfind("loop_", 0) == 0 ? 'l' : '.';
    if (kinds.empty() || kinds.back() != kind) kinds += kind;
  }
  EXPECT_EQ(kinds, "l.b.l.");
  const auto result = driver::compile(first(), host_options(3));
  EXPECT_EQ(result.generic_refused, "");
  exec::GraphExecutor executor(load(result), {.max_threads = 2});
  const std::vector<float> x = {1, -2, 3, 4, 5};
  // Others than in the run before, the same ones, none, all, no iteration.
  for (const std::vector<int64_t>& ends : std::vector<std::vector<int64_t>>{
           {3, 1, 0, 3, 3}, {3, 1, 0, 3, 3}, {5}, {-4, 2}, {}, {1, 2, 3, 4, 5, 4, 3, 2, 1, 0}, {}, {2}})
    run_first(executor, x, ends);
  expect_error(ErrorCode::kTensorData, "few", [&] { run_first(executor, {1, 2}, {1, 3}); });
  run_first(executor, {1, 2}, {1, 2});
  expect_error(ErrorCode::kMemoryBudget, "end", [&] { run_first(executor, x, {2, int64_t{1} << 50}); });
  run_first(executor, x, {2, 1});
}

/// A loop over rows of `lengths`, none of which is longer than the longest one: no node of the loop reads
/// that, and the check of their ranges does.
TEST(RunDims, InRangesOfOthersAreBoundBeforeThem) {
  const ir::Graph graph = ir::in_segments(parse(R"text(graph "rows" dims(N: 32, T: 7)
    run_dims (run0: 5 from 0 to "N", run1: 5 from 0 to "run0") (%x: f32[N], %lengths: i64[T]) {
  %trips: i64[1] = extents() {values: dims[T]} from ["trips"]
  %i: i64[], %length: i64[] = loop_begin(%trips, %lengths) {carried: 0, condition: 0, loop: 0, max_trips: 1} from ["loop"]
  %own: i64[1] = reshape(%length) {shape: ints[1]} from ["own"]
  %bound: i64[1] = bind_extents(%own) {extents: dims[run1]} from ["own"]
  %row: f32[run1] = slice(%x) {extents: dims[run1], starts: ints[0], steps: ints[1]} from ["row"]
  %sum: f32[] = reduce_sum(%row) {axes: ints[0], keepdims: 0} from ["sum"]
  %sums: f32[T], %ran: i64[1] = loop_end(%i, %sum) {carried: 0, condition: 0, counted: 0, loop: 0, trips: dim T} from ["loop"]
  %longest: i64[1] = reduce_max(%lengths) {axes: ints[0], keepdims: 1} from ["longest"]
  %most: i64[1] = bind_extents(%longest) {extents: dims[run0]} from ["longest"]
  return %sums
}
)text"));
  std::string order;
  for (const ir::Node& node : graph.nodes()) {
    if (ir::has_effect(node)) order += ir::bound_symbols(node).at(0) + " ";
    if (node.op == ir::kLoopBegin) order += "loop ";
  }
  EXPECT_EQ(order, "run0 loop run1 ");
}

/// What an iteration makes lies where that of the one before did if it is no larger, and else has some more.
TEST(RunDims, OfIterationsGrowAndShrink) {
  const auto result = driver::compile(first(), host_options(3));
  std::vector<float> x(4000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  std::vector<int64_t> ends;
  for (int64_t end = 1; end < 4000; end = end * 5 / 4 + 1)
    ends.insert(ends.end(), {end, 4000 - end, end + 1});
  exec::GraphExecutor executor(load(result), {.max_threads = 2});
  for (const size_t iterations : {ends.size(), size_t{3}, ends.size() / 2, ends.size()})
    run_first(executor, x, {ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(iterations)});
  // Where there is no memory for more it has none, and the node is named where there is none for it.
  std::set<bool> fits;
  for (int64_t budget = 34'000; budget < 80'000; budget += 1000) {
    try {
      exec::GraphExecutor tight(load(result), {.max_threads = 2, .memory_budget = budget});
      run_first(tight, x, ends);
      fits.insert(true);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kMemoryBudget) << error.message();
      EXPECT_EQ(fits.count(true), 0u) << "less than " << budget << " was enough";
      fits.insert(false);
    }
  }
  EXPECT_EQ(fits.size(), 2u);
}

/// Of what the iterations bind nothing is left behind the loop.
TEST(RunDims, PlansThatTakeExtentsOutOfALoopAreRefused) {
  const std::string text = driver::compile(first(), host_options(3)).plan_json;
  EXPECT_NO_THROW(package::plan_set_from_json(text));
  const auto refused = [&](const char* what, const std::string& buffer) {
    Json json = parse_json(text);
    Json& plan = json["generic"];
    size_t changed = 0;
    for (Json& hole : plan["buffer_holes"]) {
      if (plan["plan"]["buffers"][hole["owner"].get<size_t>()]["name"] != buffer) continue;
      for (Json& factor : hole["products"][0]["factors"]) factor["dim"] = 2;
      ++changed;
    }
    ASSERT_EQ(changed, 1U);
    SCOPED_TRACE(buffer);
    expect_error(ErrorCode::kInvalidPackage, what,
                 [&] { package::plan_set_from_json(canonical_json(json)); });
  };
  refused("of an iteration of a loop before it", "twice");
  refused("/generic", "sums");
}

TEST(RunDims, OfALoopThatIsNotThereAreBoundNowhere) {
  std::string text = kFirst;
  const std::string returned = "return %last, %twice";
  text.replace(text.find(returned), returned.size(), "return %x");
  EXPECT_TRUE(ir::remove_dead(parse(text)).nodes().empty());
  EXPECT_EQ(ir::run_symbols(ir::remove_dead(parse(kFirst))), std::vector<std::string>{"run0"});
}

/// What is checked in a run says nothing of what was computed before.
TEST(RunDims, AGuardOfARunIsNoFactAboutOtherSymbols) {
  const auto table = std::make_shared<ir::SymbolTable>();
  const ir::SymInt n = table->add("N", 32);
  const ir::SymInt count = table->add_run_time_symbol({"run0", 0, te::Dim::symbol("N")}, 9);
  ASSERT_TRUE(ir::demand(ir::Relation::kLessEqual, 5, count));
  EXPECT_TRUE(ir::is_proven(ir::Relation::kLessEqual, 5, count));
  EXPECT_FALSE(ir::is_proven(ir::Relation::kLessEqual, 5, n));
  EXPECT_TRUE(ir::is_proven(ir::Relation::kLessEqual, count, n));
}

/// Plans of strangers: each dim is bound once, by a step that says so, before anything has it.
TEST(RunDims, PlansThatBindNothingRightAreRefused) {
  const std::string text = driver::compile(net(), host_options(3)).plan_json;
  const auto refused = [&](const char* what, const std::function<void(Json&)>& change) {
    Json json = parse_json(text);
    change(json["generic"]);
    SCOPED_TRACE(what);
    expect_error(ErrorCode::kInvalidPackage, what,
                 [&] { package::plan_set_from_json(canonical_json(json)); });
  };
  EXPECT_NO_THROW(package::plan_set_from_json(text));
  refused("not what the steps", [](Json& plan) { plan["run_dims"][0]["step"] = 0; });
  refused("not what the steps",
          [](Json& plan) { plan["run_dims"][1]["step"] = plan["run_dims"][0]["step"]; });
  refused("a name is empty or stands twice", [](Json& plan) {
    plan.erase("run_guards");
    plan["run_dims"][0]["name"] = plan["run_dims"][1]["name"];
  });
  refused("a name is empty or stands twice", [](Json& plan) {
    plan.erase("run_guards");
    plan["run_dims"][0]["name"] = "N";
  });
  refused("not what the steps", [](Json& plan) { plan["run_dims"][0]["element"] = 1; });
  refused("not what the steps", [](Json& plan) { std::swap(plan["run_dims"][0], plan["run_dims"][2]); });
  refused("/generic", [](Json& plan) { plan.erase("run_dims"); });
  // The last dim in the place of the first one: what is bound first has it before its time.
  refused("bound behind it", [](Json& plan) {
    for (const char* list : {"buffer_holes", "step_holes"}) {
      for (Json& hole : plan[list]) {
        for (Json& product : hole["products"]) {
          for (Json& factor : product["factors"])
            factor["dim"] = factor["dim"] == 1 ? Json(3) : factor["dim"];
        }
      }
    }
  });
}

}  // namespace
}  // namespace tensormill::driver_test::run_dims
