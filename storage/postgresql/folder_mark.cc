#include "storage/postgresql/folder_mark.h"

#include <array>
#include <memory>
#include <span>

namespace tensormill::storage {
namespace {

constexpr std::string_view kMark = "/catalog.id";

}  // namespace

std::string folder_mark(Env& env, const std::string& folder) {
  const std::string path = folder + std::string(kMark);
  if (!env.exists(path)) return "";
  std::array<char, 64> text{};
  const size_t count = env.open(path, OpenMode::kRead)->read(0, std::as_writable_bytes(std::span(text)));
  return {text.data(), count};
}

void set_folder_mark(Env& env, const std::string& folder, const std::string& id) {
  const std::string path = folder + std::string(kMark);
  if (id.empty()) {
    env.remove_file(path);
  } else {
    const std::string incoming = path + ".incoming";
    {
      const std::unique_ptr<EnvFile> file = env.open(incoming, OpenMode::kCreate);
      file->truncate(0);
      file->write(0, id);
      file->sync();
    }
    env.rename(incoming, path);
  }
  env.sync_folder(folder);
}

}  // namespace tensormill::storage
