#include "storage/postgresql/open_catalog.h"

#include <array>
#include <span>
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/postgresql/postgres_catalog.h"

namespace tensormill::storage {
namespace {

/// Holds the id of the catalog that names the folder's blobs, where it is not in the folder.
constexpr std::string_view kMark = "/catalog.id";
constexpr std::string_view kFile = "/catalog.db";

std::string mark_of(Env& env, const std::string& root) {
  const std::string path = root + std::string(kMark);
  if (!env.exists(path)) return "";
  std::array<char, 64> text{};
  const size_t count = env.open(path, OpenMode::kRead)->read(0, std::as_writable_bytes(std::span(text)));
  return {text.data(), count};
}

void set_mark(Env& env, const std::string& root, const std::string& id) {
  const std::string path = root + std::string(kMark);
  const std::string incoming = path + ".incoming";
  {
    const std::unique_ptr<EnvFile> file = env.open(incoming, OpenMode::kCreate);
    file->truncate(0);
    file->write(0, id);
    file->sync();
  }
  env.rename(incoming, path);
  env.sync_folder(root);
}

}  // namespace

StoreCatalog open_catalog(Env& env, const std::string& root, const CatalogPlace& place) {
  const std::string file = root + std::string(kFile);
  const std::string mark = mark_of(env, root);
  if (place.url.empty()) {
    if (!mark.empty() && !env.exists(file)) {
      throw Error(ErrorCode::kConflict, root + " belongs to the PostgreSQL catalog " + mark +
                                            ": name it with --catalog, or take another folder");
    }
    return {nullptr, std::make_unique<SqliteCatalog>(env, file)};
  }
  StoreCatalog opened;
  opened.folder = env.lock(file + ".lock");
  if (env.exists(file)) {
    throw Error(ErrorCode::kConflict, root + " has a catalog of its own, " + file +
                                          ": serve it without --catalog, or take another folder");
  }
  PgOptions options;
  options.url = place.url;
  options.password_file = place.password_file;
  options.connections = place.connections;
  auto catalog = std::make_unique<PostgresCatalog>(std::move(options));
  if (!mark.empty() && mark != catalog->id()) {
    throw Error(ErrorCode::kConflict,
                root + " belongs to the PostgreSQL catalog " + mark + ", this one is " + catalog->id());
  }
  if (mark.empty()) set_mark(env, root, catalog->id());
  opened.catalog = std::move(catalog);
  return opened;
}

}  // namespace tensormill::storage
