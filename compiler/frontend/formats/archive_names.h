/// Names of an archive's members. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::frontend {

/// Of a tar that begins with these bytes; none where it is none. What is broken ends the list.
std::vector<std::string> tar_names(std::string_view bytes);
/// Of a zip or a tar. Throws Error(kInvalidModel) for a broken zip.
std::vector<std::string> archive_names(std::string_view bytes);

}  // namespace tensormill::frontend
