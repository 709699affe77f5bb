/// The web console's files as Vite built them, and the example model that it brings along, embedded at build
/// time. Thread-safety: constants.
#pragma once

#include <string_view>

namespace tensormill::console {

struct File {
  std::string_view name;  ///< "index.html"
  std::string_view type;  ///< media type
  std::string_view bytes;
};

/// Null for a name that no file has.
const File* find_file(std::string_view name);

}  // namespace tensormill::console
