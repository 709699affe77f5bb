/// Parts of the program that are loaded on demand, so that what they link costs nobody who does not use them:
/// shared libraries NAME.so beside the program, in the folder above it, or in ../lib/tensormill.
/// Thread-safety: all functions from many threads.
#pragma once

#include <string>
#include <vector>

namespace tensormill {

/// The address of `symbol` in the module `name`, which stays loaded. Throws Error(kNotSupported) where the
/// module is not installed or cannot be loaded; the reason is named.
void* load_module(const std::string& name, const std::string& symbol);

/// The files of all modules that are installed, sorted by name.
std::vector<std::string> installed_modules();

/// Where a file lies that is installed beside the program as modules are; "": nowhere.
std::string find_beside(const std::string& file);

}  // namespace tensormill
