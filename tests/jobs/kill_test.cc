// kill -9 in the middle of uploads and publications, over real files.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "runtime/base/json.h"
#include "server/jobs/child_process.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"
#include "tests/storage/support.h"

namespace tensormill::jobs {
namespace {

/// Lets a process publish until it has said so `count` times, kills it, and adds what it said to
/// `acknowledged`.
void publish_and_kill(const std::string& root, int round, size_t count, std::set<std::string>* acknowledged) {
  ChildSpec spec;
  spec.command = "child-publish";
  spec.arguments = {root, std::to_string(round)};
  spec.limits.confine = false;
  ChildProcess child(spec);
  const size_t wanted = acknowledged->size() + count;
  const auto on_event = [&](const std::string& type, const std::string& json) {
    if (type == "published") acknowledged->insert(parse_json(json).get<std::string>());
    if (acknowledged->size() >= wanted) child.cancel();
  };
  std::optional<ChildOutcome> outcome;
  while (!outcome) outcome = child.poll(std::chrono::seconds(60), on_event);
  ASSERT_EQ(outcome->end, ChildEnd::kCancelled) << outcome->error->what();
}

TEST(KillTest, WhatWasAcknowledgedIsThereAndVerifies) {
  const storage::TemporaryFolder folder;
  const std::string root = folder.path() + "/store";
  storage::PosixEnv env;
  { const storage::FolderBlobStore made(env, root); }
  std::set<std::string> acknowledged;
  for (int round = 0; round < 20; ++round) {
    publish_and_kill(root, round, static_cast<size_t>(round % 4) + 1, &acknowledged);
    storage::SqliteCatalog catalog(env, root + "/catalog.db");
    storage::FolderBlobStore blobs(env, root);
    const std::vector<Digest> named = catalog.referenced_blobs();
    for (const Digest& blob : named) blobs.verify(blob);
    for (const std::string& id : acknowledged) {
      EXPECT_TRUE(std::binary_search(named.begin(), named.end(), *Digest::parse(id))) << id << " was lost";
    }
    blobs.keep_roots([&] { return named; });
    blobs.collect();
    EXPECT_EQ(blobs.list().size(), named.size());
    EXPECT_TRUE(env.list(root + "/tmp").empty());
  }
  EXPECT_GE(acknowledged.size(), 50U);
}

}  // namespace
}  // namespace tensormill::jobs
