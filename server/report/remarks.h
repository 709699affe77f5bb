/// What held a package back, in words a person can act upon.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/base/json_fwd.h"
#include "runtime/package/metadata.h"

namespace tensormill::report {

/// `compile_log`: what the compile printed beside its report, a remark a line, word for word. `evaluation`:
/// of evaluate(), null where there is none.
std::vector<std::string> remarks(const package::Metadata& metadata, const std::string& compile_log,
                                 const target::Target& target, const target::Target& host,
                                 const Json& evaluation);

}  // namespace tensormill::report
