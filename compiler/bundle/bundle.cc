#include "compiler/bundle/bundle.h"

#include <link.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include "compiler/bundle/runtime_object.h"
#include "compiler/codegen/bundle.h"
#include "compiler/target/features.h"
#include "runtime/base/error.h"
#include "runtime/base/module.h"

namespace tensormill::bundle {
namespace {

/// A stranger's name within a C comment, which it cannot end.
std::string in_comment(std::string_view name) {
  std::string text;
  for (const char c : name) text += c >= ' ' && c <= '~' && c != '*' ? c : '?';
  return text;
}

std::string lines_of(const std::vector<package::TensorInfo>& ports, std::string_view what) {
  std::string text;
  for (const package::TensorInfo& port : ports) {
    text += " * " + std::string(what) + " \"" + in_comment(port.name) +
            "\": " + std::string(dtype_name(port.dtype)) + "[";
    for (size_t axis = 0; axis < port.shape.size(); ++axis) {
      const auto* free = std::get_if<std::string>(&port.shape[axis]);
      text += (axis > 0 ? "," : "") +
              (free != nullptr ? in_comment(*free) : std::to_string(std::get<int64_t>(port.shape[axis])));
    }
    text += "]\n";
  }
  return text;
}

std::string header_text(const package::Metadata& metadata, const std::string& entry) {
  return "/* A model and its executor, compiled for " + in_comment(metadata.target) + "\n *\n" +
         lines_of(metadata.inputs, "input") + lines_of(metadata.outputs, "output") +
         " */\n"
         "#pragma once\n\n#include \"tensormill.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
         "/* As tm_package_load, of the package that is linked in. */\nint32_t " +
         entry + "(tm_package** package);\n\n#ifdef __cplusplus\n}\n#endif\n";
}

}  // namespace

std::string entry_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return "tm_bundle_" + name;
}

std::vector<std::string> c_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* list) {
        const std::string path = info->dlpi_name;
        const std::string name = std::filesystem::path(path).filename();
        if (name == "libc.so.6" || name == "libm.so.6" || name.starts_with("ld-linux"))
          static_cast<std::vector<std::string>*>(list)->push_back(path);
        return 0;
      },
      &paths);
  return paths;
}

std::string runtime_file(std::string_view architecture) {
  return "tensormill-runtime-" + std::string(architecture) + ".o";
}

Runtime::Runtime(const target::Target& target, Form form) {
  const std::string arch = target::arch_of(target.triple);
  const std::string here = target::arch_of(target::host_target().triple);
  if (arch == here) {
    own_ = runtime_object();
    if (own_.empty())
      throw Error(ErrorCode::kNotSupported,
                  "this program was built without the runtime that bundles hold; make a package (-f tar)");
    return;
  }
  if (form == Form::kShared)
    throw Error(ErrorCode::kNotSupported, "a shared library for " + arch + " is not made on " + here +
                                              ", which lacks that machine's C library; make an archive (-f "
                                              "static), or a package (-f tar)");
  const std::string path = find_beside(runtime_file(arch));
  if (path.empty())
    throw Error(ErrorCode::kNotSupported, "the runtime for " + arch + " is not installed: there is no " +
                                              runtime_file(arch) +
                                              " beside the program; make a package (-f tar)");
  file_ = MappedFile::open(path);
}

Bundle make_bundle(Form form, const Parts& parts) {
  const codegen::BundleParts linked{parts.runtime, parts.archive, entry_name(parts.path), parts.target};
  const std::string file = std::filesystem::path(parts.path).filename();
  return {form == Form::kStatic ? codegen::static_bundle(linked)
                                : codegen::shared_bundle(linked, file, parts.libraries),
          header_text(parts.metadata, linked.entry)};
}

std::string_view interface_header() { return interface_text(); }

}  // namespace tensormill::bundle
