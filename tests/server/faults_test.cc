// Every operation of a server with the k-th change of its disk failing, for all k: it says that the disk is
// full, or its job fails and says so; nothing half-written stays; the same operation works once there is room
// again.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "api/services/services.h"
#include "runtime/base/json.h"
#include "server/services/fsck.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "storage/upload/upload_store.h"
#include "tests/server/store.h"

namespace tensormill::server {
namespace {

/// The highest k that any operation may need.
constexpr uint64_t kMost = 400;

class FaultsTest : public testing::Test {
protected:
  FaultsTest()
      : server_(std::make_unique<Server>(settings_for(folder_.path()), &env_)),
        services_(server_->services()),
        package_(compile_digits(*server_)) {}

  /// The next start removes what stayed, and finds a store that is whole.
  void TearDown() override {
    server_->stop();
    server_.reset();
    {
      storage::SqliteCatalog catalog(env_, folder_.path() + "/catalog.db");
      storage::BlobStore blobs(env_, folder_.path());
      storage::UploadStore uploads(env_, folder_.path(), blobs, {}, [] { return int64_t{0}; });
      EXPECT_EQ(check_store(blobs, catalog, uploads).problems, std::vector<std::string>());
    }
    EXPECT_TRUE(env_.list(folder_.path() + "/tmp").empty());
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

TEST_F(FaultsTest, Imports) {
  const std::string bytes = digits_model() + std::string("\x12\x04name", 6);
  fail_each([&] { import("other", bytes); },
            [&] {
              const auto forget = [&](const std::string& reference) {
                try {
                  services_.models->remove(reference);
                } catch (const Error& error) {
                  EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
                }
              };
              forget("other");
              forget(Digest::of(bytes).text());
            });
}

TEST_F(FaultsTest, Uploads) {
  const std::string bytes(3000, 'u');
  std::string id;
  fail_each(
      [&] {
        id = services_.store->begin_upload().id;
        http::BytesBody body(bytes);
        services_.store->append_upload(id, {}, body);
        services_.store->finish_upload(id, Digest::of(bytes));
      },
      [&] {
        if (!id.empty()) services_.store->remove_upload(id);
        id.clear();
      });
}

TEST_F(FaultsTest, CompileJobs) {
  // Each is a child process: some of the changes stand for all.
  const auto compile = [&] {
    services::CompileRequest request;
    request.model = "digits";
    request.target = "llvm -mcpu=native";
    request.opt_level = 0;
    request.force = true;
    request.input_shapes["image"] = {Dim(int64_t{1}), Dim(int64_t{1}), Dim(int64_t{28}), Dim(int64_t{28})};
    const std::string id = services_.jobs->submit_compile(request, {}, {}).job.id;
    const services::Job job = services_.jobs->wait(id, std::chrono::minutes(5), {});
    ASSERT_TRUE(services::is_final(job.state));
    if (job.state == services::JobState::kSucceeded) return;
    ASSERT_TRUE(job.error);
    throw Error(job.error->code, job.error->message);
  };
  fail_each(
      compile, [] {}, 13);
}

TEST_F(FaultsTest, Deployments) {
  services::DeploymentSpec spec;
  spec.package = package_;
  fail_each([&] { services_.deployments->put("digits", spec, {}); },
            [&] {
              if (services_.deployments->has("digits"))
                services_.deployments->remove("digits", std::nullopt, {});
            });
  services_.deployments->put("digits", spec, {});
  fail_each([&] { services_.deployments->remove("digits", std::nullopt, {}); },
            [&] { services_.deployments->put("digits", spec, {}); });
}

}  // namespace
}  // namespace tensormill::server
