/// The passes of lower_passes.def, one file each. Each is a pure function of the function and the target.
#pragma once

#include "compiler/target/target.h"
#include "compiler/te/stmt.h"

namespace tensormill::lower {

#define TM_LOWER_PASS(name, function, level, meaning) \
  te::Function function(const te::Function& input, const target::Target& target);
#include "compiler/lower/lower_passes.def"
#undef TM_LOWER_PASS

}  // namespace tensormill::lower
