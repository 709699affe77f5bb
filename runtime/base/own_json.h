/// Reading JSON that this process printed itself, such as its own answer that another protocol's form is made
/// of. It has no bound on size, values or depth: what anybody else wrote, a child of ours or a file too, goes
/// through parse_json (json.h). Needs no library, so that modules may use it. Thread-safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace tensormill {

/// The whole text. Throws nlohmann::json::parse_error where it is none, which would be our own mistake.
inline nlohmann::json parse_own_json(std::string_view text) { return nlohmann::json::parse(text); }

}  // namespace tensormill
