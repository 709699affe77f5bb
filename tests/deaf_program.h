/// A program that stands in a child's place and never reads what it is given.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/base/file.h"

namespace tensormill {

/// Made in `folder`; its path. It writes `line`, if any, to the child's channel and stands still from then
/// on.
inline std::string deaf_program(const std::string& folder, const std::string& line = "") {
  const std::string path = folder + "/deaf";
  const std::string says = line.empty() ? "" : "echo '" + line + "' >&4\n";
  write_file(path, "#!/bin/sh\n" + says + "kill -STOP $$\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

}  // namespace tensormill
