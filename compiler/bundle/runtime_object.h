/// Files that the build puts into the program. Thread-safety: constants.
#pragma once

#include <string_view>

namespace tensormill::bundle {

/// The runtime as a relocatable object; empty in a build for a sanitizer, whose symbols come with the
/// program.
std::string_view runtime_object();
/// Text of runtime/capi/tensormill.h.
std::string_view interface_text();

}  // namespace tensormill::bundle
