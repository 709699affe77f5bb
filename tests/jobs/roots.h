/// A store, and everything in it that must stay, whoever ends a job beside it. Test fixture.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/jobs/job_queue.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/upload/folder_upload_store.h"
#include "storage/upload/store_roots.h"

namespace tensormill::jobs::roots_of_jobs {

/// A store as a server has it.
struct Store {
  Store()
      : blobs(env, "/store"),
        catalog(env, "/store/catalog.db"),
        uploads(env, "/store", blobs, {}, [] { return int64_t{1'700'000'000'000}; }),
        queue(catalog) {}
  /// What a server's BlobCollector does, where there is none.
  void keep_roots() {
    blobs.keep_roots([this] { return storage::store_roots(catalog, uploads); },
                     [this](const std::vector<Digest>& some) {
                       return storage::store_roots_among(catalog, uploads, some);
                     });
  }
  Digest put(const std::string& text) { return blobs.put(text, {.form = storage::BlobForm::kCompressed}); }
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

inline std::function<bool()> all_there(Store& store, std::vector<Digest> blobs) {
  return [&store, blobs = std::move(blobs)] {
    for (const Digest& digest : blobs) {
      if (!store.blobs.exists(digest)) return false;
      store.blobs.verify(digest);
    }
    return true;
  };
}

inline std::function<bool()> finished_upload(Store& store) {
  const std::string id = store.uploads.begin("alice").id;
  bool is_read = false;
  store.uploads.append(id, 0, [&](std::span<std::byte> buffer) -> size_t {
    if (std::exchange(is_read, true)) return 0;
    std::memcpy(buffer.data(), "uploaded", 8);
    return 8;
  });
  return all_there(store, {store.uploads.finish(id, Digest::of("uploaded"))});
}

inline std::function<bool()> deployment(Store& store) {
  const storage::PackageRow kept = store.package("kept version"), loaded = store.package("loaded version");
  store.catalog.put_package(kept);
  store.catalog.put_package(loaded);
  const Digest labels = store.put("labels");
  store.catalog.put_deployment({"d", "{}", "{}", {kept.id, loaded.id}, 0, {labels}});
  return all_there(store, {kept.id, kept.members[0].digest, loaded.id, loaded.members[0].digest, labels});
}

inline std::function<bool()> inputs_of_a_live_job(Store& store) {
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
inline std::function<bool()> blobs_of_a_request(Store& store, bool is_kept) {
  const Digest inputs = store.put("inputs of a request"), labels = store.put("labels of a request");
  storage::JobSubmission submission;
  submission.kind = is_kept ? "claimed" : "later";
  submission.action_key = "with blobs";
  submission.needs_blobs = {inputs, labels};
  submission.keeps_blobs = is_kept;
  const std::string id = store.catalog.submit_job(submission).job.id;
  if (is_kept) {
    store.catalog.claim_job({"claimed"}, "me", 60'000);
    store.catalog.finish_job({id, 1, "me"}, {storage::JobState::kFailed, "", "{}"});
  }
  return all_there(store, {inputs, labels});
}

inline std::function<bool()> record_set(Store& store) {
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
inline std::function<bool()> reader_in_flight(Store& store) {
  const auto blob = store.blobs.open(store.put("being read"));
  return [blob] { return blob->text() == "being read"; };
}

/// What another request has stored and not named yet.
inline std::function<bool()> publication_in_flight(Store& store) {
  const auto hold = std::make_shared<storage::BlobHold>(store.blobs);
  return [hold, there = all_there(store, {store.put("being published")})] { return there(); };
}

inline std::vector<Root> roots() {
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

}  // namespace tensormill::jobs::roots_of_jobs
