// What a store in S3 does beyond what every blob store does: parts, its cache, faults of the network.
#include "storage/s3/s3_blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "storage/env/posix_env.h"
#include "tests/storage/faulty_transport.h"
#include "tests/storage/s3_server.h"

namespace tensormill::storage::s3_blob_store_test {
namespace {

constexpr NetworkFault kFaults[] = {NetworkFault::kNotSent, NetworkFault::kLost, NetworkFault::kCut,
                                    NetworkFault::kBusy, NetworkFault::kInternal};

std::string noise(size_t size) {
  std::string bytes(size, '\0');
  std::minstd_rand random(static_cast<unsigned>(size));
  for (char& byte : bytes) byte = static_cast<char>(random() >> 8);
  return bytes;
}

class S3BlobStoreTest : public testing::Test {
protected:
  /// A process on a machine of its own, unless `machine` says which.
  std::unique_ptr<S3BlobStore> open(const std::string& machine = "") {
    const std::string name = machine.empty() ? "machine-" + std::to_string(machines_++) : machine;
    return std::make_unique<S3BlobStore>(env_, folder_.path() + "/" + name, options_,
                                         std::make_unique<FaultyTransport>(network_));
  }
  std::vector<std::string> requests() {
    const std::lock_guard lock(network_.mutex);
    return std::exchange(network_.requests, {});
  }
  /// The story without a fault, and with each fault at each of its exchanges; how many it has.
  uint64_t with_every_fault(const std::function<void()>& story) {
    const uint64_t before = network_.exchanges;
    story();
    const uint64_t exchanges = network_.exchanges - before;
    for (uint64_t k = 1; k <= exchanges; ++k) {
      for (const NetworkFault fault : kFaults) {
        SCOPED_TRACE("exchange " + std::to_string(k) + ", fault " + std::to_string(static_cast<int>(fault)));
        network_.fail(k, 1, fault);
        story();
      }
    }
    return exchanges;
  }
  size_t objects(const std::string& folder) {
    const std::string path = S3Server::shared().file_of(options_, folder);
    size_t count = 0;
    if (!std::filesystem::exists(path)) return 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      count += entry.is_regular_file();
    return count;
  }

