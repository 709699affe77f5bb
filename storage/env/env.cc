#include "storage/env/env.h"

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

bool is_readable_folder(Env& env, const std::string& path) {
  try {
    env.list(path);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string parent_folder(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  if (slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

void make_durable_folders(Env& env, const std::string& path) {
  const std::string parent = parent_folder(path);
  if (parent != path && parent != "." && parent != "/") make_durable_folders(env, parent);
  const bool is_new = env.make_folder(path);
  // Also when the folder was there: the process that made it may have died before it synced the parent.
  try {
    env.sync_folder(parent);
  } catch (const Error&) {
    // A folder that this user may pass but not read is the administrator's and was there before us.
    if (is_new || is_readable_folder(env, parent)) throw;
  }
}

void remove_tree(Env& env, const std::string& path) {
  if (!env.exists(path)) return;
  for (const FolderEntry& entry : env.list(path)) {
    const std::string child = path + "/" + entry.name;
    if (entry.is_folder) {
      remove_tree(env, child);
    } else {
      env.remove_file(child);
    }
  }
  env.remove_folder(path);
}

std::string read_all(Env& env, const std::string& path) {
  std::unique_ptr<EnvFile> file = env.open(path, OpenMode::kRead);
  std::string bytes(file->size(), '\0');
  const size_t got = file->read(0, std::as_writable_bytes(std::span(bytes)));
  bytes.resize(got);
  return bytes;
}

}  // namespace tensormill::storage
