/// lld in this process, which reads and writes files by name. What it reads are memory files; what it writes
/// is a pipe, because a regular file would be written beside its name first. So nothing touches a file system
/// but /proc. Thread-safety: one link of a process at a time (lld keeps state).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/base/file.h"

namespace tensormill::codegen {

/// A file in memory with these bytes; `name` is what messages call it.
FileDescriptor memory_file(const char* name, std::string_view bytes);
/// The name that the linker opens it by.
std::string path_of(const FileDescriptor& file);
/// `arguments` come behind those of every shared object here: its form, no undefined symbols, read-only
/// relocations, no symbol table. Throws InternalError with the linker's words.
std::string link_shared(const target::Target& target, const std::vector<std::string>& arguments);

}  // namespace tensormill::codegen
