// Who is not taken costs nothing: the queue is asked before a body is read, and again before it is decoded.
#include <gtest/gtest.h>

#include "api/http/coding.h"
#include "runtime/npz/npz.h"
#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

/// Counts what is taken of it.
class WatchedBody final : public http::BodySource {
public:
  explicit WatchedBody(const std::string& bytes) : inner_(bytes), size_(bytes.size()) {}
  size_t read(std::span<std::byte> buffer) override {
    const size_t count = inner_.read(buffer);
    taken_ += count;
    return count;
  }
  std::optional<uint64_t> length() const override { return size_; }
  size_t taken() const { return taken_; }

private:
  http::BytesBody inner_;
  const size_t size_;
  size_t taken_ = 0;
};

struct Asked {
  std::string path, type, body;
};

class Admission : public ApiTest {
protected:
  /// Every request that runs something on what its body has.
  std::vector<Asked> runs() const {
    const float values[] = {1, 2};
    const std::string npz =
        npz::write_npz(std::vector<npz::NamedTensor>{{"x", Tensor::from<float>({2}, values)}});
    const std::string json = R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2]}]})";
    return {{"/v1/deployments/digits/infer", "application/x-npz", npz},
            {"/v1/deployments/digits/classify", "image/png", "a picture"},
            {"/v2/models/digits/infer", "application/json", json},
            {"/v2/models/digits/versions/7/infer", "application/json", json},
            {"/v1/packages/" + packages_.package.id.text() + "/run", "application/x-npz", npz}};
  }

  http::Response post(const Asked& asked, http::Coding coding, std::shared_ptr<WatchedBody>& body) {
    http::Request request;
    request.method = "POST";
    request.target = asked.path;
    request.headers.add("Host", "localhost:8080");
    request.headers.add("Content-Type", asked.type);
    if (coding != http::Coding::kIdentity)
      request.headers.add("Content-Encoding", std::string(http::coding_name(coding)));
    body = std::make_shared<WatchedBody>(http::encode(asked.body, coding));
    request.body = body;
    return api_->handle(request);
  }
};

TEST_F(Admission, AFullQueueLeavesTheBodyUnread) {
  for (const Asked& asked : runs()) {
    for (const http::Coding coding : {http::Coding::kIdentity, http::Coding::kGzip, http::Coding::kZstd}) {
      std::shared_ptr<WatchedBody> body;
      deployments_.room = 1000;
      packages_.full = false;
      EXPECT_EQ(post(asked, coding, body).status, 200) << asked.path;
      EXPECT_GT(body->taken(), 0u);
      deployments_.room = 0;
      packages_.full = true;
      const http::Response refused = post(asked, coding, body);
      EXPECT_EQ(refused.status, 503) << asked.path;
      EXPECT_EQ(refused.headers.get("Retry-After").value_or(""), "1") << asked.path;
      EXPECT_EQ(body->taken(), 0u) << asked.path;
    }
  }
}

TEST_F(Admission, AQueueThatFillsWhileTheBodyComesSavesItsDecoding) {
  deployments_.room = 1;
  std::shared_ptr<WatchedBody> body;
  const Asked asked = {"/v1/deployments/digits/infer", "application/x-npz", "this is no archive"};
  EXPECT_EQ(post(asked, http::Coding::kIdentity, body).status, 503);
  deployments_.room = 2;
  EXPECT_EQ(post(asked, http::Coding::kIdentity, body).status, 400);
}

TEST_F(Admission, ThePlaceIsGivenBackBeforeTheRequestTakesItsOwn) {
  std::shared_ptr<WatchedBody> body;
  for (const Asked& asked : runs()) {
    deployments_.places_of_inference = -1;
    post(asked, http::Coding::kIdentity, body);
    const bool infers = asked.path.ends_with("/infer");
    EXPECT_EQ(deployments_.places_of_inference, infers ? 0 : -1) << asked.path;
    EXPECT_EQ(deployments_.places.use_count(), 1) << asked.path;
  }
}

TEST_F(Admission, WhatIsNotThereIsToldUnread) {
  std::shared_ptr<WatchedBody> body;
  for (const std::string path :
       {"/v1/deployments/none/infer", "/v1/deployments/none/classify", "/v2/models/none/infer"}) {
    const std::string type = path.ends_with("classify") ? "image/png"
                             : path.starts_with("/v1")  ? "application/x-npz"
                                                        : "application/json";
    EXPECT_EQ(post({path, type, "anything"}, http::Coding::kIdentity, body).status, 404) << path;
    EXPECT_EQ(body->taken(), 0u) << path;
  }
}

}  // namespace
}  // namespace tensormill::testing_api
