/// What `compile -f so` and `-f static` write: a package with its executor as one file, and the header that
/// goes with it. Thread-safety: as codegen::Backend::link.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "compiler/target/target.h"
#include "runtime/package/metadata.h"

namespace tensormill::bundle {

enum class Form { kShared, kStatic };

struct Bundle {
  std::string library;  ///< bytes of NAME.so or NAME.a
  std::string header;   ///< text of NAME.h
};

/// The function's name for an output file: "tm_bundle_digits" for "out/digits.so"; what is no letter or digit
/// becomes '_'.
std::string entry_name(const std::string& path);
/// Throws Error(kNotSupported) for a target of another architecture than this program's, and where this
/// program was built without the runtime's object.
void check_target(const target::Target& target);
/// `archive`: the package's bytes. `path`: where the library will stand. Throws what check_target throws, and
/// Error(kNotSupported) for a package that is too large to be linked.
Bundle make_bundle(Form form, std::span<const std::byte> archive, const package::Metadata& metadata,
                   const target::Target& target, const std::string& path);
/// Text of tensormill.h, which NAME.h includes.
std::string_view interface_header();

}  // namespace tensormill::bundle
