#include "storage/postgresql/libpq.h"

#include <dlfcn.h>

#include <string>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

constexpr const char* kLibrary = "libpq.so.5";

[[noreturn]] void fail() {
  const char* why = ::dlerror();
  throw Error(ErrorCode::kNotSupported, "a PostgreSQL catalog needs the library " + std::string(kLibrary) +
                                            " (Debian package libpq5, version 14 or later): " +
                                            (why != nullptr ? why : "unknown error"));
}

Libpq load() {
  // It is never unloaded: it has handlers of the process' end.
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail();
  Libpq functions;
#define TM_LIBPQ(name)                                                           \
  functions.name = reinterpret_cast<decltype(&::name)>(::dlsym(library, #name)); \
  if (functions.name == nullptr) fail();
#include "storage/postgresql/libpq.def"
#undef TM_LIBPQ
  return functions;
}

}  // namespace

const Libpq& libpq() {
  static const Libpq functions = load();
  return functions;
}

}  // namespace tensormill::storage
