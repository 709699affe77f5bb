#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <array>

#include "runtime/base/error.h"

namespace tensormill {
namespace {

/// The folder of this program.
std::string own_folder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) throw Error(ErrorCode::kNotSupported, "the program cannot tell where it lies");
  const std::string whole(path.data(), static_cast<size_t>(size));
  return whole.substr(0, whole.find_last_of('/'));
}

std::string last_error() {
  const char* why = ::dlerror();
  return why == nullptr ? "no reason is known" : why;
}

}  // namespace

std::string find_beside(const std::string& file) {
  const std::string folder = own_folder();
  for (const char* place : {"/", "/../", "/../lib/tensormill/"}) {
    std::string path = folder + place + file;
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return "";
}

void* load_module(const std::string& name, const std::string& symbol) {
  const std::string path = find_beside(name + ".so");
  if (path.empty()) {
    throw Error(ErrorCode::kNotSupported,
                "the module " + name + " is not installed: there is no " + name + ".so beside the program");
  }
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw Error(ErrorCode::kNotSupported, "the module " + name + " cannot be loaded: " + last_error());
  void* found = ::dlsym(module, symbol.c_str());
  if (found == nullptr) throw Error(ErrorCode::kNotSupported, "the module " + name + " is another's");
  return found;
}

}  // namespace tensormill
