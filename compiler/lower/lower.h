/// The ordered pipeline from a loop nest (te::Level::kLoops) to what code generation takes
/// (te::Level::kCodegen): lower_passes.def is the list. Every pass is a pure function; the observer sees the
/// function before the first and after each pass (tests interpret each and compare). Thread-safety: pure
/// functions.
#pragma once

#include <functional>
#include <string>

#include "compiler/target/target.h"
#include "compiler/te/stmt.h"

namespace tensormill::lower {

using Observer = std::function<void(std::string_view pass, const te::Function& function)>;

/// Throws InternalError when a pass breaks the verifier's rules.
te::Function lower(const te::Function& function, const target::Target& target, const Observer& observer = {});

}  // namespace tensormill::lower
