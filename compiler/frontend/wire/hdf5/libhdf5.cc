#include "compiler/frontend/wire/hdf5/libhdf5.h"

#include <dlfcn.h>

#include <string>

#include "compiler/frontend/wire/hdf5/hdf5.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::wire {
namespace {

constexpr const char* kLibrary = "libhdf5_serial.so.103";

[[noreturn]] void fail() {
  const char* why = ::dlerror();
  throw Error(ErrorCode::kNotSupported,
              "an HDF5 file needs the library " + std::string(kLibrary) +
                  " (Debian package libhdf5-103-1): " + (why != nullptr ? why : "unknown error"));
}

void* symbol_of(void* library, const char* name) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) fail();
  return found;
}

LibHdf5 load() {
  // It is never unloaded: it has handlers of the process' end.
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail();
  LibHdf5 functions;
#define TM_HDF5(name) functions.name = reinterpret_cast<decltype(&::name)>(symbol_of(library, #name));
#include "compiler/frontend/wire/hdf5/libhdf5.def"
#undef TM_HDF5
  // The library's own macro of this name opens it and reads the same variable.
  functions.H5open();
  functions.file_access = *static_cast<const hid_t*>(symbol_of(library, "H5P_CLS_FILE_ACCESS_ID_g"));
  functions.H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  functions.H5PLset_loading_state(0);
  return functions;
}

}  // namespace

void map_hdf5_library() { ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL); }

const LibHdf5& h5() {
  static const LibHdf5 functions = load();
  return functions;
}

}  // namespace tensormill::frontend::wire
