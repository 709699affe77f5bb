// Every way in which a job ends, beside everything that a store must keep: collections take what the attempt
// left and nothing else.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "server/jobs/job_queue.h"
#include "server/jobs/worker_pool.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/upload/folder_upload_store.h"
#include "storage/upload/store_roots.h"
#include "tests/jobs/runners.h"
#include "tests/storage/support.h"

namespace tensormill::jobs::roots_of_jobs {
namespace {

using storage::BlobForm;
using storage::JobFinish;
using storage::JobState;

/// A store as a server has it.
struct Store {
  Store()
      : blobs(env, "/store"),
        catalog(env, "/store/catalog.db"),
        uploads(env, "/store", blobs, {}, [] { return int64_t{1'700'000'000'000}; }),
        queue(catalog) {
    blobs.keep_roots([this] { return storage::store_roots(catalog, uploads); },
                     [this](const std::vector<Digest>& some) {
                       return storage::store_roots_among(catalog, uploads, some);
                     });
  }
  Digest put(const std::string& text) { return blobs.put(text, {.form = BlobForm::kCompressed}); }
  storage::PackageRow package(const std::string& text) {
    return {put(text), {{"mod.so", put(text + ".so"), 7}}, Digest::of("archive"), 9, "{}"};
  }

  storage::MemoryEnv env;
  storage::FolderBlobStore blobs;
  storage::SqliteCatalog catalog;
  storage::FolderUploadStore uploads;
  JobQueue queue;
};

/// Something that a store keeps: makes it, and says how to see that it is still whole.
struct Root {
  std::string name;
  std::function<std::function<bool()>(Store&)> make;
};

std::function<bool()> all_there(Store& store, std::vector<Digest> blobs) {
  return [&store, blobs = std::move(blobs)] {
    for (const Digest& digest : blobs) {
      if (!store.blobs.exists(digest)) return false;
      store.blobs.verify(digest);
    }
    return true;
  };
}

std::function<bool()> finished_upload(Store& store) {
  const std::string id = store.uploads.begin("alice").id;
  bool is_read = false;
  store.uploads.append(id, 0, [&](std::span<std::byte> buffer) -> size_t {
    if (std::exchange(is_read, true)) return 0;
    std::memcpy(buffer.data(), "uploaded", 8);
    return 8;
  });
  return all_there(store, {store.uploads.finish(id, Digest::of("uploaded"))});
}

std::function<bool()> deployment(Store& store) {
  const storage::PackageRow kept = store.package("kept version"), loaded = store.package("loaded version");
  store.catalog.put_package(kept);
  store.catalog.put_package(loaded);
  const Digest labels = store.put("labels");
  store.catalog.put_deployment({"d", "{}", "{}", {kept.id, loaded.id}, 0, {labels}});
  return all_there(store, {kept.id, kept.members[0].digest, loaded.id, loaded.members[0].digest, labels});
}

std::function<bool()> inputs_of_a_live_job(Store& store) {
  const Digest model = store.put("model of a job"), package = store.put("package of a job");
  store.catalog.put_model({model, {model}}, std::nullopt);
  store.catalog.put_package({package, {}, Digest::of("archive"), 9, "{}"});
  storage::JobSubmission submission;
  submission.kind = "later";
  submission.subject = model.text();
  submission.action_key = "later";
  submission.needs_models = {model};
  submission.needs_package = package;
  store.catalog.submit_job(submission);
  return all_there(store, {model, package});
}

/// Blobs that the request of a job names, of which an upload is all that a row had.
std::function<bool()> blobs_of_a_request(Store& store, bool is_kept) {
  const Digest inputs = store.put("inputs of a request"), labels = store.put("labels of a request");
  storage::JobSubmission submission;
  submission.kind = is_kept ? "told" : "later";
  submission.action_key = "with blobs";
  submission.needs_blobs = {inputs, labels};
  submission.keeps_blobs = is_kept;
  const std::string id = store.catalog.submit_job(submission).job.id;
  if (is_kept) {
    store.catalog.claim_job({"told"}, "me", 60'000);
    store.catalog.finish_job({id, 1, "me"}, {JobState::kFailed, "", "{}"});
  }
  return all_there(store, {inputs, labels});
}

std::function<bool()> record_set(Store& store) {
  storage::TuningRecordRow record;
  record.id = Digest::of("line");
  record.line = "line";
  store.catalog.put_tuning_set({Digest::of("set"), "", {record.id}}, {record});
  return [&store] {
    storage::TuningFilter filter;
    filter.set = Digest::of("set");
    return store.catalog.list_tuning_records(filter, {}).items.size() == 1;
  };
}

/// Bytes that nothing names, and that somebody is just sending: they stay readable though their file goes.
std::function<bool()> reader_in_flight(Store& store) {
  const auto blob = store.blobs.open(store.put("being read"));
  return [blob] { return blob->text() == "being read"; };
}

/// What another request has stored and not named yet.
std::function<bool()> publication_in_flight(Store& store) {
  const auto hold = std::make_shared<storage::BlobHold>(store.blobs);
  return [hold, there = all_there(store, {store.put("being published")})] { return there(); };
}

std::vector<Root> roots() {
  return {{"a finished upload", finished_upload},
          {"a named model",
           [](Store& store) {
             const Digest id = store.put("named model");
             store.catalog.put_model({id, {id}}, storage::NameChange{"model", "m", false});
             return all_there(store, {id});
           }},
          {"a deployment", deployment},
          {"a live job's inputs", inputs_of_a_live_job},
          {"a live job's blobs", [](Store& store) { return blobs_of_a_request(store, false); }},
          {"blobs of a job that may be asked again",
           [](Store& store) { return blobs_of_a_request(store, true); }},
          {"a record set", record_set},
          {"a pinned package",
           [](Store& store) {
             const storage::PackageRow pinned = store.package("pinned");
             store.catalog.put_package(pinned);
             store.catalog.pin_package(pinned.id, true);
             return all_there(store, {pinned.id, pinned.members[0].digest});
           }},
          {"a reader", reader_in_flight},
          {"a publication", publication_in_flight}};
}

/// How a job ends.
struct End {
  std::string name;
  std::function<JobFinish(JobContext&)> body;
  JobState state;
  std::function<void(Store&, const std::string&)> running = nullptr;  ///< once its child runs
  bool shuts_down = false;
};

JobFinish lose_lease(Store& store, JobContext& context) {
  if (context.job().attempt == 1) {
    store.catalog.requeue_orphans(storage::Orphans::kAtStart, 0);
    context.event("log", "{}");
  }
  return {};
}

std::vector<End> ends(Store& store) {
  const auto run = [](const std::string& command) {
    return [command](JobContext& context) {
      context.run_child(child(command));
      return JobFinish{};
    };
  };
  return {
      {"succeeded", [](JobContext&) { return JobFinish{}; }, JobState::kSucceeded},
      {"failed", [](JobContext&) -> JobFinish { throw Error(ErrorCode::kInvalidModel, "broken"); },
       JobState::kFailed},
      {"failed in its child", run("child-user-error"), JobState::kFailed},
      {"a bug", [](JobContext&) -> JobFinish { throw std::out_of_range("7 of 3"); }, JobState::kFailed},
      {"crashed", run("child-crash"), JobState::kFailed},
      {"timed out",
       [](JobContext& context) {
         ChildSpec spec = child("child-hang");
         spec.time_limit = std::chrono::milliseconds(1);
         context.run_child(spec);
         return JobFinish{};
       },
       JobState::kFailed},
      {"cancelled while it ran", run("child-hang"), JobState::kCancelled,
       [](Store& one, const std::string& id) { one.queue.cancel(id); }},
      {"lost its lease", [&store](JobContext& context) { return lose_lease(store, context); },
       JobState::kSucceeded},
      {"a shutdown", run("child-hang"), JobState::kQueued, [](Store&, const std::string&) {}, true},
  };
}

/// Plays one job to this end and waits for the collection after it.
void play(Store& store, const std::string& folder, const End& end) {
  SCOPED_TRACE(end.name);
  FunctionRunner runner([&](JobContext& context) {
    if (context.job().attempt == 1) store.put("stray of " + end.name);
    return end.body(context);
  });
  WorkerPoolOptions options;
  options.folder = folder;
  options.backoff = std::chrono::milliseconds(0);
  options.commit_every = std::chrono::milliseconds(0);
  std::atomic<int> collections{0};
  options.collect = [&] {
    store.blobs.collect_released();
    ++collections;
    store.queue.changed();
  };
  WorkerPool pool(store.queue, store.blobs, {&runner}, options);
  storage::JobSubmission submission;
  submission.kind = "work";
  submission.action_key = end.name;
  submission.max_attempts = end.name == "crashed" ? 1 : 3;
  const std::string id = store.queue.submit(submission).job.id;
  if (end.running) {
    int64_t after = 0;
    for (bool runs = false; !runs;) {
      for (const auto& event : store.queue.events(id, after, kPatience, {}).events) {
        runs = runs || event.type == "log";
        after = event.sequence;
      }
    }
    end.running(store, id);
  }
  if (end.shuts_down) pool.stop();
  if (!end.shuts_down) {
    EXPECT_EQ(store.queue.wait(id, kPatience, {}).state, end.state);
  }
  const bool collects = end.name != "succeeded";
  while (collects && collections == 0) {
    const uint64_t seen = store.queue.version();
    if (collections == 0) store.queue.wait_for_change(seen, kPatience, {});
  }
  EXPECT_EQ(store.catalog.find_job(id)->state, end.state);
  if (end.shuts_down) store.queue.cancel(id);
}

TEST(RootsTest, EveryEndOfAJobLeavesWhatIsInUse) {
  for (const Root& root : roots()) {
    SCOPED_TRACE(root.name);
    const storage::TemporaryFolder folder;
    Store store;
    const std::function<bool()> is_whole = root.make(store);
    for (const End& end : ends(store)) {
      play(store, folder.path() + "/jobs", end);
      EXPECT_TRUE(is_whole()) << "after a job that " << end.name;
    }
    // A cancel before any attempt, and what operators ask for.
    storage::JobSubmission queued;
    queued.kind = "never claimed";
    queued.action_key = "queued";
    EXPECT_EQ(store.queue.cancel(store.queue.submit(queued).job.id).job.state, JobState::kCancelled);
    std::vector<Digest> all;
    for (const storage::BlobInfo& blob : store.blobs.list()) all.push_back(blob.digest);
    store.blobs.release(all);
    store.blobs.collect_released();
    EXPECT_TRUE(is_whole()) << "after a look at all that is released";
    store.blobs.collect();
    EXPECT_TRUE(is_whole());
  }
}

TEST(RootsTest, WhatAnAttemptStoredAndDidNotPublishGoes) {
  const storage::TemporaryFolder folder;
  Store store;
  for (const End& end : ends(store)) {
    play(store, folder.path() + "/jobs", end);
    const bool stays = end.name == "succeeded";  // nothing asks for a collection then; the next end has one
    EXPECT_EQ(store.blobs.exists(Digest::of("stray of " + end.name)), stays) << end.name;
  }
  EXPECT_FALSE(store.blobs.exists(Digest::of("stray of succeeded")));
}

}  // namespace
}  // namespace tensormill::jobs::roots_of_jobs
