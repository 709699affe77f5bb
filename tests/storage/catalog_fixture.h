/// What every back end of Catalog is tested with. A new back end is one more row in catalog_backends.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "storage/catalog/catalog.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/postgres_catalog.h"
#include "tests/storage/private_postgres.h"
#include "tests/storage/support.h"

namespace tensormill::storage {

/// A catalog that can be closed and opened again, with a clock that the test moves.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) = 0;
};

class SqliteInMemory final : public Backend {
public:
  std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) override {
    return std::make_unique<SqliteCatalog>(env_, "/catalog.db", SqliteCatalogOptions{std::move(now_ms)});
  }

private:
  MemoryEnv env_;
};

class SqliteOnDisk final : public Backend {
public:
  std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) override {
    return std::make_unique<SqliteCatalog>(env_, folder_.path() + "/catalog.db",
                                           SqliteCatalogOptions{std::move(now_ms)});
  }

private:
  TemporaryFolder folder_;
  PosixEnv env_;
};

class Postgres final : public Backend {
public:
  std::unique_ptr<Catalog> open(std::function<int64_t()> now_ms) override {
    return std::make_unique<PostgresCatalog>(postgres_options(url_, std::move(now_ms)));
  }

private:
  const std::string url_ = fresh_postgres_schema();
};

struct BackendRow {
  std::string name;
  std::function<std::unique_ptr<Backend>()> make;
  bool is_shared = false;  ///< several processes may have it open
};

inline std::ostream& operator<<(std::ostream& out, const BackendRow& row) { return out << row.name; }

inline std::vector<BackendRow> catalog_backends() {
  return {
      {"sqlite_memory", [] { return std::make_unique<SqliteInMemory>(); }},
      {"sqlite_disk", [] { return std::make_unique<SqliteOnDisk>(); }},
      {"postgresql", [] { return std::make_unique<Postgres>(); }, true},
  };
}

class CatalogTest : public testing::TestWithParam<BackendRow> {
protected:
  CatalogTest() : backend_(GetParam().make()) { reopen(); }
  void reopen() {
    catalog_.reset();
    catalog_ = backend_->open([this] { return now_; });
  }
  static Digest digest(const std::string& text) { return Digest::of(text); }
  static ModelRow model(const std::string& text) {
    return {digest(text), {digest(text + ".0"), digest(text + ".1")}, R"({"format":"onnx"})"};
  }
  static PackageRow package(const std::string& text) {
    return {digest(text),
            {{"mod.so", digest(text + ".so"), 7}, {"mod.params", digest(text + ".params"), 9}},
            digest(text + ".tar"),
            99,
            R"({"target":"llvm"})"};
  }
  static JobSubmission submission(const std::string& key) {
    JobSubmission job;
    job.kind = "compile";
    job.subject = "subject of " + key;
    job.action_key = key;
    job.request = R"({"model":"m"})";
    job.resolved = R"({"model":"sha256:0"})";
    return job;
  }
  std::string submit(const std::string& key) { return catalog_->submit_job(submission(key)).job.id; }
  /// Claims the next compile job, which must be there.
  JobClaim claim(const std::string& owner = "w1") {
    const std::optional<JobRow> job = catalog_->claim_job({"compile"}, owner, 10'000);
    if (!job) throw InternalError("nothing to claim");
    return {job->id, job->attempt, job->owner};
  }
  JobRow job(const std::string& id) { return *catalog_->find_job(id); }
  std::vector<std::string> event_types(const std::string& id) {
    std::vector<std::string> types;
    for (const JobEventRow& event : catalog_->job_events(id, 0, 100)) types.push_back(event.type);
    return types;
  }

  int64_t now_ = 1'700'000'000'000;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Catalog> catalog_;
};

}  // namespace tensormill::storage
