// Nothing that was acknowledged is lost, whenever the power goes: uploads, publications, jobs and names over
// an Env whose power is cut after every k-th operation, blobs and database alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "tests/scope.h"
#include "tests/storage/support.h"

namespace tensormill::storage::durability_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/// The code is the same at every cut; what a sanitizer looks for shows at some of them.
const uint64_t kStride = stride(31, 11);
#else
const uint64_t kStride = stride(5, 1);
#endif

/// Small, so that the log is folded into the database, and starts over, in the middle of the story.
constexpr int kCheckpointPages = 24;
const std::string kRoot = "/data/store";

struct Store {
  explicit Store(Env& env)
      : blobs(env, kRoot),
        catalog(env, kRoot + "/catalog.db", SqliteCatalogOptions{nullptr, kCheckpointPages}) {}
  FolderBlobStore blobs;
  SqliteCatalog catalog;
};

/// What has been acknowledged: each entry checks one promise on a store that was opened again.
class Promises {
public:
  void add(std::string what, std::function<bool(Store&)> holds) {
    checks_[std::move(what)] = std::move(holds);
  }
  void withdraw(const std::string& what) { checks_.erase(what); }
  /// Empty when all hold.
  std::string broken(Store& store) const {
    for (const auto& [what, holds] : checks_) {
      if (!holds(store)) return "lost: " + what;
    }
    return "";
  }

private:
  std::map<std::string, std::function<bool(Store&)>> checks_;
};

class Story {
public:
  Story(Env& env, Promises& promises) : env_(env), promises_(promises) {}

  /// Throws when the power goes.
  void play() {
    {
      Store store(env_);
      upload(store, "first", "resnet");
      upload(store, "second", "bert");
      run_job(store, "compile first");
      move_name(store, "resnet", Digest::of("second"));
      forget(store, "first");
    }
    Store store(env_);
    store.catalog.requeue_orphans(Orphans::kAtStart, 0);
    upload(store, "third", "mlp");
    run_job(store, "compile third");
    deploy(store);
  }

private:
  Digest put(Store& store, const std::string& bytes, BlobForm form = BlobForm::kPlain) {
    const Digest id = store.blobs.put(bytes, {.form = form});
    promises_.add("blob " + bytes,
                  [id, bytes](Store& again) { return again.blobs.open(id)->text() == bytes; });
    return id;
  }

  void upload(Store& store, const std::string& bytes, const std::string& name) {
    const Digest id = put(store, bytes);
    store.catalog.put_model({id, {id}, "{}"}, NameChange{"model", name, false});
    promises_.add("model " + bytes, [id](Store& again) { return again.catalog.find_model(id).has_value(); });
    promises_.add("name " + name,
                  [id, name](Store& again) { return again.catalog.find_name("model", name) == id; });
  }

  void run_job(Store& store, const std::string& key) {
    JobSubmission submission;
    submission.kind = "compile";
    submission.action_key = key;
    const std::string id = store.catalog.submit_job(submission).job.id;
    promises_.add("job " + key, [id](Store& again) { return again.catalog.find_job(id).has_value(); });
    const std::optional<JobRow> job = store.catalog.claim_job({"compile"}, "worker", 1'000'000);
    const JobClaim claim{job->id, job->attempt, job->owner};
    promises_.add("claim of " + key, [id](Store& again) {
      const std::optional<JobRow> row = again.catalog.find_job(id);
      return row && row->attempt == 1;
    });
    store.catalog.heartbeat_job(claim, 1'000'000, R"({"stage":"code"})", {{0, "log", "{}"}});
    promises_.add("heartbeat of " + key,
                  [id](Store& again) { return !again.catalog.job_events(id, 2, 9).empty(); });
    JobFinish finish;
    finish.package.emplace();
    finish.package->id = put(store, key + " metadata");
    finish.package->members = {{"mod.so", put(store, key + " code"), 1},
                               {"mod.params", put(store, key + std::string(3000, 'w')), 2}};
    finish.log = put(store, key + std::string(500, 'l'), BlobForm::kCompressed);
    store.catalog.finish_job(claim, finish);
    promises_.add("package of " + key, [id](Store& again) {
      const std::optional<JobRow> row = again.catalog.find_job(id);
      return row && row->state == JobState::kSucceeded && again.catalog.find_package(*row->package);
    });
  }

