/// A package and the runtime as one file that a program links or opens, with nothing beside it but the C
/// library. Thread-safety: as Backend::link.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "compiler/target/target.h"

namespace tensormill::codegen {

struct BundleParts {
  /// Relocatable object with the C interface (runtime/capi): its functions are global, all else is hidden.
  std::string_view runtime;
  std::span<const std::byte> archive;  ///< the package
  /// Of the function that opens the package: int32_t entry(tm_package**).
  std::string entry;
  target::Target target;
};

/// The most bytes of an archive: offsets in a program are 32 bits wide.
inline constexpr size_t kMaxBundledBytes = size_t{1} << 30;

/// Archive of objects ("ar") with a symbol table. Throws Error(kNotSupported) for a larger package.
std::string static_bundle(const BundleParts& parts);
/// ELF shared object that exports the entry and the C interface. `libraries`: paths of the C library's parts,
/// of which those that are used become its needs. Throws Error(kNotSupported) for a larger package.
std::string shared_bundle(const BundleParts& parts, const std::string& soname,
                          std::span<const std::string> libraries);

}  // namespace tensormill::codegen
