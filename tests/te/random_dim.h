// Random formulas of extents and their plain evaluation, for property tests.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "compiler/te/dim.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::te::testing {

/// A formula before it has a normal form, so that what makes normal forms is not what they are checked with.
struct Formula {
  Extent::Code code = Extent::Code::kConstant;
  int64_t value = 0;  ///< constant, number of the symbol or of the function
  std::vector<Formula> args;
};

/// By the number of the symbol.
using Values = std::vector<int64_t>;

/// Nothing where a step has no value, or one that int64 does not hold.
inline std::optional<int64_t> evaluate(const Formula& formula, const Values& values) {
  const auto checked = [](__int128 value) -> std::optional<int64_t> {
    if (value != static_cast<int64_t>(value)) return std::nullopt;
    return static_cast<int64_t>(value);
  };
  std::vector<int64_t> args;
  for (const Formula& arg : formula.args) {
    const std::optional<int64_t> value = evaluate(arg, values);
    if (!value) return std::nullopt;
    args.push_back(*value);
  }
  const auto floor_quotient = [&args] {
    return args[0] / args[1] - (args[0] % args[1] != 0 && (args[0] < 0) != (args[1] < 0) ? 1 : 0);
  };
  switch (formula.code) {
    case Extent::Code::kConstant:
      return formula.value;
    case Extent::Code::kSymbol:
      return values[static_cast<size_t>(formula.value)];
    case Extent::Code::kNeg:
      return checked(-__int128{args[0]});
    case Extent::Code::kAdd:
      return checked(__int128{args[0]} + args[1]);
    case Extent::Code::kSub:
      return checked(__int128{args[0]} - args[1]);
    case Extent::Code::kMul:
      return checked(__int128{args[0]} * args[1]);
    case Extent::Code::kFloorDiv:
      if (args[1] == 0) return std::nullopt;
      return floor_quotient();
    case Extent::Code::kFloorMod:
      if (args[1] == 0) return std::nullopt;
      return args[0] - args[1] * floor_quotient();
    case Extent::Code::kMin:
      return std::min(args[0], args[1]);
    case Extent::Code::kMax:
      return std::max(args[0], args[1]);
    case Extent::Code::kCall:
      return extent_functions()[static_cast<size_t>(formula.value)].evaluate(args.data());
  }
  return std::nullopt;
}

/// The formula in normal form.
inline Dim to_dim(const Formula& formula, const std::vector<std::string>& names) {
  std::vector<Dim> args;
  for (const Formula& arg : formula.args) args.push_back(to_dim(arg, names));
  switch (formula.code) {
    case Extent::Code::kConstant:
      return formula.value;
    case Extent::Code::kSymbol:
      return Dim::symbol(names[static_cast<size_t>(formula.value)]);
    case Extent::Code::kNeg:
      return -args[0];
    case Extent::Code::kAdd:
      return args[0] + args[1];
    case Extent::Code::kSub:
      return args[0] - args[1];
    case Extent::Code::kMul:
      return args[0] * args[1];
    case Extent::Code::kFloorDiv:
      return floordiv(args[0], args[1]);
    case Extent::Code::kFloorMod:
      return floormod(args[0], args[1]);
    case Extent::Code::kMin:
      return min(args[0], args[1]);
    case Extent::Code::kMax:
      return max(args[0], args[1]);
    case Extent::Code::kCall:
      return call(extent_functions()[static_cast<size_t>(formula.value)].name, std::move(args));
  }
  return {};
}

class RandomFormula {
public:
  RandomFormula(uint32_t seed, size_t symbols) : random_(seed), symbols_(symbols) {}

  int64_t below(int64_t bound) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound)); }

  Formula make(int depth) {
    if (depth == 0 || below(7) == 0) {
      if (below(3) == 0) return {Extent::Code::kConstant, below(16) - 5, {}};
      return {Extent::Code::kSymbol, below(static_cast<int64_t>(symbols_)), {}};
    }
    using Code = Extent::Code;
    static constexpr Code kCodes[] = {Code::kAdd,      Code::kAdd,      Code::kSub,      Code::kMul,
                                      Code::kFloorDiv, Code::kFloorDiv, Code::kFloorMod, Code::kMin,
                                      Code::kMax,      Code::kNeg,      Code::kCall};
    const Code code = kCodes[below(std::size(kCodes))];
    if (code == Code::kNeg) return {code, 0, {make(depth - 1)}};
    if (code == Code::kCall) return call_of(depth);
    Formula result{code, 0, {make(depth - 1), make(depth - 1)}};
    const bool divides = code == Code::kFloorDiv || code == Code::kFloorMod;
    // Most divisors and every other factor are numbers, as in models.
    if ((divides && below(4) != 0) || (code == Code::kMul && below(2) == 0))
      result.args[1] = {Code::kConstant, divides ? below(9) + 1 : below(8) - 2, {}};
    if (divides && result.args[1].code == Code::kConstant && result.args[1].value == 0)
      result.args[1].value = 2;
    return result;
  }

private:
  Formula call_of(int depth) {
    const int64_t index = below(static_cast<int64_t>(extent_functions().size()));
    const ExtentFunction& function = extent_functions()[static_cast<size_t>(index)];
    Formula result{Extent::Code::kCall, index, {}};
    for (const char follows : function.follows) {
      static constexpr float kFactors[] = {0.1F, 0.5F, 0.3F, 1.5F, 2.0F, 2.7F};
      if (follows == 'f') {
        result.args.push_back({Extent::Code::kConstant, factor_bits(kFactors[below(6)]), {}});
      } else if (takes_floats(function.name)) {
        result.args.push_back(called("f32_of", make(depth - 1)));
      } else {
        result.args.push_back(make(depth - 1));
      }
    }
    return gives_float(function.name) ? called("f32_to_int", std::move(result)) : result;
  }

  /// Floats stand for numbers of extents on their way, and are none themselves.
  static bool gives_float(std::string_view name) { return name.starts_with("f32_") && name != "f32_to_int"; }
  static bool takes_floats(std::string_view name) {
    return (name.starts_with("f32_") && name != "f32_of") || name == "steps_of_f32";
  }
  static Formula called(std::string_view name, Formula arg) {
    return {Extent::Code::kCall, static_cast<int64_t>(*find_extent_function(name)), {std::move(arg)}};
  }

  std::mt19937 random_;
  size_t symbols_;
};

}  // namespace tensormill::te::testing
