/// The JSON bodies of the interface as JSON Schema (2020-12), from the rows of schemas.def.
/// Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "runtime/base/json_fwd.h"

namespace tensormill::schema {

/// The JSON Schema of a type in the notation of schemas.def. Every object names its required members and
/// allows no others; an object of any members has a pattern that all names match. Names of rows become
/// references to `#/components/schemas/`. Throws InternalError for what is no such notation.
Json schema_of(std::string_view type);

/// All rows by name, and the error codes as `ErrorCode`.
Json all_schemas();

}  // namespace tensormill::schema
