// What every blob store promises, of each implementation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>

#include "runtime/base/error.h"
#include "storage/blob/blob_store.h"
#include "tests/storage/blob_places.h"
#include "tests/storage/support.h"

namespace tensormill::storage::blob_store_test {
namespace {

const std::string kText = "the quick brown fox jumps over the lazy dog, again and again and again and again";

class BlobStoreTest : public testing::TestWithParam<std::string> {
protected:
  BlobStoreTest() : place_(make_blob_place(GetParam())), store_(place_->open()) {}

  std::unique_ptr<BlobPlace> place_;
  std::unique_ptr<BlobStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Stores, BlobStoreTest, testing::Values("posix", "memory", "s3", "s3_shared"),
                         [](const auto& info) { return info.param; });

TEST_P(BlobStoreTest, ReadsBackWhatWasPut) {
  const Digest digest = store_->put(kText);
  EXPECT_EQ(digest, Digest::of(kText));
  const auto blob = store_->open(digest);
  EXPECT_EQ(blob->text(), kText);
  char first[4] = {};
  ASSERT_EQ(::pread(blob->fd(), first, 3, 0), 3);
  EXPECT_STREQ(first, "the");
}

TEST_P(BlobStoreTest, TheEmptyBlobIsABlob) {
  for (const BlobForm form : {BlobForm::kCompressed, BlobForm::kPlain}) {
    const Digest digest = store_->put("", {.form = form});
    EXPECT_EQ(store_->open(digest)->size(), 0U);
  }
}

TEST_P(BlobStoreTest, CompressedBytesHaveTheIdentityOfTheUncompressed) {
  std::string large;
  while (large.size() < 1'000'000) large += kText;
  const auto writer = store_->writer({.form = BlobForm::kCompressed});
  for (size_t at = 0; at < large.size(); at += 70'001)
    writer->write(std::string_view(large).substr(at, 70'001));
  EXPECT_EQ(writer->size(), large.size());
  const Digest digest = writer->commit();
  EXPECT_EQ(digest, Digest::of(large));
  EXPECT_EQ(store_->open(digest)->text(), large);
  ASSERT_EQ(store_->list().size(), 1U);
  EXPECT_EQ(store_->list()[0].form, BlobForm::kCompressed);
  EXPECT_LT(store_->list()[0].stored_bytes, large.size() / 100);
  EXPECT_TRUE(place_->has(digest, BlobForm::kCompressed));
}

TEST_P(BlobStoreTest, CompressedBytesOfEveryLengthComeBack) {
  // The unpacking buffer has 128 KiB: a blob may end where it does.
  for (const size_t whole : {size_t{1} << 17, size_t{1} << 18, size_t{1} << 20}) {
    for (const size_t size : {whole - 1, whole, whole + 1}) {
      std::string bytes(size, '\0');
      for (size_t i = 0; i < size; i += 3) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
      const Digest digest = store_->put(bytes, {.form = BlobForm::kCompressed});
      EXPECT_EQ(store_->open(digest)->text(), bytes) << size;
    }
  }
}

TEST_P(BlobStoreTest, BytesAreAskedForBeforeTheyAreWritten) {
  uint64_t room = 100'000;
  store_->bound_by([&](uint64_t bytes) {
    if (store_->stored_bytes() + bytes > room) throw Error(ErrorCode::kDiskFull, "no room");
  });
  std::string noise(300'000, '\0');
  std::minstd_rand random(1);
  for (char& byte : noise) byte = static_cast<char>(random() >> 8);
  for (const BlobForm form : {BlobForm::kPlain, BlobForm::kCompressed}) {
    const auto writer = store_->writer({.form = form});
    EXPECT_THROW(
        {
          for (size_t at = 0; at < noise.size(); at += 1000)
            writer->write(std::string_view(noise).substr(at, 1000));
          writer->commit();
        },
        Error);
  }
  EXPECT_TRUE(store_->list().empty());
  EXPECT_NO_THROW(store_->put(std::string(3'000'000, 'x'), {.form = BlobForm::kCompressed}))
      << "little, at rest";
  EXPECT_NO_THROW(store_->put(noise, {.always = true}));
}

TEST_P(BlobStoreTest, EqualBytesAreStoredOnce) {
  store_->put(kText);
  store_->put(kText);
  store_->put(kText, {.form = BlobForm::kCompressed});
  EXPECT_EQ(store_->list().size(), 1U);
  EXPECT_EQ(place_->leftovers(), 0U);
}

TEST_P(BlobStoreTest, APlainCopyReplacesACompressedOne) {
  const Digest digest = store_->put(kText, {.form = BlobForm::kCompressed});
  store_->put(kText);
  EXPECT_TRUE(place_->has(digest, BlobForm::kPlain));
  EXPECT_FALSE(place_->has(digest, BlobForm::kCompressed));
  EXPECT_EQ(store_->open(digest)->text(), kText);
}

TEST_P(BlobStoreTest, AWrongDigestLeavesNothing) {
  EXPECT_ERROR(store_->put(kText, {.expected = Digest::of("other")}), ErrorCode::kDigestMismatch);
  EXPECT_TRUE(store_->list().empty());
  EXPECT_EQ(place_->leftovers(), 0U);
  EXPECT_EQ(store_->put(kText, {.expected = Digest::of(kText)}), Digest::of(kText));
}

TEST_P(BlobStoreTest, TheLimitIsEnforced) {
  const auto writer = store_->writer({.max_bytes = 4});
  writer->write("1234");
  EXPECT_ERROR(writer->write("5"), ErrorCode::kTooLarge);
}

TEST_P(BlobStoreTest, AnAbandonedWriterLeavesNothing) {
  {
    const auto writer = store_->writer();
    writer->write(kText);
    EXPECT_EQ(place_->leftovers(), 1U);
  }
  EXPECT_EQ(place_->leftovers(), 0U);
  EXPECT_FALSE(store_->exists(Digest::of(kText)));
}

TEST_P(BlobStoreTest, DamageIsAnErrorAndIsHealedByTheSameBytes) {
  for (const BlobForm form : {BlobForm::kCompressed, BlobForm::kPlain}) {
    const Digest digest = store_->put(kText, {.form = form});
    place_->damage(digest, form);
    const std::unique_ptr<BlobStore> fresh = place_->open();
    EXPECT_ERROR(fresh->open(digest), ErrorCode::kCorrupt);
    EXPECT_ERROR(fresh->verify(digest), ErrorCode::kCorrupt);
    fresh->put(kText, {.form = form});
    EXPECT_EQ(fresh->open(digest)->text(), kText);
    EXPECT_EQ(place_->open()->open(digest)->text(), kText);
    EXPECT_TRUE(fresh->remove(digest));
  }
}

TEST_P(BlobStoreTest, ACutOffFrameIsCorrupt) {
  const Digest digest = store_->put(kText, {.form = BlobForm::kCompressed});
  place_->cut(digest, BlobForm::kCompressed);
  EXPECT_ERROR(store_->verify(digest), ErrorCode::kCorrupt);
}

TEST_P(BlobStoreTest, ARemovedBlobIsGoneButStaysReadableWhereItIsOpen) {
  const Digest digest = store_->put(kText);
  const auto blob = store_->open(digest);
  EXPECT_TRUE(store_->remove(digest));
  EXPECT_FALSE(store_->remove(digest));
  EXPECT_FALSE(store_->exists(digest));
  EXPECT_ERROR(store_->open(digest), ErrorCode::kNotFound);
  EXPECT_EQ(blob->text(), kText);
}

TEST_P(BlobStoreTest, TheListIsSorted) {
  std::vector<Digest> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(store_->put("blob " + std::to_string(i)));
  std::sort(expected.begin(), expected.end());
  std::vector<Digest> actual;
  for (const BlobInfo& info : store_->list()) actual.push_back(info.digest);
  EXPECT_EQ(actual, expected);
}

TEST_P(BlobStoreTest, ACollectionTakesWhatNoRowNames) {
  const Digest named = store_->put("named");
  const Digest stray = store_->put("stray", {.form = BlobForm::kCompressed});
  EXPECT_THROW(store_->collect(), InternalError) << "nobody has said what must stay";
  // A root that is not there is no fault.
  std::vector<Digest> roots = {named, Digest::of("absent")};
  std::sort(roots.begin(), roots.end());
  store_->keep_roots([&] { return roots; });
  EXPECT_THROW(store_->keep_roots([] { return std::vector<Digest>(); }), InternalError) << "only once";
  const Collected would = store_->collect(true);
  EXPECT_EQ(would.blobs, 1U);
  EXPECT_TRUE(store_->exists(stray));
  const Collected done = store_->collect();
  EXPECT_EQ(done.blobs, 1U);
  EXPECT_EQ(done.stored_bytes, would.stored_bytes);
  EXPECT_GT(done.stored_bytes, 0U);
  EXPECT_FALSE(store_->exists(stray));
  EXPECT_EQ(store_->open(named)->text(), "named");
}

TEST_P(BlobStoreTest, WhatWasCommittedUnderAHoldStaysUntilItsEnd) {
  store_->keep_roots([] { return std::vector<Digest>(); });
  const Digest older = store_->put("older");
  const Digest again = store_->put("again");
  std::optional<BlobHold> first(std::in_place, *store_);
  const Digest written = store_->put("written");
  std::optional<BlobHold> second(std::in_place, *store_);
  store_->put("again");  // there already, and needed from now on
  Collected done = store_->collect();
  EXPECT_EQ(done.blobs, 1U);
  EXPECT_EQ(done.held, 2U);
  EXPECT_FALSE(store_->exists(older));
  first.reset();
  done = store_->collect();
  EXPECT_EQ(done.held, 1U) << "the second hold began after \"written\" was committed";
  EXPECT_FALSE(store_->exists(written));
  EXPECT_TRUE(store_->exists(again));
  second.reset();
  EXPECT_EQ(store_->collect().blobs, 1U);
  EXPECT_TRUE(store_->list().empty());
}

TEST_P(BlobStoreTest, AHoldThatEndsWhileRowsAreReadKeepsItsBlobs) {
  std::optional<BlobHold> hold(std::in_place, *store_);
  const Digest written = store_->put("written");
  // Its row comes too late to be seen, and the hold ends before the blob is looked at.
  store_->keep_roots([&] {
    hold.reset();
    return std::vector<Digest>();
  });
  const Collected done = store_->collect();
  EXPECT_EQ(done.blobs, 0U);
  EXPECT_TRUE(store_->exists(written));
}

TEST_P(BlobStoreTest, WhoIsToldToStopHashesNoFurther) {
  const Digest large = store_->put(std::string(9 << 20, 'l'));
  const std::unique_ptr<BlobStore> fresh = place_->open();
  std::stop_source stopped;
  stopped.request_stop();
  try {
    fresh->open(large, stopped.get_token());
    FAIL() << "all of it was verified";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_EQ(fresh->open(large)->size(), size_t{9} << 20) << "and another caller's is verified";
  EXPECT_EQ(fresh->open(large, stopped.get_token())->size(), size_t{9} << 20) << "nothing is left to hash";
}

TEST_P(BlobStoreTest, WhatIsReleasedIsLookedAtAlone) {
  std::vector<Digest> roots, asked;
  int whole_reads = 0;
  store_->keep_roots(
      [&] {
        ++whole_reads;
        return roots;
      },
      [&](const std::vector<Digest>& some) {
        asked = some;
        std::vector<Digest> both;
        std::set_intersection(some.begin(), some.end(), roots.begin(), roots.end(), std::back_inserter(both));
        return both;
      });
  for (int i = 0; i < 20; ++i) roots.push_back(store_->put("root " + std::to_string(i)));
  std::sort(roots.begin(), roots.end());
  const Digest stray = store_->put("stray");
  EXPECT_EQ(store_->collect_released().blobs, 1U) << "what was stored and is named by nothing";
  EXPECT_FALSE(store_->exists(stray));
  EXPECT_EQ(asked.size(), 21U);
  EXPECT_EQ(store_->collect_released().blobs, 0U);
  EXPECT_TRUE(asked.empty()) << "none is looked at twice";
  const std::vector<Digest> let_go = {roots.back(), roots.front(), Digest::of("absent")};
  roots.pop_back();
  store_->release(let_go);
  EXPECT_EQ(store_->collect_released().blobs, 1U);
  EXPECT_EQ(asked.size(), 3U);
  EXPECT_FALSE(store_->exists(let_go[0]));
  EXPECT_TRUE(store_->exists(let_go[1])) << "another row names it";
  {
    const BlobHold hold(*store_);
    store_->put("held");
    EXPECT_EQ(store_->collect_released().held, 1U);
    EXPECT_EQ(store_->collect_released().held, 1U) << "it is looked at until its hold ends";
  }
  EXPECT_EQ(store_->collect_released().blobs, 1U);
  EXPECT_EQ(whole_reads, 0);
  EXPECT_EQ(store_->list().size(), 19U);
}

TEST_P(BlobStoreTest, WhatIsReleasedWhileRowsAreReadIsLookedAtNext) {
  Digest late = store_->put("late");
  bool is_named = true, fails = true;
  const auto kept = [&]() -> std::vector<Digest> {
    if (std::exchange(fails, false)) throw Error(ErrorCode::kIo, "the catalog is broken just now");
    if (!std::exchange(is_named, false)) return {};
    store_->release(std::span(&late, 1));
    return {late};
  };
  store_->keep_roots(kept);
  EXPECT_THROW(store_->collect_released(), Error);
  EXPECT_EQ(store_->collect_released().blobs, 0U) << "a row names it";
  EXPECT_EQ(store_->collect_released().blobs, 1U) << "which went while all were read";
  late = store_->put("late");
  is_named = fails = true;
  EXPECT_THROW(store_->collect(), Error);
  EXPECT_EQ(store_->collect().blobs, 0U);
  EXPECT_EQ(store_->collect_released().blobs, 1U);
}

TEST_P(BlobStoreTest, CommitsAndCollectionsAtOnceLoseNothingThatIsHeld) {
  store_->keep_roots([] { return std::vector<Digest>(); });
  std::jthread collector([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) store_->collect();
  });
  for (int i = 0; i < 50; ++i) {
    const BlobHold hold(*store_);
    const std::string text = "blob " + std::to_string(i % 3);
    const Digest digest = store_->put(text);
    EXPECT_EQ(store_->open(digest)->text(), text);
  }
}

/// Sums and lists of the store and of a second look at the same folders.
void expect_same(const BlobStore& store, const BlobStore& fresh) {
  EXPECT_EQ(store.usage().blobs, fresh.usage().blobs);
  EXPECT_EQ(store.usage().compressed, fresh.usage().compressed);
  EXPECT_EQ(store.usage().stored_bytes, fresh.usage().stored_bytes);
  EXPECT_EQ(store.stored_bytes(), fresh.stored_bytes()) << "nothing is being written";
  const std::vector<BlobInfo> known = store.list(), found = fresh.list();
  ASSERT_EQ(known.size(), found.size());
  for (size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(known[i].digest, found[i].digest);
    EXPECT_EQ(known[i].form, found[i].form);
    EXPECT_EQ(known[i].stored_bytes, found[i].stored_bytes);
  }
}

TEST_P(BlobStoreTest, SumsAreWhatTheFoldersHoldAfterEveryChange) {
  const auto check = [&] { expect_same(*store_, *place_->open()); };
  std::optional<Digest> kept;
  store_->keep_roots([&] { return std::vector<Digest>{*kept}; });
  kept = store_->put("plain");
  check();
  const std::string text(10'000, 't');
  store_->put(text, {.form = BlobForm::kCompressed});
  check();
  EXPECT_EQ(store_->usage().compressed, 1U);
  store_->put(text);
  check();
  EXPECT_EQ(store_->usage().compressed, 0U) << "the plain form took its place";
  EXPECT_EQ(store_->usage().stored_bytes, 5 + text.size());
  store_->put("gone");
  store_->remove(Digest::of("gone"));
  check();
  {
    const auto writer = store_->writer();
    writer->write("unfinished");
    EXPECT_EQ(store_->stored_bytes(), store_->usage().stored_bytes + 10) << "what is being written counts";
  }
  store_->collect();
  EXPECT_EQ(store_->usage().blobs, 1U);
  check();
}

TEST_P(BlobStoreTest, ConcurrentUploadsOfOneBlobAreHarmless) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const Digest digest = store_->put("shared " + std::to_string(i % 5),
                                          {.form = t % 2 == 0 ? BlobForm::kPlain : BlobForm::kCompressed});
        store_->open(digest);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->list().size(), 5U);
  EXPECT_EQ(place_->leftovers(), 0U);
}

}  // namespace
}  // namespace tensormill::storage::blob_store_test
