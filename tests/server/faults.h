/// A server on a disk that fails when a test says so. Test fixture.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/services/services.h"
#include "runtime/base/json.h"
#include "server/services/store/fsck.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/server/store.h"

namespace tensormill::server {

/// The highest k that any operation may need.
inline constexpr uint64_t kMost = 400;

class FaultsTest : public testing::Test {
protected:
  explicit FaultsTest(const std::function<void(config::Settings&)>& change = [](config::Settings&) {})
      : server_(std::make_unique<Server>(changed(settings_for(folder_.path()), change), &env_)),
        services_(server_->services()),
        package_(compile_digits(*server_)) {}
  static config::Settings changed(config::Settings settings,
                                  const std::function<void(config::Settings&)>& change) {
    change(settings);
    return settings;
  }

  /// The next start removes what stayed, and finds a store that is whole.
  void TearDown() override {
    if (server_) server_->stop();
    server_.reset();
    EXPECT_EQ(fsck().problems, std::vector<std::string>());
    EXPECT_TRUE(env_.list(folder_.path() + "/tmp").empty());
  }

  /// Of a store that no server has open.
  FsckReport fsck() {
    storage::SqliteCatalog catalog(env_, folder_.path() + "/catalog.db");
    storage::FolderBlobStore blobs(env_, folder_.path());
    storage::FolderUploadStore uploads(env_, folder_.path(), blobs, {}, [] { return int64_t{0}; });
    return check_store(blobs, catalog, uploads);
  }

  void import(const std::string& name, const std::string& bytes) {
    http::BytesBody body(bytes);
    services_.models->import_model({name, "onnx", true, std::nullopt}, body, {});
  }

  /// Calls `operation` with the k-th change failing until it meets no failure any more; `undo` brings back
  /// the state before. Between the changes that are tried are `stride`.
  void fail_each(const std::function<void()>& operation, const std::function<void()>& undo,
                 uint64_t stride = 1) {
    uint64_t failures = 0;
    for (uint64_t k = 1; k < kMost; k += stride) {
      env_.fail_operations(k, 1, ENOSPC);
      const uint64_t before = env_.operations();
      bool failed = false;
      try {
        operation();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kDiskFull) << "change " << k << ": " << error.what();
        failed = true;
      }
      env_.fail_operations(1, 0, 0);
      if (!failed && env_.operations() - before < k) {
        EXPECT_GT(failures, 1U);
        return;
      }
      failures += failed ? 1 : 0;
      undo();
      services_.store->collect(false);
      // The removal of an unfinished write may be what fails: it stays until the next start, alone.
      const size_t stay = env_.list(folder_.path() + "/tmp").size();
      EXPECT_LE(stay, unfinished_ + 1) << "change " << k;
      unfinished_ = stay;
      operation();
      undo();
    }
    FAIL() << "more changes than expected";
  }

  storage::PowerCutEnv env_;
  storage::TemporaryFolder folder_;
  std::unique_ptr<Server> server_;
  const services::Services& services_;
  std::string package_;
  size_t unfinished_ = 0;
};

}  // namespace tensormill::server
