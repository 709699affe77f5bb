/// The files of a model of several that lies in a tar or a zip, in whatever folder of it. Thread-safety:
/// belongs to one thread; views live as long as it and the archive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/wire/zip.h"

namespace tensormill::frontend::wire {

bool begins_as_tar(std::string_view bytes);
/// Whether the bytes are a zip or a tar.
bool is_archive(std::string_view bytes);

/// The content of a file of the model's folder by its name below it; nothing where there is none. Views
/// outlive the model.
using ModelFiles = std::function<std::optional<std::string_view>(const std::string& name)>;

class ArchiveFiles {
public:
  /// Borrows the bytes; `mark` is a file that stands at the top of the model. Throws Error(kInvalidModel) for
  /// a broken archive, for one without that file or with two of them, and for one that unpacks to more than
  /// its size can hold.
  ArchiveFiles(std::string_view bytes, const std::string& mark);
  /// The file of that name beneath the model's folder; nothing where there is none.
  std::optional<std::string_view> find(const std::string& name);

private:
  void read_tar(std::string_view bytes);
  void set_root(const std::string& name, const std::string& mark);

  std::unique_ptr<ZipFile> zip_;
  std::map<std::string, std::string_view> members_;       ///< of a tar
  std::vector<std::unique_ptr<const std::string>> made_;  ///< members that do not lie in one piece
  std::optional<std::string> root_;
};

}  // namespace tensormill::frontend::wire
