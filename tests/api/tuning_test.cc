// Tuning records over HTTP: what is asked of the service and what is answered.
#include <gtest/gtest.h>

#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

class TuningEndpoints : public ApiTest {
protected:
  const std::string id_ = Digest::of("set").text();
};

TEST_F(TuningEndpoints, ImportsLines) {
  const Answer created =
      send("POST", "/v1/tuning-records", {"Content-Type: application/x-ndjson"}, "{\"a\":1}\n");
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.header("Location"), "/v1/tuning-records/" + id_);
  EXPECT_EQ(created.json().dump(), R"({"added":1,"id":")" + id_ + R"(","records":2,"tasks":1})");
  EXPECT_EQ(tuning_.imported, "{\"a\":1}\n");
  EXPECT_FALSE(tuning_.foreign);
  tuning_.created = false;
  EXPECT_EQ(send("POST", "/v1/tuning-records?foreign=1", {}, "{}").status, 200);
  EXPECT_TRUE(tuning_.foreign);
}

TEST_F(TuningEndpoints, RefusesOtherBodies) {
  expect_problem(send("POST", "/v1/tuning-records", {"Content-Type: text/html"}, "x"), 415,
                 "unsupported_media_type");
  expect_problem(send("POST", "/v1/tuning-records?foreign=2", {}, "x"), 400, "invalid_request");
  options_.max_records_bytes = 3;
  rebuild();
  expect_problem(send("POST", "/v1/tuning-records", {}, "four"), 413, "too_large");
}

TEST_F(TuningEndpoints, AnswersAndRemovesSets) {
  const Answer all = get("/v1/tuning-records?model=m&target=llvm");
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(all.header("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(tuning_.query.model, "m");
  EXPECT_EQ(tuning_.query.target, "llvm");
  EXPECT_EQ(get("/v1/tuning-records/" + id_).header("ETag"), "\"" + id_ + "\"");
  EXPECT_EQ(get("/v1/tuning-records/" + id_, {"If-None-Match: \"" + id_ + "\""}).status, 304);
  expect_problem(get("/v1/tuning-records/other"), 404, "not_found");
  EXPECT_EQ(send("DELETE", "/v1/tuning-records/" + id_).status, 204);
  expect_problem(send("DELETE", "/v1/tuning-records/other"), 404, "not_found");
}

}  // namespace
}  // namespace tensormill::testing_api
