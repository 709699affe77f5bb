// A tuning child that asks, and does not read its answer.
#include "server/services/jobs/tune_search.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/memory_file.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "tests/storage/support.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::tune_search_test {
namespace {

/// A job whose child holds its pipe of answers open, and asks for one measurement.
class Context final : public jobs::JobContext {
public:
  const storage::JobRow& job() const override { return job_; }
  const std::string& folder() const override { return job_.id; }
  using jobs::JobContext::run_child;
  std::string run_child(jobs::ChildSpec spec, const TakeEvent& take) override {
    answers_ = FileDescriptor(::fcntl(spec.descriptors.back(), F_DUPFD_CLOEXEC, 0));
    take("measure", R"({"requests":[],"timeout_s":1})");
    return "{}";
  }
  jobs::ChildUse last_child() const override { return {}; }
  std::unique_ptr<jobs::MeasureGate::Quiet> quiet() override { return nullptr; }
  void progress(std::string_view) override {}
  void event(std::string_view, std::string_view) override {}
  void keep_alive() override { throw Error(ErrorCode::kCancelled, "the job was cancelled"); }
  void log(std::string_view) override {}

private:
  storage::JobRow job_;
  FileDescriptor answers_;
};

/// Whose answer is longer than a pipe holds.
class Bench final : public TuneBench {
public:
  const std::string& cpu() override { return cpu_; }
  bool takes_batches() const override { return true; }
  Json measure(const Json&, double) override { return Json::array({std::string(size_t{1} << 20, 'x')}); }
  Json roof(const target::Target&) override { return nullptr; }
  PackageTiming benchmark(const PackageFiles&, const BenchmarkRequest&) override { return {}; }

private:
  const std::string cpu_ = "a cpu";
};

TEST(TuneSearch, AnAnswerThatTheChildDoesNotReadIsLeftWhenTheJobIsCancelled) {
  storage::TemporaryFolder folder;
  storage::MemoryEnv env;
  storage::FolderBlobStore blobs(env, "/store");
  storage::SqliteCatalog catalog(env, "/store/catalog.db");
  TuningRecords records(catalog, target::host_target());
  StoreDesk desk(blobs, catalog, records);
  const PackageSigner signer("");
  const CompileTools tools{{blobs, desk, signer, {}}, catalog, records};
  Context context;
  Bench bench;
  const FileDescriptor code = memory_file("code"), tensors = memory_file("tensors");
  const Json resolved = {{"compile", {{"target", "llvm"}, {"opt_level", 2}}}, {"threads", 1}};
  TuneSearch search(tools, context, resolved, bench, {code.get(), tensors.get()});
  EXPECT_ERROR(search.run(GraphFiles(folder.path())), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tensormill::server::tune_search_test
