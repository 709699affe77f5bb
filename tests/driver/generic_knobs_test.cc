/// Choices of the loops of generic kernels: what they are called, how they are written down, and that each of
/// them computes what the definition says, around every tile.
#include "compiler/plan/generic_knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "compiler/te/interpret.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

GenericSource source_of(MakeNest make, size_t dims, int lanes) {
  Symbolic form = symbolic(make, dims);
  return {std::move(form.nest), std::move(form.vars), {lanes}, {}};
}

std::string text_by(const GenericSource& source, const schedule::Schedule& steps) {
  return te::print(loops_by(source, steps).function);
}

schedule::Schedule steps_of(const std::string& text) { return schedule::parse_schedule(text); }

TEST(GenericKnobs, TheRuleIsTheDefault) {
  for (const int lanes : {1, 4, 8, 16}) {
    for (const auto& [make, dims] : {std::pair<MakeNest, size_t>{&product<64>, 1},
                                     {&product<37>, 1},
                                     {&columns<48>, 1},
                                     {&conv, 3},
                                     {&blocked<16, 2, 1>, 5},
                                     {&blocks_of_columns<32, 96>, 1},
                                     {&transposed, 2},
                                     {&scaled, 3}}) {
      const GenericSource source = source_of(make, dims, lanes);
      const std::string rule = te::print(build_generic_loops(source.nest, source.vars, source.facts));
      const schedule::Tuned tuned = choose_loops(source, schedule::choose_from({}));
      for (const schedule::Knob& knob : tuned.knobs) EXPECT_EQ(knob.chosen, knob.analytic) << knob.name;
      EXPECT_EQ(text_by(source, tuned.schedule), rule);
      EXPECT_EQ(text_by(source, {}), rule);
    }
  }
}

TEST(GenericKnobs, ChoicesAreWrittenDownAndRead) {
  const GenericSource source = source_of(&product<64>, 1, 8);
  const schedule::Tuned tuned = choose_loops(source, schedule::choose_from({{"rows", 3}, {"columns", 4}}));
  const std::string text = schedule::print(tuned.schedule);
  EXPECT_THAT(text, testing::HasSubstr("choose rows 3\n"));
  EXPECT_THAT(text, testing::HasSubstr("choose columns 4\n"));
  EXPECT_EQ(schedule::parse_schedule(text), tuned.schedule);
  EXPECT_EQ(text_by(source, schedule::parse_schedule(text)), text_by(source, tuned.schedule));
  EXPECT_NE(text_by(source, tuned.schedule), text_by(source, {}));
}

TEST(GenericKnobs, WhatDoesNotApplyIsRefused) {
  const GenericSource source = source_of(&product<64>, 1, 8);
  const auto why = [&](const std::string& steps) {
    try {
      loops_by(source, steps_of(steps));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords);
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(why("choose rows 77\n"), testing::HasSubstr("knob rows cannot be 77"));
  EXPECT_THAT(why("choose rows many\n"), testing::HasSubstr("knob rows cannot be 'many'"));
  EXPECT_THAT(why("choose blocks 2\n"), testing::HasSubstr("no knob blocks"));
  EXPECT_THAT(why("choose rows 3\nchoose rows 3\n"), testing::HasSubstr("chosen twice"));
  EXPECT_THAT(why("vectorize s0 i1\n"), testing::HasSubstr("'vectorize' is no choice"));
  EXPECT_THAT(why("choose rows\n"), testing::HasSubstr("is no choice"));
}

/// What the loops compute at `dims` is what the definition says.
void expect_equal(MakeNest make, const Loops& loops, const std::vector<int64_t>& dims) {
  const Nest nest = make(Extents(dims.begin(), dims.end()));
  std::vector<tensormill::Tensor> arguments;
  for (const Tensor& input : nest.inputs) arguments.push_back(small_integers(input->constant_shape()));
  const tensormill::Tensor expected = te::evaluate({nest.inputs, {nest.tensor}}, arguments)[0];
  arguments.emplace_back(DType::kFloat32, nest.tensor->constant_shape());
  for (size_t i = 0; i < arguments.size(); ++i) arguments[i] = arguments[i].reshaped(loops.shape_at(i, dims));
  ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at(dims), 3).code, 0);
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i)) << i;
}

