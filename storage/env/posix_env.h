/// The operating system's file system.
/// Thread-safety: as Env; the object has no state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/env/env.h"

namespace tensormill::storage {

class PosixEnv final : public Env {
public:
  std::unique_ptr<EnvFile> open(const std::string& path, OpenMode mode) override;
  bool exists(const std::string& path) override;
  uint64_t file_size(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  bool remove_file(const std::string& path) override;
  bool remove_folder(const std::string& path) override;
  std::vector<FolderEntry> list(const std::string& path) override;
  bool make_folder(const std::string& path) override;
  void sync_folder(const std::string& path) override;
  FileDescriptor open_descriptor(const std::string& path) override;
  FileDescriptor scratch_file(const std::string& folder) override;
  std::unique_ptr<EnvLock> lock(const std::string& path) override;
};

}  // namespace tensormill::storage