  TemporaryFolder folder_;
  PosixEnv env_;
  NetworkScript network_;
  S3StoreOptions options_ = S3Server::shared().options();
  int machines_ = 0;
};

TEST_F(S3BlobStoreTest, WhatIsLargerThanAPartIsStagedAndCopied) {
  const std::string bytes = noise((size_t{11} << 20) + 7);
  for (const uint64_t copy_bytes : {uint64_t{5} << 30, uint64_t{5} << 20}) {
    options_.s3.copy_bytes = copy_bytes;
    const auto store = open();
    requests();
    const Digest digest = store->put(bytes);
    EXPECT_EQ(digest, Digest::of(bytes));
    EXPECT_THAT(requests(), testing::Contains(testing::HasSubstr("partNumber=3")));
    EXPECT_EQ(objects("staging"), 0U);
    EXPECT_EQ(open()->open(digest)->text(), bytes);
    requests();
    store->put(bytes);
    EXPECT_EQ(objects("staging"), 0U) << "it was there";
    EXPECT_TRUE(store->remove(digest));
    EXPECT_EQ(objects("blobs"), 0U);
  }
}

TEST_F(S3BlobStoreTest, WhatFitsIntoAPartIsOneRequest) {
  const auto store = open();
  requests();
  const Digest digest = store->put(noise(1000));
  EXPECT_EQ(requests().size(), 1U);
  store->open(digest);
  EXPECT_TRUE(requests().empty()) << "it lies in the cache";
}

TEST_F(S3BlobStoreTest, EveryFaultOfEveryRequestIsSurvived) {
  const std::string text = noise(1000);
  const uint64_t exchanges = with_every_fault([&] {
    const auto store = open();
    const Digest digest = store->put(text, {.form = BlobForm::kCompressed});
    store->put(text);
    store->put("other");
    const auto fresh = open();
    EXPECT_EQ(fresh->open(digest)->text(), text);
    EXPECT_EQ(fresh->usage().blobs, 2U);
    EXPECT_EQ(fresh->usage().compressed, 0U);
    fresh->keep_roots([] { return std::vector<Digest>(); });
    EXPECT_EQ(fresh->collect().blobs, 2U);
    EXPECT_EQ(objects("blobs"), 0U);
  });
  EXPECT_GT(exchanges, 12U);
}

TEST_F(S3BlobStoreTest, EveryFaultOfAnUploadInPartsIsSurvived) {
  const std::string large = noise((size_t{5} << 20) + 1000);
  const auto store = open();
  const uint64_t exchanges = with_every_fault([&] {
    const Digest digest = store->put(large);
    EXPECT_EQ(std::filesystem::file_size(S3Server::shared().file_of(
                  options_, "blobs/sha256/" + blob_path(digest, BlobForm::kPlain))),
              large.size());
    EXPECT_EQ(objects("staging"), 0U);
    EXPECT_TRUE(store->remove(digest));
  });
  EXPECT_EQ(exchanges, 7U);
}

TEST_F(S3BlobStoreTest, AnAnswerThatIsCutOffIsTakenUpWhereItEnded) {
  const std::string bytes = noise(4 << 20);
  const Digest digest = open()->put(bytes);
  const auto store = open();
  requests();
  network_.fail(1, 3, NetworkFault::kCut);
  EXPECT_EQ(store->open(digest)->text(), bytes);
  const std::vector<std::string> asked = requests();
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_TRUE(asked[1].ends_with("bytes=2097152-")) << asked[1];
  EXPECT_TRUE(asked[3].ends_with("bytes=3670016-")) << asked[3];
}

TEST_F(S3BlobStoreTest, AStoreThatIsAwayIsAnErrorAndNothingIsLeft) {
  const auto store = open();
  const Digest kept = store->put("kept");
  const auto loaded = store->open(kept);
  const std::string large = noise(size_t{6} << 20);
  for (const NetworkFault fault : {NetworkFault::kNotSent, NetworkFault::kBusy}) {
    network_.fail(1, 1'000'000, fault);
    EXPECT_ERROR(store->put("new"), ErrorCode::kUnavailable);
    EXPECT_ERROR(store->put(large), ErrorCode::kUnavailable);
    EXPECT_ERROR(store->open(Digest::of("absent")), ErrorCode::kUnavailable);
    EXPECT_ERROR(store->remove(kept), ErrorCode::kUnavailable);
    EXPECT_EQ(store->open(kept)->text(), "kept") << "what the cache has is served";
    EXPECT_EQ(store->stored_bytes(), 4U);
    network_.fail(0, 0, fault);
    EXPECT_FALSE(store->exists(Digest::of("new")));
    EXPECT_EQ(store->open(kept)->text(), "kept");
    EXPECT_TRUE(env_.list(folder_.path() + "/machine-0/tmp").empty());
  }
  EXPECT_EQ(store->open(store->put(large))->text(), large);
}

TEST_F(S3BlobStoreTest, AServerThatIsKilledAndComesBackLosesNothing) {
  S3Server server;
  options_ = server.options();
  const auto store = open();
  const Digest kept = store->put("kept");
  server.kill();
  EXPECT_ERROR(store->put("new"), ErrorCode::kUnavailable);
  server.start();
  EXPECT_EQ(store->open(store->put("new"))->text(), "new");
  EXPECT_EQ(open()->open(kept)->text(), "kept");
}

TEST_F(S3BlobStoreTest, TheCacheOutlivesTheProcessAndIsVerifiedAgain) {
  const Digest digest = open("m")->put("text");
  network_.fail(0, 0, NetworkFault::kNotSent);
  {
    const auto again = open("m");
    requests();
    EXPECT_EQ(again->open(digest)->text(), "text");
    EXPECT_TRUE(requests().empty());
  }
  const std::string path = folder_.path() + "/m/cache/" + blob_path(digest, BlobForm::kPlain);
  std::ofstream(path, std::ios::trunc) << "tuxt";
  const auto damaged = open("m");
  requests();
  EXPECT_EQ(damaged->open(digest)->text(), "text") << "fetched again";
  EXPECT_EQ(requests().size(), 1U);
}

TEST_F(S3BlobStoreTest, TheCacheIsBoundedAndWhatIsMappedStays) {
  options_.cache_bytes = 2500;
  const auto store = open();
  std::vector<Digest> blobs;
  for (int i = 0; i < 5; ++i) blobs.push_back(store->put(std::string(1000, static_cast<char>('a' + i))));
  EXPECT_EQ(store->cache().bytes(), 2000U);
  // Of a loaded deployment: the mapping alone is kept.
  const auto pinned = store->open(blobs[0])->mapping();
  for (int i = 1; i < 5; ++i) store->open(blobs[i]);
  EXPECT_EQ(store->cache().bytes(), 2000U);
  EXPECT_EQ(store->cache().pinned_bytes(), 1000U);
  network_.fail(1, 1'000'000, NetworkFault::kNotSent);
  EXPECT_EQ(store->open(blobs[0])->size(), 1000U);
  EXPECT_EQ(store->open(blobs[4])->size(), 1000U) << "the latest";
  EXPECT_ERROR(store->open(blobs[1]), ErrorCode::kUnavailable);
  // What is needed at once is there at once, whatever the bound.
  network_.fail(0, 0, NetworkFault::kNotSent);
  std::vector<std::shared_ptr<const Blob>> all;
  for (const Digest& digest : blobs) all.push_back(store->open(digest));
  EXPECT_EQ(store->cache().pinned_bytes(), 5000U);
}

TEST_F(S3BlobStoreTest, ReplicasSeeWhatTheOthersDo) {
  const auto first = open(), second = open();
  const Digest digest = first->put("of the first");
  EXPECT_TRUE(second->exists(digest));
  EXPECT_EQ(second->open(digest)->text(), "of the first");
  second->put("of the first");
  const Digest other = second->put("of the second", {.form = BlobForm::kCompressed});
  first->put("of the second");
  EXPECT_EQ(open()->open(other)->text(), "of the second");
  first->remove(other);
  EXPECT_ERROR(open()->open(other), ErrorCode::kNotFound);
}

TEST_F(S3BlobStoreTest, AFolderBelongsToOneStore) {
  open();
  open();
  options_.store_id = "another";
  EXPECT_ERROR(open(), ErrorCode::kInUse);
  options_.s3.bucket = "no-such-bucket";
  EXPECT_ERROR(open(), ErrorCode::kUsage);
  options_.s3.bucket = "blobs-of-tests";
  options_.credentials.environment["AWS_SECRET_ACCESS_KEY"] = "wrong";
  EXPECT_ERROR(open(), ErrorCode::kUnavailable);
}

TEST_F(S3BlobStoreTest, WhatUnfinishedUploadsLeftGoesAfterAGrace) {
  const auto store = open();
  const auto writer = store->writer();
  writer->write(noise(size_t{6} << 20));
  EXPECT_EQ(store->sweep_uploads(), 0U) << "it is young";
  const auto now = options_.s3.unix_seconds;
  options_.s3.unix_seconds = [now] { return now(); };
  options_.s3.staging_grace = std::chrono::seconds(-60);
  // A later start, when the process that wrote is long gone.
  open();
  EXPECT_ERROR(writer->commit(), ErrorCode::kUnavailable);
  EXPECT_EQ(objects("staging"), 0U);
}

TEST_F(S3BlobStoreTest, ABucketOfSeveralPagesIsReadWhole) {
  { open(); }
  constexpr int kBlobs = 1100;
  for (int i = 0; i < kBlobs; ++i) {
    const std::string text = "blob " + std::to_string(i);
    const std::string path =
        S3Server::shared().file_of(options_, "blobs/sha256/" + blob_path(Digest::of(text), BlobForm::kPlain));
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
  }
  const auto store = open();
  EXPECT_EQ(store->usage().blobs, static_cast<uint64_t>(kBlobs));
  EXPECT_EQ(store->open(Digest::of("blob 77"))->text(), "blob 77");
  store->keep_roots([] { return std::vector<Digest>{Digest::of("blob 77")}; });
  EXPECT_EQ(store->collect().blobs, static_cast<uint64_t>(kBlobs - 1));
  EXPECT_EQ(open()->list().size(), 1U);
}

}  // namespace
}  // namespace tensormill::storage::s3_blob_store_test
