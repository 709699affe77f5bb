/// The file in a store's folder that names the catalog of its blobs, where that is a database. Thread-safety:
/// pure functions; the folder is one process' alone.
#pragma once

#include <string>

#include "storage/env/env.h"

namespace tensormill::storage {

/// "" when there is none.
std::string folder_mark(Env& env, const std::string& folder);
/// Durable when it returns; "" removes it.
void set_folder_mark(Env& env, const std::string& folder, const std::string& id);

}  // namespace tensormill::storage
