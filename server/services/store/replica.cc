#include "server/services/store/replica.h"

#include <array>
#include <random>
#include <utility>

#include "runtime/base/hex.h"
#include "storage/replica/shared_blob_index.h"

namespace tensormill::server {

namespace {

constexpr const char* kNameFile = "/replica.name";
constexpr const char* kStoreIdFact = "blobs/store-id";

std::string random_name() {
  std::random_device random;
  std::array<uint8_t, 8> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return hex_text(bytes);
}

/// Made once for a folder, so that a run of the process is known to follow another one.
std::string name_of(storage::Env& env, const std::string& root) {
  const std::string path = root + kNameFile;
  if (env.exists(path)) return storage::read_all(env, path);
  const std::string name = random_name();
  {
    const auto file = env.open(path + ".new", storage::OpenMode::kCreate);
    file->truncate(0);
    file->write(0, name);
    file->sync();
  }
  env.rename(path + ".new", path);
  env.sync_folder(root);
  return name;
}

}  // namespace

std::unique_ptr<Replica> Replica::make(const config::Settings& settings, storage::Env& env,
                                       const std::string& root, storage::StoreCatalog& opened) {
  if (opened.shared_id.empty() || settings.blobs.empty()) return nullptr;
  return std::make_unique<Replica>(*opened.catalog, opened.shared_id, name_of(env, root),
                                   settings.replica_address, settings.job_lease);
}

Replica::Replica(storage::Catalog& catalog, std::string shared_id, const std::string& name,
                 const std::string& address, std::chrono::milliseconds lease)
    : catalog_(catalog), shared_id_(std::move(shared_id)), lease_(catalog, name, address, lease) {
  catalog_.require_blobs();
}

std::string shared_store_id(storage::Catalog& catalog, const std::string& shared_id,
                            const std::string& known) {
  if (const auto kept = catalog.find_fact(kStoreIdFact)) return *kept;
  const std::string id = known.empty() ? shared_id : known;
  put_store_id(catalog, id);
  return id;
}

void put_store_id(storage::Catalog& catalog, const std::string& id) { catalog.put_fact(kStoreIdFact, id); }

SharedPlace Replica::place() {
  SharedPlace place;
  place.store_id = [this](const std::string& known) { return shared_store_id(catalog_, shared_id_, known); };
  place.index = [this] {
    storage::SharedIndexOptions options;
    options.replica = id();
    options.is_sure = [this] { return lease_.is_sure(); };
    return std::make_unique<storage::SharedBlobIndex>(catalog_, std::move(options));
  };
  return place;
}

}  // namespace tensormill::server