  void move_name(Store& store, const std::string& name, const Digest& id) {
    promises_.withdraw("name " + name);
    store.catalog.set_name({"model", name, true}, id);
    promises_.add("name " + name,
                  [id, name](Store& again) { return again.catalog.find_name("model", name) == id; });
  }

  /// Rows go before bytes, as they came after them.
  void forget(Store& store, const std::string& bytes) {
    const Digest id = Digest::of(bytes);
    promises_.withdraw("model " + bytes);
    store.catalog.remove_model(id);
    promises_.add("no model " + bytes,
                  [id](Store& again) { return !again.catalog.find_model(id).has_value(); });
    promises_.withdraw("blob " + bytes);
    store.blobs.remove(id);
    promises_.add("no blob " + bytes, [id](Store& again) { return !again.blobs.exists(id); });
  }

  void deploy(Store& store) {
    for (const std::string version : {"1", "2"}) {
      store.catalog.put_deployment({"d", R"({"version":)" + version + "}", "{}", {}});
      promises_.add("deployment", [version](Store& again) {
        const std::optional<DeploymentRow> row = again.catalog.find_deployment("d");
        // A later version may have become durable without having been acknowledged.
        return row && row->desired >= R"({"version":)" + version + "}";
      });
    }
  }

  Env& env_;
  Promises& promises_;
};

/// What is wrong with the store after a reboot; empty when nothing is.
std::string check(PowerCutEnv& env, const Promises& promises) {
  try {
    Store store(env);
    for (const Digest& blob : store.catalog.referenced_blobs()) {
      if (!store.blobs.exists(blob)) return "a row refers to the missing blob " + blob.text();
      store.blobs.open(blob);
    }
    for (const BlobInfo& blob : store.blobs.list()) store.blobs.open(blob.digest);
    if (!env.list(kRoot + "/tmp").empty()) return "unfinished writes stay";
    const std::string broken = promises.broken(store);
    if (!broken.empty()) return broken;
    const std::vector<Digest> kept = store.catalog.referenced_blobs();
    store.blobs.keep_roots([&] { return kept; });
    store.blobs.collect();
    return store.blobs.list().size() == kept.size() ? "" : "what was never published stays";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Plays the story until the power goes after `cut` operations and says what was lost.
std::string play_and_cut(uint64_t cut, Survival survival, uint64_t seed, uint64_t ignored_sync) {
  PowerCutEnv env;
  if (ignored_sync != 0) env.ignore_sync(ignored_sync);
  Promises promises;
  env.cut_after(cut);
  try {
    Story(env, promises).play();
  } catch (const Error& error) {
    if (!env.is_off()) return std::string("the story fails by itself: ") + error.what();
  }
  env.reboot(survival, seed);
  return check(env, promises);
}

struct Recording {
  uint64_t operations = 0;
  std::vector<SyncRecord> syncs;
};

Recording record() {
  PowerCutEnv env;
  Promises promises;
  Story(env, promises).play();
  const Recording recording{env.operations(), env.syncs()};
  env.reboot(Survival::kNothing);
  EXPECT_EQ(check(env, promises), "");
  return recording;
}

TEST(DurabilityTest, NothingAcknowledgedIsLostWheneverThePowerGoes) {
  const Recording recording = record();
  ASSERT_GT(recording.operations, 200U);
  for (uint64_t cut = 0; cut <= recording.operations; cut += kStride) {
    EXPECT_EQ(play_and_cut(cut, Survival::kNothing, 0, 0), "") << "cut after " << cut;
    EXPECT_EQ(play_and_cut(cut, Survival::kPart, cut, 0), "") << "cut after " << cut << ", part survives";
  }
}

/// A cut at which the promises break when the sync of this number is a lie; nothing when none is found.
std::optional<uint64_t> caught_at(uint64_t sync, const Recording& recording) {
  const uint64_t first = recording.syncs[sync - 1].number;
  for (uint64_t cut = first; cut <= recording.operations; ++cut) {
    if (!play_and_cut(cut, Survival::kNothing, 0, sync).empty()) return cut;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      if (!play_and_cut(cut, Survival::kPart, cut * 4 + seed, sync).empty()) return cut;
    }
  }
  return std::nullopt;
}

TEST(DurabilityTest, AFullDiskOrAnIoErrorLosesNothingThatWasAcknowledged) {
  const uint64_t operations = record().operations;
  for (uint64_t k = 1; k <= operations; k += kStride) {
    for (const int error_number : {ENOSPC, EIO}) {
      PowerCutEnv env;
      Promises promises;
      env.fail_operations(k, 1, error_number);
      try {
        Story(env, promises).play();
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::kDiskFull || error.code() == ErrorCode::kIo) << error.what();
      }
      env.reboot(Survival::kNothing);
      EXPECT_EQ(check(env, promises), "") << "operation " << k << " failed with " << error_number;
    }
  }
}

