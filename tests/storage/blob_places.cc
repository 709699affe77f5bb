#include "tests/storage/blob_places.h"

#include "storage/blob/folder_blob_store.h"
#include "storage/env/memory_env.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/postgres_catalog.h"
#include "storage/replica/shared_blob_index.h"
#include "tests/storage/private_postgres.h"
#include "tests/storage/s3_server.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

void change_first_byte(Env& env, const std::string& path) { env.open(path, OpenMode::kWrite)->write(0, "X"); }

void cut_last_byte(Env& env, const std::string& path) {
  env.open(path, OpenMode::kWrite)->truncate(env.file_size(path) - 1);
}

class FolderPlace final : public BlobPlace {
public:
  explicit FolderPlace(std::unique_ptr<Env> env) : env_(std::move(env)), root_(folder_.path() + "/store") {}
  std::unique_ptr<BlobStore> open() override { return std::make_unique<FolderBlobStore>(*env_, root_); }
  bool has(const Digest& digest, BlobForm form) override { return env_->exists(path_of(digest, form)); }
  void damage(const Digest& digest, BlobForm form) override {
    change_first_byte(*env_, path_of(digest, form));
  }
  void cut(const Digest& digest, BlobForm form) override { cut_last_byte(*env_, path_of(digest, form)); }
  size_t leftovers() override { return env_->list(root_ + "/tmp").size(); }

private:
  std::string path_of(const Digest& digest, BlobForm form) const {
    return root_ + "/blobs/sha256/" + blob_path(digest, form);
  }
  TemporaryFolder folder_;
  std::unique_ptr<Env> env_;
  std::string root_;
};

class S3Place : public BlobPlace {
public:
  S3Place() : options_(S3Server::shared().options()) {}
  std::unique_ptr<BlobStore> open() override {
    const std::string cache = folder_.path() + "/" + std::to_string(machines_++);
    std::unique_ptr<BlobIndex> shared = index();
    if (!shared) shared = std::make_unique<MemoryBlobIndex>();
    return std::make_unique<S3BlobStore>(env_, cache, options_, load_http_transport(), std::move(shared));
  }
  bool has(const Digest& digest, BlobForm form) override { return env_.exists(path_of(digest, form)); }
  void damage(const Digest& digest, BlobForm form) override {
    change_first_byte(env_, path_of(digest, form));
  }
  void cut(const Digest& digest, BlobForm form) override { cut_last_byte(env_, path_of(digest, form)); }
  size_t leftovers() override {
    size_t count = 0;
    for (int machine = 0; machine < machines_; ++machine)
      count += env_.list(folder_.path() + "/" + std::to_string(machine) + "/tmp").size();
    const std::unique_ptr<HttpTransport> transport = load_http_transport();
    const std::unique_ptr<CredentialSource> keys = make_credentials(options_.credentials, *transport);
    S3Client client(options_.s3, *transport, *keys);
    const auto note = [&](const S3Object&) { ++count; };
    client.list("staging/", note);
    client.list_uploads("staging/", note);
    return count;
  }

private:
  std::string path_of(const Digest& digest, BlobForm form) const {
    return S3Server::shared().file_of(options_, "blobs/sha256/" + blob_path(digest, form));
  }
  TemporaryFolder folder_;
  PosixEnv env_;
  const S3StoreOptions options_;

protected:
  /// Null: the store's own.
  virtual std::unique_ptr<BlobIndex> index() { return nullptr; }

private:
  int machines_ = 0;
};

/// The index is rows of a database, of which each machine is a replica.
class SharedS3Place final : public S3Place {
public:
  SharedS3Place() : catalog_(postgres_options(fresh_postgres_schema())) {}

private:
  std::unique_ptr<BlobIndex> index() override {
    ReplicaRow replica;
    replica.id = replica.name = "machine-" + std::to_string(replicas_++);
    constexpr int64_t kLong = 3'600'000;
    catalog_.begin_replica(replica, kLong);
    SharedIndexOptions options;
    options.replica = replica.id;
    return std::make_unique<SharedBlobIndex>(catalog_, std::move(options));
  }
  PostgresCatalog catalog_;
  int replicas_ = 0;
};

}  // namespace

std::unique_ptr<BlobPlace> make_blob_place(const std::string& kind) {
  if (kind == "s3_shared") return std::make_unique<SharedS3Place>();
  if (kind == "s3") return std::make_unique<S3Place>();
  if (kind == "memory") return std::make_unique<FolderPlace>(std::make_unique<MemoryEnv>());
  return std::make_unique<FolderPlace>(std::make_unique<PosixEnv>());
}

}  // namespace tensormill::storage
