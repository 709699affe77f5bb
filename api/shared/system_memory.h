/// Shared memory objects (shm_open). Nothing is mapped: an object that a client makes shorter meanwhile is an
/// error of its request and no fault of this process. Thread-safety: pure function.
#pragma once

#include <memory>
#include <string>

#include "api/shared/client_memory.h"

namespace tensormill::shared {

/// The object of `key`, "/" and a name without another one. Throws Error(kInvalidArgument) where it is not
/// there or is no such object of this user's.
std::unique_ptr<const ClientMemory> open_object(const std::string& key);

}  // namespace tensormill::shared
