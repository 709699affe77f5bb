#include "storage/postgresql/open_catalog.h"

#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/postgresql/folder_mark.h"
#include "storage/postgresql/postgres_catalog.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kFile = "/catalog.db";

}  // namespace

StoreCatalog open_catalog(Env& env, const std::string& root, const CatalogPlace& place) {
  const std::string file = root + std::string(kFile);
  const std::string mark = folder_mark(env, root);
  if (place.url.empty()) {
    if (!mark.empty() && !env.exists(file)) {
      throw Error(ErrorCode::kConflict, root + " belongs to the PostgreSQL catalog " + mark +
                                            ": name it with --catalog, or take another folder");
    }
    return {nullptr, std::make_unique<SqliteCatalog>(env, file), ""};
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
  if (mark.empty()) set_folder_mark(env, root, catalog->id());
  opened.shared_id = catalog->id();
  opened.catalog = std::move(catalog);
  return opened;
}

}  // namespace tensormill::storage