TEST(DurabilityTest, AStoreGoesOnAfterAFullDisk) {
  for (uint64_t k = 1; k <= 30; ++k) {
    PowerCutEnv env;
    Store store(env);
    const Digest id = Digest::of("m");
    env.fail_operations(k, 3, ENOSPC);
    try {
      store.catalog.put_model({id, {}, "{}"}, std::nullopt);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDiskFull) << error.what();
    }
    env.fail_operations(1, 0, 0);
    store.catalog.put_model({id, {}, "{}"}, NameChange{"model", "m", false});
    EXPECT_EQ(store.catalog.find_name("model", "m"), id);
  }
}

/// Why a sync needs no test here; "" when it does.
std::string excuse(const Recording& recording, uint64_t number) {
  const SyncRecord& sync = recording.syncs[number - 1];
  if (sync.pending == 0) return "it changes nothing";
  if (sync.path == kRoot) return "SQLite syncs the same folder; the test of a killed process covers it";
  if (sync.path.ends_with("-journal")) return "an empty file becomes a database under it";
  if (sync.path.ends_with("-wal")) {
    if (sync.pending == 32)
      return "SQLite's care for the header of a fresh log on disks that this env is not";
    const auto first =
        std::find_if(recording.syncs.begin(), recording.syncs.end(),
                     [](const SyncRecord& any) { return any.path.ends_with("-wal") && any.pending > 32; });
    if (&*first == &sync) return "the empty schema: made again when it is lost";
  }
  return "";
}

TEST(DurabilityTest, LeavingOutAnySyncIsCaught) {
  const Recording recording = record();
  uint64_t tried = 0;
  for (uint64_t i = 1; i <= recording.syncs.size(); i += kStride) {
    const SyncRecord& sync = recording.syncs[i - 1];
    if (!excuse(recording, i).empty()) continue;
    ++tried;
    EXPECT_TRUE(caught_at(i, recording))
        << "sync " << i << " of " << sync.path << ", with " << sync.pending << " pending, can be left out";
  }
  EXPECT_GT(tried, 40U / kStride);
}

/// Two processes and a blob: the first is killed after `kill` operations, the second puts the blob and says
/// so, then the power goes. Says whether the blob is there; `syncs` receives those of the second process.
bool put_survives(uint64_t kill, uint64_t ignored_sync, std::vector<SyncRecord>* syncs,
                  uint64_t* first_sync) {
  const std::string bytes = "bytes";
  PowerCutEnv env;
  if (ignored_sync != 0) env.ignore_sync(ignored_sync);
  env.cut_after(kill);
  try {
    FolderBlobStore(env, kRoot).put(bytes);
  } catch (const Error&) {
    env.reboot(Survival::kAll);
  }
  env.reboot(Survival::kAll);
  *first_sync = env.syncs().size() + 1;
  FolderBlobStore(env, kRoot).put(bytes);
  *syncs = env.syncs();
  env.reboot(Survival::kNothing);
  try {
    return FolderBlobStore(env, kRoot).open(Digest::of(bytes))->text() == bytes;
  } catch (const Error&) {
    return false;
  }
}

TEST(DurabilityTest, AProcessMakesDurableWhatAKilledOneLeftUnsynced) {
  std::set<std::string> synced;
  std::set<std::string> caught;
  for (uint64_t kill = 0; kill < 20; ++kill) {
    std::vector<SyncRecord> syncs;
    uint64_t first = 0;
    EXPECT_TRUE(put_survives(kill, 0, &syncs, &first)) << "killed after " << kill;
    for (uint64_t i = first; i <= syncs.size(); ++i) {
      const std::string path = syncs[i - 1].path;
      synced.insert(path);
      std::vector<SyncRecord> unused;
      uint64_t unused_first = 0;
      if (!put_survives(kill, i, &unused, &unused_first)) caught.insert(path);
    }
  }
  EXPECT_EQ(synced, caught);
  EXPECT_THAT(synced, testing::SizeIs(7)) << "five folders on the way to the shard, the shard, the file";
}

}  // namespace
}  // namespace tensormill::storage::durability_test
