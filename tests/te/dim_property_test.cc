// Dims against brute force: every answer is checked at all points of small ranges. TM_TEST_DIM_SEEDS=N
// runs N seeds instead of the few of the gate.

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <unordered_map>

#include "compiler/te/dim_facts.h"
#include "runtime/base/error.h"
#include "tests/te/random_dim.h"

namespace tensormill::te {
namespace {

using testing::Formula;
using testing::RandomFormula;
using testing::Values;

const std::vector<std::string> kNames = {"A", "B", "C"};

int seeds(int gate) {
  const char* text = std::getenv("TM_TEST_DIM_SEEDS");
  return text != nullptr ? std::atoi(text) : gate;
}

std::vector<Values> points(int64_t low, int64_t high) {
  std::vector<Values> all;
  for (int64_t a = low; a <= high; ++a) {
    for (int64_t b = low; b <= high; ++b) {
      for (int64_t c = low; c <= high; ++c) all.push_back({a, b, c});
    }
  }
  return all;
}

std::string at(const Values& values) {
  std::string text;
  for (size_t i = 0; i < kNames.size(); ++i) text += " " + kNames[i] + "=" + std::to_string(values[i]);
  return text;
}

/// The value of a dim for each point, through its formula, which is made once.
class Table {
public:
  explicit Table(const Dim& dim) : formula_(dim.extent().bound_to(kNames)) {}
  std::optional<int64_t> value(const Values& values) const { return formula_.evaluate(values); }

private:
  Extent formula_;
};

/// A formula's dim; nothing where a number in it would pass int64.
std::optional<Dim> dim_of(const Formula& formula) {
  try {
    return to_dim(formula, kNames);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(DimProperty, NormalFormsKeepTheValueAndEqualOnesAreEqualEverywhere) {
  const std::vector<Values> all = points(-2, 3);
  size_t made = 0, shared = 0, refused = 0;
  for (int seed = 0; seed < seeds(20); ++seed) {
    RandomFormula random(static_cast<uint32_t>(seed), kNames.size());
    std::unordered_map<Dim, std::vector<std::optional<int64_t>>> known;
    for (int round = 0; round < 5000; ++round) {
      const Formula formula = random.make(1 + static_cast<int>(random.below(4)));
      const std::optional<Dim> dim = dim_of(formula);
      refused += dim ? 0 : 1;
      if (!dim) continue;
      ++made;
      const Table table(*dim);
      // A few of the points for each: another formula of the same form meets others.
      for (int i = 0; i < 12; ++i) {
        const Values& values = all[static_cast<size_t>(random.below(static_cast<int64_t>(all.size())))];
        const std::optional<int64_t> expected = evaluate(formula, values);
        if (expected) {
          ASSERT_EQ(table.value(values), expected) << dim->to_string() << at(values);
        }
      }
      const auto [entry, fresh] = known.try_emplace(*dim);
      shared += fresh ? 0 : 1;
      ASSERT_EQ(parse_dim(dim->to_string()), *dim);
      const Dim sum = *dim + entry->first;
      ASSERT_EQ(sum - *dim, entry->first);
    }
  }
  EXPECT_GT(made, 9 * refused);
  EXPECT_GT(shared, made / 100);
}

/// Small ranges for the symbols and facts among them, and the points that fulfil both.
struct Situation {
  DimFacts facts;
  std::vector<Values> where;
};

Situation situation(RandomFormula& random) {
  Situation result;
  std::map<std::string, std::pair<int64_t, int64_t>> ends;
  std::map<std::string, int64_t> divisors;
  for (const std::string& name : kNames) {
    const int64_t low = random.below(4) == 0 ? -2 : random.below(3);
    ends[name] = {low, low + 2 + random.below(6)};
    divisors[name] = random.below(3) == 0 ? 2 + random.below(2) : 1;
  }
  const bool above = random.below(3) == 0;
  for (const std::string& name : kNames) {
    const bool by_dim = above && name == "C";
    result.facts.declare(name, ends[name].first, by_dim ? Dim::symbol("A") : Dim(ends[name].second),
                         divisors[name]);
  }
  struct Relation {
    Formula a, b;
    int kind;
    int64_t by;
  };
  std::vector<Relation> relations;
  for (int64_t i = random.below(3); i > 0; --i) {
    Relation relation{random.make(2), random.make(2), static_cast<int>(random.below(3)), 2 + random.below(3)};
    const std::optional<Dim> a = dim_of(relation.a), b = dim_of(relation.b);
    if (!a || !b) continue;
    if (relation.kind == 0) result.facts.assume_equal(*a, *b);
    if (relation.kind == 1) result.facts.assume_le(*a, *b);
    if (relation.kind == 2) result.facts.assume_divisible(*a, relation.by);
    relations.push_back(relation);
  }
  for (const Values& values : points(-2, 9)) {
    bool holds = true;
    for (size_t i = 0; i < kNames.size(); ++i) {
      const std::string& name = kNames[i];
      const int64_t high = above && name == "C" ? values[0] : ends[name].second;
      holds = holds && values[i] >= ends[name].first && values[i] <= high && values[i] % divisors[name] == 0;
    }
    for (const Relation& relation : relations) {
      if (!holds) break;
      const auto a = evaluate(relation.a, values), b = evaluate(relation.b, values);
      holds = a && b &&
              (relation.kind == 0   ? *a == *b
               : relation.kind == 1 ? *a <= *b
                                    : *a % relation.by == 0);
    }
    if (holds) result.where.push_back(values);
  }
  return result;
}

void check_truth(Truth truth, bool holds, const std::string& text, const Values& values) {
  if (truth == Truth::kProven) {
    EXPECT_TRUE(holds) << text << at(values);
  }
  if (truth == Truth::kRefuted) {
    EXPECT_FALSE(holds) << text << at(values);
  }
}

void check_unified(const Unified& unified, const Dim& a, const Dim& b, const Situation& world) {
  if (unified.kind != Unified::Kind::kSolved) return;
  EXPECT_FALSE(unified.value.mentions(unified.symbol));
  const Table left(a), right(b), solution(unified.value), symbol(Dim::symbol(unified.symbol));
  for (const Values& values : world.where) {
    const auto x = left.value(values), y = right.value(values), value = solution.value(values);
    if (!x || !y || !value) continue;
    // Where the equation holds the symbol has the value, and where it has the value the equation holds.
    ASSERT_EQ(*x == *y, symbol.value(values) == value)
        << a.to_string() << " == " << b.to_string() << " is " << unified.symbol
        << " == " << unified.value.to_string() << at(values);
  }
}

void check_answers(const Dim& a, const Dim& b, const Situation& world, RandomFormula& random, size_t& told) {
  const std::string text = a.to_string() + " and " + b.to_string();
  const Truth equal = world.facts.prove_equal(a, b), ordered = world.facts.prove_le(a, b);
  const int64_t by = 2 + random.below(4);
  const Truth divisible = world.facts.prove_divisible(a, by);
  const Interval range = world.facts.bounds(a);
  const Dim simple = world.facts.simplify(a);
  told += (equal != Truth::kUnknown) + (ordered != Truth::kUnknown) + (simple != a);
  const Table left(a), right(b), simpler(simple);
  for (const Values& values : world.where) {
    const auto x = left.value(values), y = right.value(values);
    if (!x) continue;
    if (range.low) {
      ASSERT_LE(*range.low, *x) << text << at(values);
    }
    if (range.high) {
      ASSERT_GE(*range.high, *x) << text << at(values);
    }
    const auto z = simpler.value(values);
    if (z) {
      ASSERT_EQ(*z, *x) << text << at(values) << " as " << simple.to_string();
    }
    check_truth(divisible, *x % by == 0, text, values);
    if (!y) continue;
    check_truth(equal, *x == *y, text, values);
    check_truth(ordered, *x <= *y, text, values);
  }
  check_unified(unify(a, b, world.facts), a, b, world);
}

TEST(DimProperty, ProofsBoundsAndSolutionsHoldAtAllPoints) {
  size_t told = 0, asked = 0;
  std::vector<int> chosen(static_cast<size_t>(seeds(12)));
  std::iota(chosen.begin(), chosen.end(), 0);
  // A solution that has a part of its own symbol in it.
  chosen.push_back(109);
  for (const int seed : chosen) {
    RandomFormula random(static_cast<uint32_t>(seed) + 1000, kNames.size());
    for (int round = 0; round < 12; ++round) {
      const Situation world = situation(random);
      for (int i = 0; i < 8; ++i) {
        const std::optional<Dim> a = dim_of(random.make(3)), b = dim_of(random.make(2));
        if (!a || !b) continue;
        asked += 3;
        check_answers(*a, *b, world, random, told);
        if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed << " round " << round;
      }
    }
  }
  EXPECT_GT(told, asked / 4);
}

}  // namespace
}  // namespace tensormill::te
