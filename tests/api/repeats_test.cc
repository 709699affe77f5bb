// Requests that are sent again with their Idempotency-Key.
#include <gtest/gtest.h>

#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

const std::string kKey = "Idempotency-Key: k1";

class RepeatsTest : public ApiTest {
protected:
  Answer import(const std::string& bytes, const std::vector<std::string>& fields = {kKey}) {
    return send("POST", "/v1/packages", fields, bytes);
  }
};

TEST_F(RepeatsTest, ARepeatIsAnsweredAsTheFirstRequestWas) {
  const Answer first = import("signed bytes");
  EXPECT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(first.header("Idempotency-Replayed"), "");
  const Answer again = import("signed bytes");
  EXPECT_EQ(again.status, 201) << "the fake itself would answer 200 now";
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.header("Location"), first.header("Location"));
  EXPECT_EQ(again.header("Content-Type"), first.header("Content-Type"));
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_NE(again.header("X-Request-Id"), first.header("X-Request-Id"));
  EXPECT_EQ(import("signed bytes", {}).status, 200) << "without the key it is done again";
}

TEST_F(RepeatsTest, AKeyBelongsToOneRequestOfOneCaller) {
  EXPECT_EQ(import("signed bytes").status, 201);
  expect_problem(import("other bytes"), 422, "invalid_argument");
  expect_problem(send("POST", "/v1/uploads", {kKey}), 422, "invalid_argument");
  expect_problem(import("bytes", {"Idempotency-Key: "}), 400, "invalid_request");
  services_.keys = &keys_;
  rebuild();
  const Answer other = import("other bytes", {kKey, "Authorization: Bearer boss"});
  EXPECT_EQ(other.status, 200) << other.body;
  EXPECT_EQ(packages_.imported, "other bytes");
}

TEST_F(RepeatsTest, AFailedRequestMayBeTriedAgain) {
  expect_problem(import("unsigned"), 403, "foreign_code");
  EXPECT_LT(import("signed bytes").status, 300);
}

TEST_F(RepeatsTest, EveryRequestThatCreatesTakesAKey) {
  store_.upload.id = "0190163d-8694-739b-aea5-966c26f8ad92";
  for (const char* target : {"/v1/uploads", "/v1/gc"}) {
    const std::string key = std::string("Idempotency-Key: ") + target;
    const Answer first = send("POST", target, {key});
    EXPECT_LT(first.status, 300) << target << first.body;
    EXPECT_EQ(send("POST", target, {key}).header("Idempotency-Replayed"), "true") << target;
  }
  const Answer model = send("POST", "/v1/models?name=m", {"Idempotency-Key: m"}, "model bytes");
  EXPECT_LT(model.status, 300) << model.body;
  EXPECT_EQ(send("POST", "/v1/models?name=m", {"Idempotency-Key: m"}, "model bytes").body, model.body);
}

TEST_F(RepeatsTest, NobodyWaitsForARequestThatIsInWork) {
  answers_.on_find = [this] {
    answers_.on_find = nullptr;
    expect_problem(import("signed bytes"), 409, "conflict");
  };
  EXPECT_EQ(import("signed bytes").status, 201);
}

}  // namespace
}  // namespace tensormill::testing_api
