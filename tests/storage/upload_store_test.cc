// Uploads: chunks in order, one blob at the end, and nothing acknowledged lost at any cut or failure.
#include "storage/blob/folder_blob_store.h"
#include "storage/upload/folder_upload_store.h"

#include <gtest/gtest.h>

#include <cstring>

#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "storage/replica/shared_upload_store.h"
#include "storage/upload/store_roots.h"
#include "tests/storage/support.h"

namespace tensormill::storage {
namespace {

const std::string kRoot = "/data/store";

ByteReader reader_of(const std::string& bytes) {
  auto position = std::make_shared<size_t>(0);
  return [bytes, position](std::span<std::byte> buffer) {
    const size_t count = std::min({buffer.size(), bytes.size() - *position, size_t{7}});
    std::memcpy(buffer.data(), bytes.data() + *position, count);
    *position += count;
    return count;
  };
}

struct Store {
  explicit Store(Env& env, UploadOptions options = {})
      : blobs(env, kRoot), uploads(env, kRoot, blobs, options, [this] { return now; }) {}
  int64_t now = 1'700'000'000'000;
  FolderBlobStore blobs;
  FolderUploadStore uploads;
};

TEST(UploadTest, ChunksBecomeABlob) {
  PowerCutEnv env;
  Store store(env);
  const Upload begun = store.uploads.begin();
  EXPECT_EQ(begun.created_ms, store.now);
  EXPECT_EQ(store.uploads.append(begun.id, 0, reader_of("hello, ")).size, 7U);
  EXPECT_ERROR(store.uploads.append(begun.id, 0, reader_of("again")), ErrorCode::kRangeNotSatisfiable);
  EXPECT_ERROR(store.uploads.append(begun.id, 8, reader_of("gap")), ErrorCode::kRangeNotSatisfiable);
  EXPECT_EQ(store.uploads.append(begun.id, std::nullopt, reader_of("world")).size, 12U);
  EXPECT_EQ(store.uploads.append(begun.id, 12, reader_of("")).size, 12U) << "an empty chunk changes nothing";
  EXPECT_ERROR(store.uploads.finish(begun.id, Digest::of("other")), ErrorCode::kDigestMismatch);
  EXPECT_EQ(store.uploads.find(begun.id).size, 12U) << "kept, to be tried again";
  const Digest digest = Digest::of("hello, world");
  EXPECT_EQ(store.uploads.finish(begun.id, digest), digest);
  EXPECT_EQ(store.blobs.open(digest)->text(), "hello, world");
  EXPECT_EQ(store.uploads.find(begun.id).blob, digest);
  EXPECT_EQ(store.uploads.roots(), std::vector<Digest>{digest});
  EXPECT_EQ(store.uploads.finish(begun.id, digest), digest) << "twice is no error";
  EXPECT_ERROR(store.uploads.finish(begun.id, Digest::of("x")), ErrorCode::kDigestMismatch);
  EXPECT_ERROR(store.uploads.append(begun.id, std::nullopt, reader_of("x")), ErrorCode::kConflict);
  EXPECT_TRUE(store.uploads.remove(begun.id));
  EXPECT_FALSE(store.uploads.remove(begun.id));
  EXPECT_TRUE(store.uploads.roots().empty());
  EXPECT_ERROR(store.uploads.find(begun.id), ErrorCode::kNotFound);
}

TEST(UploadTest, AChunkThatBreaksOffLeavesNothing) {
  PowerCutEnv env;
  Store store(env);
  const std::string id = store.uploads.begin().id;
  store.uploads.append(id, 0, reader_of("first"));
  const auto broken = [reader = reader_of("second"), calls = 0](std::span<std::byte> buffer) mutable {
    if (++calls > 1) throw Error(ErrorCode::kInvalidRequest, "the client has gone");
    return reader(buffer);
  };
  EXPECT_ERROR(store.uploads.append(id, 5, broken), ErrorCode::kInvalidRequest);
  EXPECT_EQ(store.uploads.find(id).size, 5U);
  EXPECT_TRUE(env.list(kRoot + "/tmp").empty());
  EXPECT_EQ(store.uploads.append(id, 5, reader_of("second")).size, 11U);
}

TEST(UploadTest, SumsAreWhatTheFoldersHoldAfterEveryChange) {
  PowerCutEnv env;
  Store store(env);
  const auto check = [&] {
    Store fresh(env);
    EXPECT_EQ(store.uploads.usage().uploads, fresh.uploads.usage().uploads);
    EXPECT_EQ(store.uploads.usage().bytes, fresh.uploads.usage().bytes);
    EXPECT_EQ(store.uploads.stored_bytes(), fresh.uploads.stored_bytes());
    EXPECT_EQ(store.uploads.roots(), fresh.uploads.roots());
  };
  const std::string first = store.uploads.begin("alice").id, second = store.uploads.begin().id;
  check();
  store.uploads.append(first, 0, reader_of("hello"));
  store.uploads.append(second, 0, reader_of("hello, too"));
  check();
  EXPECT_EQ(store.uploads.stored_bytes(), 15U);
  uint64_t during = 0;
  store.uploads.append(first, 5, [&, calls = 0](std::span<std::byte> buffer) mutable -> size_t {
    during = store.uploads.stored_bytes();
    buffer[0] = std::byte{'!'};
    return ++calls <= 2 ? 1 : 0;
  });
  EXPECT_EQ(during, 17U) << "what is being written counts";
  check();
  // Changes that fail at any step leave what the disk has.
  for (uint64_t k = 1; k < 12; ++k) {
    env.fail_operations(k, 1, EIO);
    try {
      store.uploads.append(second, std::nullopt, reader_of("more"));
      store.uploads.finish(second, Digest::of("nothing like it"));
    } catch (const Error&) {
      // One of these is always wrong, and the disk fails as well.
    }
    env.fail_operations(1, 0, 0);
    store.uploads.list();
    check();
  }
  store.uploads.finish(first, Digest::of("hello!!"));
  check();
  store.uploads.remove(second);
  check();
  store.uploads.remove(first);
  EXPECT_EQ(store.uploads.usage().uploads, 0U);
  check();
}

TEST(UploadTest, OneRequestWritesAtATime) {
  PowerCutEnv env;
  Store store(env);
  const std::string id = store.uploads.begin().id;
  const auto nosy = [&, asked = false](std::span<std::byte>) mutable -> size_t {
    if (!asked) EXPECT_ERROR(store.uploads.append(id, 0, reader_of("x")), ErrorCode::kConflict);
    asked = true;
    return 0;
  };
  store.uploads.append(id, 0, nosy);
  EXPECT_EQ(store.uploads.find(id).size, 0U);
}

TEST(UploadTest, BoundsHold) {
  PowerCutEnv env;
  Store store(env, {.max_bytes = 10, .max_uploads = 2});
  const std::string id = store.uploads.begin().id;
  EXPECT_ERROR(store.uploads.append(id, 0, reader_of("eleven bytes")), ErrorCode::kTooLarge);
  store.uploads.append(id, 0, reader_of("ten bytes."));
  EXPECT_ERROR(store.uploads.append(id, 10, reader_of("x")), ErrorCode::kTooLarge);
  store.uploads.begin();
  EXPECT_ERROR(store.uploads.begin(), ErrorCode::kUnavailable);
  for (const char* bad : {"", "..", "../blobs", "0190a6c4-0000-7000-8000-00000000000g"}) {
    EXPECT_ERROR(store.uploads.find(bad), ErrorCode::kNotFound);
    EXPECT_FALSE(store.uploads.remove(bad));
  }
}

TEST(UploadTest, ADayLaterTheyGo) {
  PowerCutEnv env;
  Store store(env);
  const std::string old = store.uploads.begin().id;
  store.uploads.append(old, 0, reader_of("bytes"));
  store.now += 24 * 3600 * 1000;
  const std::string young = store.uploads.begin().id;
  EXPECT_EQ(store.uploads.expire(), 0);
  store.now += 1;
  EXPECT_EQ(store.uploads.expire(), 1);
  ASSERT_EQ(store.uploads.list().size(), 1U);
  EXPECT_EQ(store.uploads.list().at(0).id, young);
}

TEST(UploadTest, AFinishedOneStaysADayFromItsEnd) {
  PowerCutEnv env;
  UploadOptions options;
  std::string id;
  const int64_t begun = 1'700'000'000'000, finished = begun + options.lifetime.count() - 1;
  {
    Store store(env, options);
    id = store.uploads.begin().id;
    store.uploads.append(id, 0, reader_of("bytes"));
    store.now = finished;
    store.uploads.finish(id, Digest::of("bytes"));
  }
  Store store(env, options);
  EXPECT_EQ(store.uploads.find(id).created_ms, begun);
  EXPECT_EQ(store.uploads.find(id).since_ms, finished) << "as it was before the process ended";
  EXPECT_EQ(store.uploads.find(id).blob_bytes, 5U);
  store.now = finished + options.lifetime.count();
  EXPECT_EQ(store.uploads.expire(), 0);
  store.now += 1;
  EXPECT_EQ(store.uploads.expire(), 1);
  EXPECT_TRUE(store.uploads.roots().empty());
}

TEST(UploadTest, WhatAnOlderProgramFinishedIsCountedFromItsBeginning) {
  for (const std::string end : {" 5", ""}) {
    PowerCutEnv env;
    std::string id;
    {
      Store store(env);
      id = store.uploads.begin().id;
      store.uploads.append(id, 0, reader_of("bytes"));
      store.uploads.finish(id, Digest::of("bytes"));
    }
    const std::string path = kRoot + "/uploads/" + id + "/finished";
    env.remove_file(path);
    env.open(path, OpenMode::kCreateNew)->write(0, Digest::of("bytes").text() + end);
    {
      Store store(env);
      EXPECT_EQ(store.uploads.find(id).blob, Digest::of("bytes"));
      EXPECT_EQ(store.uploads.find(id).since_ms, store.now);
    }
    env.open(path, OpenMode::kWrite)->write(0, Digest::of("bytes").text() + " 5 x");
    EXPECT_ERROR(Store{env}, ErrorCode::kCorrupt);
  }
}

TEST(SharedUploadTest, AFinishedOneStaysADayFromItsEnd) {
  PowerCutEnv env;
  FolderBlobStore blobs(env, kRoot);
  SqliteCatalog catalog(env, kRoot + "/catalog.db");
  const UploadOptions options;
  const int64_t begun = 1'700'000'000'000, finished = begun + options.lifetime.count() - 1;
  int64_t now = begun;
  SharedUploadStore uploads(catalog, blobs, options, [&] { return now; });
  const std::string id = uploads.begin().id, left = uploads.begin().id;
  uploads.append(id, 0, reader_of("bytes"));
  now = finished;
  uploads.finish(id, Digest::of("bytes"));
  EXPECT_EQ(uploads.find(id).created_ms, begun);
  EXPECT_EQ(uploads.find(id).since_ms, finished);
  now = finished + options.lifetime.count();
  EXPECT_EQ(uploads.expire(), 1) << "the other is as old as it is";
  EXPECT_ERROR(uploads.find(left), ErrorCode::kNotFound);
  EXPECT_EQ(uploads.find(id).blob, Digest::of("bytes"));
  now += 1;
  EXPECT_EQ(uploads.expire(), 1);
}

TEST(StoreRootsTest, AreCountedEachOnce) {
  PowerCutEnv env;
  Store store(env);
  SqliteCatalog catalog(env, kRoot + "/catalog.db");
  EXPECT_EQ(count_store_roots(catalog, store.uploads), 0U);
  for (const std::string text : {"twice", "twice", "named", "alone"}) {
    const std::string id = store.uploads.begin().id;
    store.uploads.append(id, 0, reader_of(text));
    store.uploads.finish(id, Digest::of(text));
  }
  const Digest named = Digest::of("named"), model = store.blobs.put("model");
  catalog.put_model({named, {named, model}}, std::nullopt);
  EXPECT_EQ(store_roots(catalog, store.uploads).size(), 4U);
  EXPECT_EQ(count_store_roots(catalog, store.uploads), 4U);
}

/// What a client was told, and what it can rely on after the power is back.
struct Told {
  std::string id;
  uint64_t size = 0;
  bool finished = false;
  bool removing = false;
  bool removed = false;
};

/// An upload from its beginning to its blob; throws when the power goes or an operation fails.
void play(Env& env, Told& told) {
  Store store(env);
  told.id = store.uploads.begin("alice").id;
  for (const std::string chunk : {"hello, ", "wide ", "world"}) {
    told.size = store.uploads.append(told.id, told.size, reader_of(chunk)).size;
  }
  store.uploads.finish(told.id, Digest::of("hello, wide world"));
  told.finished = true;
  // Something else that the power may go in.
  store.blobs.put("other bytes");
  told.removing = true;
  store.uploads.remove(told.id);
  told.removed = true;
}

/// Empty when all that was told holds and the upload can be brought to its end.
std::string check(Env& env, const Told& told) {
  try {
    Store store(env);
    if (!env.list(kRoot + "/tmp").empty()) return "unfinished writes stay";
    if (told.id.empty()) return "";
    const Digest digest = Digest::of("hello, wide world");
    if (told.removed) return store.uploads.list().empty() ? "" : "what was removed is there";
    if (told.finished && store.blobs.open(digest)->text() != "hello, wide world") return "the blob is lost";
    Upload upload;
    try {
      upload = store.uploads.find(told.id);
    } catch (const Error&) {
      return told.removing ? "" : "the upload is lost";
    }
    if (upload.owner != "alice" && !told.removing) return "the owner is lost";
    if (upload.blob && upload.blob_bytes != 17) return "the size is lost";
    if (upload.blob)
      return store.blobs.open(*upload.blob)->text() == "hello, wide world" ? "" : "other bytes";
    if (told.removing) return "";
    if (told.finished) return "it is no longer finished";
    if (upload.size < told.size) return "acknowledged bytes are lost";
    const std::string whole = "hello, wide world";
    store.uploads.append(told.id, upload.size, reader_of(whole.substr(upload.size)));
    store.uploads.finish(told.id, digest);
    return store.blobs.open(digest)->text() == whole ? "" : "other bytes";
  } catch (const Error& error) {
    return error.what();
  }
}

uint64_t operations_of_play() {
  PowerCutEnv env;
  Told told;
  play(env, told);
  EXPECT_TRUE(told.removed);
  return env.operations();
}

TEST(UploadTest, NothingAcknowledgedIsLostWheneverThePowerGoes) {
  const uint64_t operations = operations_of_play();
  ASSERT_GT(operations, 30U);
  for (uint64_t cut = 0; cut <= operations; ++cut) {
    for (const Survival survival : {Survival::kNothing, Survival::kPart, Survival::kAll}) {
      PowerCutEnv env;
      Told told;
      env.cut_after(cut);
      try {
        play(env, told);
      } catch (const Error& error) {
        ASSERT_TRUE(env.is_off()) << error.what();
      }
      env.reboot(survival, cut);
      EXPECT_EQ(check(env, told), "") << "cut after " << cut;
    }
  }
}

TEST(UploadTest, AnyFailingOperationIsToldAndLeavesAnUploadThatGoesOn) {
  const uint64_t operations = operations_of_play();
  for (uint64_t k = 1; k <= operations; ++k) {
    for (const int error_number : {ENOSPC, EIO}) {
      PowerCutEnv env;
      Told told;
      env.fail_operations(k, 1, error_number);
      try {
        play(env, told);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), error_number == ENOSPC ? ErrorCode::kDiskFull : ErrorCode::kIo)
            << error.what();
      }
      EXPECT_EQ(check(env, told), "") << "operation " << k << " failed with " << error_number;
      env.reboot(Survival::kNothing);
      EXPECT_EQ(check(env, told), "") << "operation " << k << " failed, then the power";
    }
  }
}

TEST(UploadTest, LeavingOutAnySyncIsCaught) {
  PowerCutEnv recorder;
  Told unused;
  play(recorder, unused);
  const uint64_t operations = recorder.operations();
  for (uint64_t sync = 1; sync <= recorder.syncs().size(); ++sync) {
    const SyncRecord& record = recorder.syncs()[sync - 1];
    const bool ours = record.path.find("/uploads") != std::string::npos ||
                      record.path.find("/tmp/upload") != std::string::npos;
    if (!ours || record.pending == 0) continue;
    bool caught = false;
    for (uint64_t cut = record.number; cut <= operations && !caught; ++cut) {
      for (uint64_t seed = 0; seed < 3 && !caught; ++seed) {
        PowerCutEnv env;
        Told told;
        env.ignore_sync(sync);
        env.cut_after(cut);
        try {
          play(env, told);
        } catch (const Error&) {
          ASSERT_TRUE(env.is_off());
        }
        env.reboot(seed == 0 ? Survival::kNothing : Survival::kPart, cut * 3 + seed);
        caught = !check(env, told).empty();
      }
    }
    EXPECT_TRUE(caught) << "sync " << sync << " of " << record.path << " can be left out";
  }
}

}  // namespace
}  // namespace tensormill::storage
