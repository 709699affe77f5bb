#include <array>

#include "compiler/te/dim_facts.h"
#include "runtime/base/extents/extent.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

/// Some points of the space of its symbols.
constexpr auto kValues = std::to_array<int64_t>({0, 1, 2, 7, 64, -3, 1000003, int64_t{1} << 40});

std::vector<int64_t> point(size_t number, size_t symbols) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < symbols; ++i) values.push_back(kValues[(number + 3 * i) % kValues.size()]);
  return values;
}

void same_value(std::optional<int64_t> a, std::optional<int64_t> b, const std::string& text) {
  TM_CHECK(!a || !b || *a == *b, text + " has two values");
}

/// What the compiler makes of a formula has its value, wherever both have one.
void check_dim(const Extent& formula) {
  const te::Dim dim = te::to_dim(formula);
  TM_CHECK(te::parse_dim(dim.to_string()) == dim, "a normal form is read as another one");
  const Extent normal = dim.extent().bound_to(formula.symbols());
  te::DimFacts facts;
  for (const std::string& name : formula.symbols()) facts.declare(name, 0, 1000003, 1);
  // Proofs are for formulas as models have them.
  const bool small = dim.size() < 64;
  const te::Interval range = small ? facts.bounds(dim) : te::Interval{};
  const Extent simple = small ? facts.simplify(dim).extent().bound_to(formula.symbols()) : normal;
  for (size_t i = 0; i < kValues.size(); ++i) {
    const std::vector<int64_t> values = point(i, formula.symbols().size());
    const std::optional<int64_t> value = formula.evaluate(values);
    same_value(value, normal.evaluate(values), dim.to_string());
    bool within = true;
    for (const int64_t each : values) within = within && each >= 0 && each <= 1000003;
    if (!within || !value) continue;
    same_value(value, simple.evaluate(values), dim.to_string());
    const bool bounded = (!range.low || *range.low <= *value) && (!range.high || *value <= *range.high);
    TM_CHECK(bounded || !normal.evaluate(values),
             "the value of " + dim.to_string() + " is out of its bounds");
  }
}

}  // namespace

void fuzz_extent(std::string_view bytes) {
  std::optional<Extent> formula;
  attempt([&] { formula = Extent::parse(bytes); });
  if (!formula) return;
  TM_CHECK(Extent::parse(formula->to_string()) == *formula, "a formula is read as another one");
  std::string_view rest = bytes;
  TM_CHECK(Extent::parse_prefix(rest) == *formula, "a prefix is read as another formula");
  attempt([&] { check_dim(*formula); });
}

}  // namespace tensormill::fuzz
