// The services over a real store with a real package: compile, run, host, collect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>

#include "api/services/services.h"
#include "runtime/exec/graph_executor.h"
#include "server/metrics/registry.h"
#include "server/services/deployments/isolated_package.h"
#include "server/services/jobs/run_package.h"
#include "server/services/store/blob_collector.h"
#include "server/services/store/blob_content.h"
#include "server/services/store/graph_cache.h"
#include "server/services/store/package_archive.h"
#include "server/services/store/package_service.h"
#include "storage/catalog/sqlite_db.h"
#include "tests/deaf_program.h"
#include "tests/outcome.h"
#include "tests/server/store.h"

namespace tensormill::server {
namespace {

using testing::HasSubstr;

services::NamedTensors picture() { return {{"image", Tensor::zeros(DType::kFloat32, {1, 1, 28, 28})}}; }

services::RunResult run(HostedPackage& package, services::NamedTensors inputs,
                        const services::RunOptions& options = {}, const services::CallContext& context = {}) {
  return result_of<services::RunResult>(
      [&](const auto& done) { package.run(std::move(inputs), options, context, done); });
}

class Hosted : public testing::Test {
protected:
  std::shared_ptr<HostedPackage> load(const InProcessOptions& options, const HostOptions& how = {}) {
    host_ = make_in_process_host(pool_, options);
    const storage::PackageRow row = require_package(open_.catalog, digits_package());
    return host_->load(open_package(open_members(open_.blobs, row)), how);
  }
  Store store_;
  OpenStore open_{store_};
  parallel::ThreadPool pool_{2};
  std::unique_ptr<ExecutorHost> host_;
};

TEST_F(Hosted, AProcessOfItsOwnIsOneOfTheChildrenForAsLongAsItServes) {
  const MemberBlobs members = open_members(open_.blobs, require_package(open_.catalog, digits_package()));
  IsolationOptions isolation;
  isolation.memory = uint64_t{64} << 20;
  // One byte less than two processes may have. What their executors say that they take would leave room for
  // both.
  jobs::ChildSlots slots({2 * process_memory(isolation, 1) - 1, 2, 0, std::chrono::hours(1)});
  isolation.slots = &slots;
  auto package = load_isolated(members, {}, isolation);
  EXPECT_EQ(slots.running(), 1);
  EXPECT_EQ(run(*package, picture()).outputs.at(0).first, "logits");
  EXPECT_ERROR(load_isolated(members, {}, isolation), ErrorCode::kMemoryBudget);
  EXPECT_EQ(slots.running(), 1);
  package.reset();
  EXPECT_EQ(slots.running(), 0);
  package = load_isolated(members, {}, isolation);
  EXPECT_EQ(slots.running(), 1);
  package.reset();
  // Each instance has a wall of run.memory; one process may always have all that there is.
  package = load_isolated(members, {.instances = 2}, isolation);
  EXPECT_EQ(slots.running(), 1);
}

TEST_F(Hosted, AProcessThatReadsNoRequestCostsTheRequestAtItsDeadline) {
  const MemberBlobs members = open_members(open_.blobs, require_package(open_.catalog, digits_package()));
  storage::TemporaryFolder folder;
  IsolationOptions isolation;
  isolation.program =
      deaf_program(folder.path(), R"({"data":{"inputs":[],"memory_bytes":0,"outputs":[]},"type":"ready"})");
  const auto package = load_isolated(members, {}, isolation);
  services::RunOptions options;
  options.timeout = std::chrono::milliseconds(10);
  // More than a pipe holds.
  EXPECT_ERROR(run(*package, {{"image", Tensor::zeros(DType::kFloat32, {1 << 20})}}, options),
               ErrorCode::kJobFailed);
}

TEST_F(Hosted, RunsManyAtOnceWithTheSameAnswer) {
  const auto package = load({.threads = 2}, {.instances = 2});
  const services::RunResult expected = run(*package, picture());
  ASSERT_EQ(expected.outputs.at(0).first, "logits");
  std::vector<std::jthread> clients;
  std::atomic<int> equal{0};
  for (int client = 0; client < 6; ++client) {
    clients.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const services::RunResult result = run(*package, picture());
        const Tensor& a = result.outputs.at(0).second;
        const Tensor& b = expected.outputs.at(0).second;
        bool same = a.shape() == b.shape();
        for (int64_t k = 0; same && k < a.num_elements(); ++k) {
          same = a.element_as_double(k) == b.element_as_double(k);
        }
        equal += same ? 1 : 0;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(equal, 60);
}

TEST_F(Hosted, IsNotQuickWhileItWouldWaitForACore) {
  const auto package = load({.threads = 2});
  EXPECT_FALSE(package->is_quick()) << "nothing is known yet";
  for (int i = 0; i < 20; ++i) run(*package, picture());
  const parallel::Lease all = pool_.lease(2);
  EXPECT_FALSE(package->is_quick());
}

TEST_F(Hosted, RefusesWhatDoesNotFit) {
  const auto package = load({});
  EXPECT_ERROR(run(*package, {}), ErrorCode::kInvalidTensor);
  services::NamedTensors wrong = {{"image", Tensor::zeros(DType::kFloat64, {1, 1, 28, 28})}};
  EXPECT_ERROR(run(*package, wrong), ErrorCode::kInvalidTensor);
  services::NamedTensors twice = picture();
  twice.push_back(twice.front());
  EXPECT_ERROR(run(*package, twice), ErrorCode::kInvalidTensor);
  EXPECT_EQ(run(*package, picture()).outputs.size(), 1U) << "a refusal leaves nothing behind";
}

TEST_F(Hosted, HasADeadlineForEachRequestAndHearsOfClientsThatLeave) {
  const auto package = load({});
  services::RunOptions options;
  options.timeout = std::chrono::milliseconds(0);
  EXPECT_ERROR(run(*package, picture(), options), ErrorCode::kDeadlineExceeded);
  std::stop_source gone;
  gone.request_stop();
  services::CallContext context;
  context.cancelled = gone.get_token();
  EXPECT_ERROR(run(*package, picture(), {}, context), ErrorCode::kCancelled);
}

TEST_F(Hosted, NamesTheStageThatFailed) {
  try {
    load({.memory_budget = 1000});
    FAIL() << "1000 bytes were enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kMemoryBudget);
    EXPECT_THAT(error.message(), HasSubstr("bind: "));
  }
  EXPECT_ERROR(load({.run_timeout = std::chrono::milliseconds(0)}), ErrorCode::kDeadlineExceeded);
}

TEST_F(Hosted, MeasuresAndProfiles) {
  const auto package = load({});
  services::RunOptions options;
  options.fill_mode = services::FillMode::kRandom;
  options.repeat = 3;
  options.number = 2;
  options.profile = true;
  const services::RunResult result = run(*package, {}, options);
  EXPECT_EQ(result.timing.runs_ms.size(), 3U);
  EXPECT_THAT(result.timing.profile_json, HasSubstr("duration_us"));
}

TEST(Fill, ModesHaveTheirNames) {
  EXPECT_EQ(parse_fill_mode("zeros"), services::FillMode::kZeros);
  EXPECT_EQ(parse_fill_mode("ones"), services::FillMode::kOnes);
  EXPECT_EQ(parse_fill_mode("random"), services::FillMode::kRandom);
  EXPECT_ERROR(parse_fill_mode("twos"), ErrorCode::kInvalidArgument);
}

TEST(Fill, FollowsFromTheSeedAndFitsTheType) {
  const auto fill = [](DType dtype, uint64_t seed) {
    return filled_tensor(dtype, {1000}, services::FillMode::kRandom, seed);
  };
  const Tensor first = fill(DType::kFloat32, 1), again = fill(DType::kFloat32, 1),
               other = fill(DType::kFloat32, 2);
  int different = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(first.element_as_double(i), again.element_as_double(i));
    EXPECT_GE(first.element_as_double(i), -1.0);
    EXPECT_LT(first.element_as_double(i), 1.0);
    different += first.element_as_double(i) != other.element_as_double(i) ? 1 : 0;
  }
  EXPECT_GT(different, 990);
  const Tensor bytes = fill(DType::kInt8, 3), bools = fill(DType::kBool, 3);
  int64_t set = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(bytes.element_as_int(i), 0);
    EXPECT_LT(bytes.element_as_int(i), 128);
    set += bools.element_as_int(i);
  }
  EXPECT_GT(set, 400);
  EXPECT_LT(set, 600);
}

TEST_F(Hosted, InstancesCountAgainstTheMemoryOfAllDeployments) {
  InProcessOptions options;
  options.arenas = std::make_shared<MemoryBudget>("deployments.memory", uint64_t{1} << 40);
  uint64_t each = 0;
  {
    const auto one = load(options);
    each = options.arenas->used();
    EXPECT_EQ(each, static_cast<uint64_t>(one->statistics().memory_bytes));
    EXPECT_GT(each, 0U);
  }
  EXPECT_EQ(options.arenas->used(), 0U) << "unloaded";
  options.arenas = std::make_shared<MemoryBudget>("deployments.memory", 10 * each);
  HostOptions many;
  many.instances = 64;
  EXPECT_ERROR(load(options, many), ErrorCode::kMemoryBudget);
  many.instances = 6;
  const auto first = load(options, many);
  EXPECT_ERROR(load(options, many), ErrorCode::kMemoryBudget);
  EXPECT_EQ(options.arenas->used(), 6 * each);
}

TEST(Compile, AJobPublishesAPackageWithItsTextsAndLeavesNoProcess) {
  const storage::TemporaryFolder folder;
  {
    Server server(settings_for(folder.path()));
    const std::string package = compile_digits(server);
    EXPECT_EQ(package, digits_package()) << "another store, the same package";
    const services::Services& services = server.services();
    EXPECT_THAT(services.models->graph_json("digits", services::GraphStage::kOptimized, {}),
                HasSubstr("fused"));
    // Whose client has gone gets what is known and starts no child.
    std::stop_source gone;
    gone.request_stop();
    services::CallContext context;
    context.cancelled = gone.get_token();
    EXPECT_THAT(services.models->graph_json("digits", services::GraphStage::kOptimized, context),
                HasSubstr("fused"));
    EXPECT_ERROR(services.models->graph_json("digits", services::GraphStage::kImported, context),
                 ErrorCode::kCancelled);
    for (const auto stage : {services::CodeStage::kRelay, services::CodeStage::kTe, services::CodeStage::kTir,
                             services::CodeStage::kLl, services::CodeStage::kAsm}) {
      const auto code = services.packages->code(package, stage);
      EXPECT_GT(code->size(), 100U);
      EXPECT_NE(std::dynamic_pointer_cast<BlobContent>(code), nullptr)
          << "no copy of its own for each reader";
    }
    services::RunOptions options;
    options.fill_mode = services::FillMode::kOnes;
    EXPECT_EQ(services.packages->run(package, {}, options, {}).outputs.size(), 1U);
    const auto listed = services.packages->list({});
    ASSERT_EQ(listed.items.size(), 1U);
    EXPECT_EQ(Digest::of(listed.items[0].metadata_json).text(), package);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left, or not reaped";
    EXPECT_EQ(errno, ECHILD);
  }
}

TEST(Compile, AModelThatIsBrokenLeavesNothing) {
  const storage::TemporaryFolder folder;
  Server server(settings_for(folder.path()));
  http::BytesBody body(digits_model().substr(0, 5000));
  EXPECT_ERROR(server.services().models->import_model({"m", "onnx", false, std::nullopt}, body, {}),
               ErrorCode::kInvalidModel);
  EXPECT_THAT(server.metrics().text(), HasSubstr("store_objects 0\n"));
}

TEST(GraphCache, KeepsTheLastUsedOnesWithinItsBound) {
  GraphCache cache(100);
  cache.put("a", std::string(25, 'a'));
  cache.put("b", std::string(25, 'b'));
  cache.put("large", std::string(26, 'l'));
  EXPECT_FALSE(cache.find("large")) << "more than a quarter";
  cache.put("c", std::string(25, 'c'));
  cache.put("d", std::string(25, 'd'));
  EXPECT_TRUE(cache.find("a"));
  cache.put("e", std::string(25, 'e'));
  EXPECT_FALSE(cache.find("b")) << "the one that was not used for the longest time";
  EXPECT_EQ(cache.find("a"), std::string(25, 'a'));
  EXPECT_TRUE(cache.find("e"));
}

/// A package as an older program put it: `sql` has taken its metadata from the catalog, or changed it.
void expect_listed_after(const std::string& sql, const std::string& kept) {
  Store store;
  const Digest id = *Digest::parse(digits_package());
  storage::SqliteDb(
      store.env, store.root + "/catalog.db", [] { return int64_t{0}; }, 1000)
      .execute(sql);
  std::string text;
  {
    const Server server(settings_for(store.root));
    text = server.services().packages->list({}).items.at(0).metadata_json;
    EXPECT_EQ(Digest::of(text), id);
    EXPECT_EQ(server.services().packages->get(id.text()).metadata_json, text);
  }
  OpenStore open(store);
  EXPECT_EQ(open.catalog.package_metadata({id})[id], kept.empty() ? text : kept);
}

TEST(Packages, AListKeepsTheMetadataOfThoseThatCameWithout) {
  expect_listed_after("DELETE FROM package_metadata", "");
}

TEST(Packages, MetadataThatIsNotThePackagesIsNotTold) {
  expect_listed_after("UPDATE package_metadata SET text = '{}'", "{}");
}

TEST(Collector, TakesWhatWasExpiredOrRemoved) {
  Store store;
  OpenStore open(store);
  BlobCollector collector(open.blobs, open.catalog, open.uploads);
  EXPECT_EQ(collector.preview().blobs, 0U);
  ASSERT_TRUE(open.catalog.remove_package(*Digest::parse(digits_package())));
  const storage::Collected would = collector.preview();
  EXPECT_GE(would.blobs, 9U) << "four members and five texts";
  const storage::Collected done = collector.collect();
  EXPECT_EQ(done.blobs, would.blobs);
  EXPECT_EQ(done.stored_bytes, would.stored_bytes);
  EXPECT_FALSE(open.blobs.exists(*Digest::parse(digits_package())));
}

TEST(Collector, LooksAtAllOnItsOwnThreadWhereItIsAskedTo) {
  Store store;
  OpenStore open(store);
  BlobCollector collector(open.blobs, open.catalog, open.uploads);
  ASSERT_TRUE(open.catalog.remove_package(*Digest::parse(digits_package())));
  collector.collect_soon();
  while (collector.preview().blobs != 0) std::this_thread::yield();
  EXPECT_FALSE(open.blobs.exists(*Digest::parse(digits_package())));
}

TEST(Collector, ARemovedPackageIsLookedAtAlone) {
  Store store;
  OpenStore open(store);
  BlobCollector collector(open.blobs, open.catalog, open.uploads);
  const auto id = *Digest::parse(digits_package());
  const storage::PackageRow row = *open.catalog.find_package(id);
  storage::PackageRow other = row;
  other.id = open.blobs.put("another package, which shares all but one member");
  const Digest own = row.members.back().digest;
  std::erase_if(other.members,
                [&](const auto& member) { return member.digest == id || member.digest == own; });
  open.catalog.put_package(other);
  const Digest beside = open.blobs.put("stray of another");
  collector.collect_released();
  EXPECT_FALSE(open.blobs.exists(beside));
  ASSERT_TRUE(open.catalog.remove_package(id));
  std::vector<Digest> named = {id};
  for (const storage::MemberRow& member : row.members) named.push_back(member.digest);
  EXPECT_EQ(collector.collect_released(named).blobs, 2U) << "its metadata and the member that it had alone";
  EXPECT_FALSE(open.blobs.exists(id) || open.blobs.exists(own));
  for (const storage::MemberRow& member : other.members) EXPECT_TRUE(open.blobs.exists(member.digest));
  EXPECT_EQ(collector.preview().blobs, 0U) << "a look at all finds no more";
}

TEST(Collector, ComesBackForWhatWasHeld) {
  Store store;
  OpenStore open(store);
  BlobCollector collector(open.blobs, open.catalog, open.uploads, {.retry = std::chrono::milliseconds(1)});
  std::optional<storage::BlobHold> hold(std::in_place, open.blobs);
  const Digest stray = open.blobs.put("stray");
  EXPECT_EQ(collector.collect().held, 1U);
  hold.reset();
  while (open.blobs.exists(stray)) std::this_thread::yield();
  EXPECT_EQ(collector.preview().blobs, 0U);
}

}  // namespace
}  // namespace tensormill::server
