/// What is behind the C interface's pointers, for other rooms that add functions to it.
/// Thread-safety: as tensormill.h says of each.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/base/error.h"
#include "runtime/capi/tensormill.h"
#include "runtime/package/package_reader.h"

struct tm_package {
  std::shared_ptr<const tensormill::package::LoadedPackage> loaded;
};

namespace tensormill::capi {

/// Runs `action`: 0, or the code of what it throws, whose message is tm_last_error()'s from then on.
int32_t guarded(const std::function<void()>& action);

/// Throws Error(kInvalidArgument) naming the null pointer.
template <typename T>
void require(const T* pointer, const char* name) {
  if (pointer == nullptr) throw Error(ErrorCode::kInvalidArgument, std::string(name) + " is null");
}

}  // namespace tensormill::capi
