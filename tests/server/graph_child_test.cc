// The child that shows a model's graph: one of the children of requests, and gone with its client.
#include <gtest/gtest.h>

#include <functional>

#include "server/services/store/model_service.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/storage/support.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::graph_child_test {
namespace {

constexpr uint64_t kMemory = uint64_t{4} << 30;
/// A child that says more ends no sooner than its first lines are read: a pipe and what reads it hold 64 KiB
/// each.
constexpr size_t kMostUnread = size_t{128} << 10;

/// A model whose graph is a long text.
std::string long_model() {
  std::string text = "graph \"long\" (%v0: f32[1]) {\n";
  constexpr int kNodes = 3000;
  for (int i = 1; i <= kNodes; ++i) {
    const std::string name = std::to_string(i);
    text += "  %v" + name + ": f32[1] = relu(%v" + std::to_string(i - 1) + ") from [\"node" + name + "\"]\n";
  }
  return text + "  return %v" + std::to_string(kNodes) + "\n}\n";
}

class GraphChild : public testing::Test {
protected:
  GraphChild() {
    http::BytesBody body(long_model());
    models_.import_model({"long", "tmg", false, std::nullopt}, body, {});
    EXPECT_EQ(slots_.running(), 0);
  }
  std::string graph(const services::CallContext& context = {}) {
    return models_.graph_json("long", services::GraphStage::kImported, context);
  }
  std::shared_ptr<const jobs::ChildPolicy> policy() {
    jobs::ChildPolicy policy;
    policy.on_confined = [this](jobs::ChildKind, const jobs::Confinement&) { on_child_(); };
    return std::make_shared<const jobs::ChildPolicy>(std::move(policy));
  }

  std::function<void()> on_child_ = [] {};  ///< for each child, while it runs
  const storage::TemporaryFolder folder_;
  storage::MemoryEnv env_;
  storage::FolderBlobStore blobs_{env_, "/s"};
  storage::SqliteCatalog catalog_{env_, "/s/catalog.db"};
  storage::FolderUploadStore uploads_{env_, "/s", blobs_, {}, [] { return int64_t{0}; }};
  BlobCollector collector_{blobs_, catalog_, uploads_};
  StoreQuota quota_{blobs_, uploads_, 0};
  CallerQuota callers_{catalog_, uploads_, {}};
  jobs::ChildSlots slots_{{.memory = kMemory, .requests = 1, .waiting = 0}};
  ChildRunner children_{folder_.path() + "/children", slots_, policy()};
  ModelServiceImpl models_{blobs_,   catalog_, children_, collector_,
                           uploads_, quota_,   callers_,  {.target = target::host_target()}};
};

TEST_F(GraphChild, CountsAsAChildOfARequest) {
  {
    const auto other = slots_.for_request(kMemory, {});
    EXPECT_ERROR(graph(), ErrorCode::kUnavailable);
    EXPECT_EQ(slots_.refusals(), 1U);
  }
  int children = 0;
  on_child_ = [&] {
    ++children;
    EXPECT_EQ(slots_.running(), 1);
  };
  const std::string shown = graph();
  EXPECT_GT(shown.size(), kMostUnread);
  EXPECT_EQ(children, 1);
  EXPECT_EQ(slots_.running(), 0);
  const auto other = slots_.for_request(kMemory, {});
  EXPECT_EQ(graph(), shown) << "what is known needs no child";
  EXPECT_EQ(children, 1);
}

TEST_F(GraphChild, GoesWithItsClient) {
  std::stop_source client;
  services::CallContext context;
  context.cancelled = client.get_token();
  int children = 0;
  on_child_ = [&] {
    ++children;
    client.request_stop();
  };
  EXPECT_ERROR(graph(context), ErrorCode::kCancelled);
  EXPECT_EQ(children, 1) << "it ran when the client went";
  EXPECT_EQ(slots_.running(), 0);
  on_child_ = [] {};
  EXPECT_GT(graph().size(), kMostUnread) << "half a graph was not kept";
}

}  // namespace
}  // namespace tensormill::server::graph_child_test
