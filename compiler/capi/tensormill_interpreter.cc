#include "compiler/capi/tensormill_interpreter.h"

#include "compiler/interpret/interpreter.h"
#include "runtime/capi/handles.h"

extern "C" int32_t tm_package_use_interpreter(tm_package* package) {
  using tensormill::package::LoadedPackage;
  return tensormill::capi::guarded([&] {
    tensormill::capi::require(package, "package");
    package->loaded =
        LoadedPackage::load(package->loaded->shared_package(), tensormill::interpret::make_interpreter);
  });
}
