#include "server/services/store/store_backup.h"

#include <memory>
#include <utility>

#include "runtime/base/error.h"
#include "server/services/store/blob_place.h"
#include "server/services/store/replica.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/postgresql/move_catalog.h"
#include "storage/postgresql/open_catalog.h"

namespace tensormill::server {

namespace {

storage::CatalogPlace place_of(const config::Settings& settings) {
  storage::CatalogPlace place;
  place.url = settings.catalog_url;
  place.password_file = settings.catalog_password_file;
  return place;
}

void require_shared(const config::Settings& settings) {
  if (settings.catalog_url.empty() || settings.blobs.empty())
    throw Error(
        ErrorCode::kUsage,
        "a store of several servers has its catalog in PostgreSQL and its blobs in S3: name both, with "
        "--catalog and --blobs");
}

/// A folder for the cache of blobs, which goes.
class CacheFolder {
public:
  CacheFolder(storage::Env& env, std::string path) : env_(env), path_(std::move(path)) {
    storage::remove_tree(env_, path_);
    storage::make_durable_folders(env_, path_);
  }
  ~CacheFolder() {
    try {
      storage::remove_tree(env_, path_);
    } catch (const Error&) {
      // The next backup removes it.
    }
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  const std::string& path() const { return path_; }

private:
  storage::Env& env_;
  const std::string path_;
};

class SharedSource final : public storage::StoreSource {
public:
  SharedSource(const config::Settings& settings, storage::Env& env, const std::string& scratch)
      : env_(env),
        place_(place_of(settings)),
        name_(settings.catalog_url + " with " + settings.blobs),
        opened_(storage::open_catalog(env, scratch, place_)),
        replica_(Replica::make(settings, env, scratch, opened_)),
        blobs_(open_blobs(settings, env, scratch, replica_->place())),
        hold_(*blobs_) {}
  const std::string& name() const override { return name_; }
  bool copy_catalog(const std::string& path) override {
    storage::copy_to_file(env_, path, place_);
    return true;
  }
  /// A commit of the same bytes, since the hold.
  bool keep(const Digest& digest) override { return blobs_->keep(digest); }
  std::optional<Bytes> open(const Digest& digest) override {
    try {
      const std::shared_ptr<const storage::Blob> blob = blobs_->open(digest);
      const std::optional<storage::BlobRow> row = opened_.catalog->find_blob(digest);
      const bool is_plain = !row || !row->form;
      return Bytes{is_plain ? storage::BlobForm::kPlain : static_cast<storage::BlobForm>(*row->form), blob,
                   blob->text()};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      return std::nullopt;
    }
  }

private:
  storage::Env& env_;
  const storage::CatalogPlace place_;
  const std::string name_;
  storage::StoreCatalog opened_;
  std::unique_ptr<Replica> replica_;
  std::unique_ptr<storage::BlobStore> blobs_;
  storage::BlobHold hold_;
};

}  // namespace

storage::StoreCopy back_up_shared(const config::Settings& settings, storage::Env& env,
                                  const std::string& to) {
  require_shared(settings);
  storage::make_durable_folders(env, to);
  const CacheFolder scratch(env, to + "/source");
  SharedSource source(settings, env, scratch.path());
  return storage::copy_store(env, source, to);
}

void move_to_shared(const config::Settings& settings, storage::Env& env, const std::string& folder) {
  require_shared(settings);
  {
    // Nobody else has the store open meanwhile.
    storage::SqliteCatalog catalog(env, folder + "/catalog.db");
    migrate_blobs(settings, env, folder, catalog, settings.blobs, [](const Migrated&) {});
  }
  storage::move_to_database(env, folder, place_of(settings));
}

}  // namespace tensormill::server
