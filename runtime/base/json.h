/// Helpers over nlohmann-json: strict parsing with limits and canonical printing.
/// Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/json_fwd.h"
#include "runtime/base/quantization.h"
#include "runtime/base/shape.h"

#define TM_JSON_MEMBER(...) extern template __VA_ARGS__;
#include "runtime/base/json_members.def"
#undef TM_JSON_MEMBER

namespace tensormill {

/// Parses a whole text: UTF-8, no trailing bytes, no duplicate keys, at most `max_depth` deep. Throws
/// Error(kInvalidJson) with the byte offset.
Json parse_json(std::string_view text, int max_depth = 64);
/// Canonical text: sorted keys, no white space, shortest round-trip numbers; equal values give equal bytes.
std::string canonical_json(const Json& value);

/// [1,"N",""]: extents as numbers, free dims by name.
Json dims_to_json(const DimShape& shape);
/// What dims_to_json gives; a negative number is an unnamed free dim, too. Throws nlohmann's exceptions for
/// what is no list of numbers and texts.
DimShape dims_from_json(const Json& json);

/// {"scale": 0.5, "zero_point": -3}
Json quantization_to_json(const Quantization& quantization);
/// Throws Error(kInvalidJson) for what is no such object.
Quantization quantization_from_json(const Json& json);

}  // namespace tensormill
