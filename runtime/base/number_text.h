/// Numbers that stand in a text, as elements of a tensor. Nothing wraps and nothing is rounded twice: a
/// number that a type does not have is refused, whichever way it came. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/dtype.h"

namespace tensormill {

/// The double nearest to a JSON number, ties to even; what is too small for a double is 0. Nothing for a
/// number that is too large, and for what is no number.
std::optional<double> nearest_double(std::string_view text);

/// Why a text is no element of a type.
enum class NumberFit : uint8_t {
  kFits,
  kNotOfType,   ///< a fraction for an integer, true for a number, a text that is no number
  kOutOfRange,  ///< 300 for an int8, 2 for a bool, 1e39 for a float32
};

/// Stores the JSON number `text` ("true" and "false" as well, for bool) as one element, with as many bytes as
/// dtype_bytes says. Floats are the nearest value that the type has, ties to even; integers are exact and
/// have neither point nor exponent; a bool is true, false, 1 or 0. Stores nothing unless it fits.
NumberFit store_number(DType dtype, std::string_view text, void* element);

/// Whether `text` is an element of `dtype`, without storing it.
NumberFit number_fit(DType dtype, std::string_view text);

/// "is 300, which INT8 does not have: -128 to 127", "is 1.5, not a value of INT32"; for what does not fit.
std::string describe_misfit(DType dtype, std::string_view text, NumberFit fit);

/// The first element of `count` at `data` whose bytes are no value of a type that has fewer values than its
/// bytes have (bool, int4, uint2, float4); nothing where all are, and for any other type.
std::optional<int64_t> first_misfit(DType dtype, const void* data, int64_t count);

/// Throws Error(kInvalidTensor) with the first misfit of a tensor that goes to an input of `dtype`; `where`
/// says which. Kernels take for granted that bytes are values.
void check_elements(DType dtype, const void* data, int64_t count, const std::string& where);

}  // namespace tensormill
