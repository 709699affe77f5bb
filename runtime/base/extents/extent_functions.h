/// The named functions that formulas of extents may call (extent_functions.def). Thread-safety: pure
/// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tensormill {

/// A row of extent_functions.def.
struct ExtentFunction {
  std::string_view name;
  size_t arity;
  std::string_view follows;  ///< one of "+-?f" an argument
  /// Nothing for a value beyond ±2^62, and for arguments that the function does not take.
  std::optional<int64_t> (*evaluate)(const int64_t* args);
};

/// All rows, in the table's order.
std::span<const ExtentFunction> extent_functions();
/// The place of a name in extent_functions().
std::optional<size_t> find_extent_function(std::string_view name);

/// The argument that stands for a factor, and back. A factor is finite and positive: nothing for other bits.
int64_t factor_bits(float factor);
std::optional<float> factor_of_bits(int64_t bits);

/// A float32 as an integer: finite ones are in the order of their codes, 0 (of either sign) is 0, a positive
/// one is its factor_bits and a negative one the negated code of its opposite. Nothing for what is not
/// finite, and for an integer that is no such code.
std::optional<int64_t> float_code(float value);
std::optional<float> float_of_code(int64_t code);

}  // namespace tensormill
