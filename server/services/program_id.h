/// Which program this is, to the last byte of what it was linked of: a fix anywhere in it makes another one.
/// Thread-safety: all functions from many threads.
#pragma once

#include <string>
#include <vector>

namespace tensormill::server {

/// One text for these ELF files: of their GNU build ids, which the linker makes of what it links, or, of a
/// file without one, of all of its bytes. Throws as MappedFile::open.
std::string id_of_files(const std::vector<std::string>& paths);

/// The running program and the modules beside it. Reads some of their bytes, or all (seconds where they are
/// large and have no build ids). Throws as id_of_files.
std::string program_id();

}  // namespace tensormill::server
