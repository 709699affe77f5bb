// Nothing that was acknowledged is lost, whenever the power goes: uploads, publications, jobs and names over
// an Env whose power is cut after every k-th operation, blobs and database alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "storage/blob/blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

/// Small, so that the log is folded into the database, and starts over, in the middle of the story.
constexpr int kCheckpointPages = 24;
const std::string kRoot = "/data/store";

struct Store {
  explicit Store(Env& env)
      : blobs(env, kRoot),
        catalog(env, kRoot + "/catalog.db", SqliteCatalogOptions{nullptr, kCheckpointPages}) {}
  BlobStore blobs;
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
    store.catalog.requeue_orphans(Orphans::kAllRunning, 0);
    upload(store, "third", "mlp");
    run_job(store, "compile third");
    deploy(store);
  }

private:
  void upload(Store& store, const std::string& bytes, const std::string& name) {
    const Digest id = store.blobs.put(bytes);
    promises_.add("blob " + bytes,
                  [id, bytes](Store& again) { return again.blobs.open(id)->text() == bytes; });
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
    store.catalog.heartbeat_job(claim, 1'000'000, R"({"stage":"code"})", {{0, "log", "{}"}});
    promises_.add("heartbeat of " + key, [id](Store& again) {
      return again.catalog.job_events(id, 2, 9).size() >= 1 && again.catalog.find_job(id)->attempt == 1;
    });
    JobFinish finish;
    finish.package.emplace();
    finish.package->id = store.blobs.put(key + " metadata");
    finish.package->members = {{"mod.so", store.blobs.put(key + " code"), 1},
                               {"mod.params", store.blobs.put(key + std::string(3000, 'w')), 2}};
    finish.log = store.blobs.put(key + std::string(500, 'l'), {.form = BlobForm::kCompressed});
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
    return promises.broken(store);
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
  std::vector<std::pair<Operation, std::string>> syncs;
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
  for (uint64_t cut = 0; cut <= recording.operations; ++cut) {
    EXPECT_EQ(play_and_cut(cut, Survival::kNothing, 0, 0), "") << "cut after " << cut;
    EXPECT_EQ(play_and_cut(cut, Survival::kPart, cut, 0), "") << "cut after " << cut << ", part survives";
  }
}

}  // namespace
}  // namespace tensormill::storage
