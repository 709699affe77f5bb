/// The catalog of a store, wherever it is. Thread-safety: pure functions; the store's folder is one process'
/// alone.
#pragma once

#include <memory>
#include <string>

#include "storage/catalog/catalog.h"
#include "storage/env/env.h"

namespace tensormill::storage {

struct CatalogPlace {
  std::string url;            ///< of a PostgreSQL database; "": a file in the store's folder
  std::string password_file;  ///< for it; "" for none
  int connections = 8;        ///< to it, at most, beside one that listens
};

struct StoreCatalog {
  std::unique_ptr<EnvLock>
      folder;  ///< no other process works in the folder; the catalog's own where it is a file
  std::unique_ptr<Catalog> catalog;
  std::string shared_id;  ///< of a catalog that several processes may have open, else ""
};

/// Opens the catalog of the store in `root`, which is there, and makes it where there is none. A folder whose
/// blobs another catalog names is refused with Error(kConflict): a collection would take them for garbage.
/// Further errors as the catalogs' constructors.
StoreCatalog open_catalog(Env& env, const std::string& root, const CatalogPlace& place);

}  // namespace tensormill::storage
