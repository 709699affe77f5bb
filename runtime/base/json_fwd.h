/// The name Json, for headers that only declare what takes or gives one: json.h costs each source that
/// includes it more than a second of compiling, this costs a tenth of that.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tensormill {

using Json = nlohmann::json;

}  // namespace tensormill
