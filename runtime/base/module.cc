#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>

#include "runtime/base/error.h"

namespace tensormill {
namespace {

/// Where modules may lie, from the program's folder.
constexpr std::array<const char*, 3> kPlaces = {"/", "/../", "/../lib/tensormill/"};

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

std::vector<std::string> installed_modules() {
  const std::string folder = own_folder();
  // Of one name it is the first that is loaded.
  std::map<std::string, std::string> found;
  for (const char* place : kPlaces) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder + place, none)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("tensormill-") && name.ends_with(".so")) found.emplace(name, entry.path());
    }
  }
  std::vector<std::string> paths;
  for (auto& [name, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::string find_beside(const std::string& file) {
  const std::string folder = own_folder();
  for (const char* place : kPlaces) {
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
