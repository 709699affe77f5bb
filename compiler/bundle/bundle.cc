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

/// The C library's parts that this process runs with: a bundle needs them by their names.
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

}  // namespace

std::string entry_name(const std::string& path) {
  std::string name = std::filesystem::path(path).stem();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return "tm_bundle_" + name;
}

void check_target(const target::Target& target) {
  const std::string arch = target::arch_of(target.triple);
  const std::string here = target::arch_of(target::host_target().triple);
  if (arch != here)
    throw Error(ErrorCode::kNotSupported,
                "a bundle for " + arch + " is not made on " + here +
                    ": it holds this program's own runtime; make a package (-f tar)");
  if (runtime_object().empty())
    throw Error(ErrorCode::kNotSupported,
                "this program was built without the runtime that bundles hold; make a package (-f tar)");
}

Bundle make_bundle(Form form, std::span<const std::byte> archive, const package::Metadata& metadata,
                   const target::Target& target, const std::string& path) {
  check_target(target);
  const codegen::BundleParts parts{runtime_object(), archive, entry_name(path), target};
  const std::string file = std::filesystem::path(path).filename();
  return {form == Form::kStatic ? codegen::static_bundle(parts)
                                : codegen::shared_bundle(parts, file, c_libraries()),
          header_text(metadata, parts.entry)};
}

std::string_view interface_header() { return interface_text(); }

}  // namespace tensormill::bundle
