/// What `compile -f so` and `-f static` write: a package with its executor as one file, and the header that
/// goes with it. Thread-safety: as codegen::Backend::link.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/base/file.h"
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
/// The runtime as a relocatable object: this program's own, or a file's.
class Runtime {
public:
  /// For this target. Throws Error(kNotSupported) where there is none: this program was built without it, or,
  /// for another architecture than its own, its object (runtime_file) is not installed, or the form is
  /// shared, which takes that machine's C library.
  Runtime(const target::Target& target, Form form);
  std::string_view bytes() const { return file_ ? file_->text() : own_; }

private:
  std::string_view own_;
  std::shared_ptr<const MappedFile> file_;
};
/// "tensormill-runtime-aarch64.o": what holds the runtime of another architecture, looked for where modules
/// are (runtime/base/module.h).
std::string runtime_file(std::string_view architecture);

/// The C library's parts that this process runs with: a shared bundle needs them by their names.
std::vector<std::string> c_libraries();

/// What a bundle is made of, borrowed.
struct Parts {
  std::string_view runtime;            ///< of Runtime
  std::span<const std::byte> archive;  ///< the package's bytes
  const package::Metadata& metadata;
  const target::Target& target;
  std::string path;                         ///< where the library will stand
  std::vector<std::string> libraries = {};  ///< for a shared one: files of c_libraries(), by whatever name
};
/// Throws Error(kNotSupported) for a package that is too large to be linked.
Bundle make_bundle(Form form, const Parts& parts);
/// Text of tensormill.h, which NAME.h includes.
std::string_view interface_header();

}  // namespace tensormill::bundle
