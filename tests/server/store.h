/// A store with one real package in it, and an executor host whose behaviour the test chooses.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/settings.h"
#include "server/services/deployments/deployment_service.h"
#include "server/services/forms.h"
#include "server/services/server.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/storage/support.h"

namespace tensormill::server {

/// Settings of a server on `folder` with what else the tests share.
config::Settings settings_for(const std::string& folder);
/// The bytes of tests/models/digits.onnx.
std::string digits_model();
/// Uploads the digits model to the server and compiles it; the package's id.
std::string compile_digits(Server& server, int64_t batch = 1);

/// Made once for all tests: a folder with the compiled digits model.
const std::string& digits_store();
const std::string& digits_package();
/// Of that package, with nothing else set.
services::DeploymentSpec digits_spec(const std::string& version = "1");

/// Blobs and catalog on a copy of digits_store(), without a process around them.
struct Store {
  Store();
  storage::TemporaryFolder folder;
  std::string root;
  storage::PosixEnv env;
};
/// What a process has open.
struct OpenStore {
  explicit OpenStore(Store& store)
      : catalog(store.env, store.root + "/catalog.db"),
        blobs(store.env, store.root),
        uploads(store.env, store.root, blobs, {}, [] { return int64_t{1'700'000'000'000}; }) {}
  storage::SqliteCatalog catalog;
  storage::FolderBlobStore blobs;
  storage::FolderUploadStore uploads;
};

/// Loads by asking `on_load`; what it hosts answers with its version as the only output.
class FakeHost final : public ExecutorHost {
public:
  std::shared_ptr<HostedPackage> load(std::shared_ptr<const package::Package> package,
                                      const HostOptions& options) override;
  std::function<void()> on_load = [] {};
  std::function<void()> on_admit = [] {};
  std::atomic<int> loads{0};
};

}  // namespace tensormill::server