/// Random choices, each knob's every value among them, at extents around each tile.
void expect_all_choices(MakeNest make, size_t dims, int lanes,
                        const std::function<std::vector<int64_t>(int64_t)>& dims_at) {
  const GenericSource source = source_of(make, dims, lanes);
  std::mt19937 random(7);
  std::set<std::string> seen;
  for (int draw = 0; draw < 24; ++draw) {
    const schedule::Tuned tuned = choose_loops(source, [&](const schedule::Knob& knob) {
      return knob.candidates[random() % knob.candidates.size()];
    });
    const std::string steps = schedule::print(tuned.schedule);
    if (!seen.insert(steps).second) continue;
    SCOPED_TRACE(steps);
    GenericLoops made = loops_by(source, tuned.schedule);
    te::verify(made.function, te::Level::kLoops);
    std::set<int64_t> extents = {1};
    for (const Tail& tail : made.tails) {
      for (const int64_t extent : {tail.size - 1, tail.size, tail.size + 1}) {
        if (extent <= 200) extents.insert(extent);
      }
    }
    const Loops loops{std::move(made.function), source.vars.formulas()};
    for (const int64_t extent : extents) expect_equal(make, loops, dims_at(extent));
  }
}

class GenericChoicesOfLanes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lanes, GenericChoicesOfLanes, testing::Values(4, 8, 16));

TEST_P(GenericChoicesOfLanes, EveryChoiceComputesTheSame) {
  const auto one = [](int64_t extent) { return std::vector<int64_t>{extent}; };
  for (const MakeNest make : {&product<64>, &product<72>, &product<37>, &columns<48>, &columns<162>,
                              &columns<7>, &blocks_of_columns<16, 24>})
    expect_all_choices(make, 1, GetParam(), one);
  expect_all_choices(&conv, 3, GetParam(), [](int64_t extent) {
    return std::vector<int64_t>{2, extent + 2, extent};
  });
  expect_all_choices(&transposed, 2, GetParam(), [](int64_t extent) {
    return std::vector<int64_t>{3, extent};
  });
  expect_all_choices(&batched, 2, GetParam(), [](int64_t extent) { return std::vector<int64_t>{2, extent}; });
  expect_all_choices(&scaled, 3, GetParam(), [](int64_t extent) {
    return std::vector<int64_t>{2, 3, extent};
  });
  expect_all_choices(&padded, 5, GetParam(), [](int64_t extent) {
    return std::vector<int64_t>{1, 2, extent, 4, extent + 3};
  });
}

TEST_P(GenericChoicesOfLanes, EveryChoiceOfBlockedConvolutionsComputesTheSame) {
  const auto map = [](int64_t extent) { return std::vector<int64_t>{1, 3, extent, 3, extent}; };
  expect_all_choices(&blocked<4, 6, 1>, 5, GetParam(), map);
  expect_all_choices(&blocked<16, 2, 1>, 5, GetParam(), map);
}

TEST(GenericTails, TilesOfAxesThatAreNoNumbers) {
  const GenericSource source = source_of(&product<64>, 1, 8);
  const GenericLoops loops = loops_by(source, steps_of("choose rows 5\n"));
  ASSERT_EQ(loops.tails.size(), 1U) << "columns are a number";
  EXPECT_EQ(loops.tails[0].size, 5);
  const GenericLoops wide = loops_by(source_of(&columns<48>, 1, 8), {});
  std::vector<int64_t> sizes;
  for (const Tail& tail : wide.tails) sizes.push_back(tail.size);
  EXPECT_THAT(sizes, testing::UnorderedElementsAre(8, 16));
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
