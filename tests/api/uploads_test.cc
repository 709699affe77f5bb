// Uploads, blobs and the store over the API.
#include <gtest/gtest.h>

#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

class Uploads : public ApiTest {
protected:
  Uploads() { store_.upload.id = "0190a6c4-0000-7000-8000-000000000001"; }
  Answer append(const std::string& bytes, const std::vector<std::string>& fields = {}) {
    return send("PATCH", path_, fields, bytes);
  }
  const std::string path_ = "/v1/uploads/0190a6c4-0000-7000-8000-000000000001";
};

TEST_F(Uploads, BytesArriveInChunks) {
  const Answer begun = send("POST", "/v1/uploads");
  EXPECT_EQ(begun.status, 201);
  EXPECT_EQ(begun.header("Location"), path_);
  EXPECT_FALSE(begun.headers.has("Range")) << "nothing is kept yet";
  const Answer first = append("hello, ", {"Content-Range: 0-6"});
  EXPECT_EQ(first.status, 202);
  EXPECT_EQ(first.header("Range"), "0-6");
  EXPECT_EQ(store_.chunk.length, 7U);
  EXPECT_EQ(append("wide ", {"Content-Range: bytes 7-11/17"}).header("Upload-Offset"), "12");
  const Answer state = get(path_);
  EXPECT_EQ(state.status, 204);
  EXPECT_EQ(state.header("Range"), "0-11");
  EXPECT_EQ(send("HEAD", path_).status, 204);
  expect_problem(append("again", {"Content-Range: 0-4"}), 416, "range_not_satisfiable");
  const std::string digest = Digest::of("hello, wide world").text();
  const Answer done = send("PUT", path_ + "?digest=" + digest, {}, "world");
  EXPECT_EQ(done.status, 201) << done.body;
  EXPECT_EQ(done.header("Location"), "/v1/blobs/" + digest);
  EXPECT_EQ(done.header("Docker-Content-Digest"), digest);
  EXPECT_EQ(done.json().at("blob"), digest);
}

TEST_F(Uploads, WhatIsWrongIsTold) {
  for (const char* range : {"x", "1", "5-4", "0-x", "bytes", "bytes */5", "-5", "0-18446744073709551616"}) {
    expect_problem(append("b", {"Content-Range: " + std::string(range)}), 400, "invalid_request");
  }
  expect_problem(send("PATCH", "/v1/uploads/other", {}, "b"), 404, "not_found");
  expect_problem(get("/v1/uploads/other"), 404, "not_found");
  expect_problem(send("DELETE", "/v1/uploads/other"), 404, "not_found");
  expect_problem(send("PUT", path_, {}, "b"), 400, "invalid_request");
  expect_problem(send("PUT", path_ + "?digest=sha256:12", {}, "b"), 400, "invalid_request");
  expect_problem(send("PUT", path_ + "?digest=" + Digest::of("x").text(), {}, "b"), 400, "digest_mismatch");
  EXPECT_EQ(send("DELETE", path_).status, 204);
  EXPECT_EQ(send("OPTIONS", path_).header("Allow"), "DELETE, GET, HEAD, OPTIONS, PATCH, PUT");
}

TEST_F(Uploads, BlobsAreServedWholeOrInPart) {
  append("0123456789");
  const std::string digest = Digest::of("0123456789").text();
  send("PUT", path_ + "?digest=" + digest);
  const std::string blob = "/v1/blobs/" + digest;
  const Answer whole = get(blob);
  EXPECT_EQ(whole.body, "0123456789");
  EXPECT_EQ(whole.header("ETag"), "\"" + digest + "\"");
  EXPECT_EQ(whole.header("Docker-Content-Digest"), digest);
  const Answer part = get(blob, {"Range: bytes=2-4"});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.header("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(get(blob, {"If-None-Match: \"" + digest + "\""}).status, 304);
  expect_problem(get(blob, {"Range: bytes=10-"}), 416, "range_not_satisfiable");
  expect_problem(get("/v1/blobs/" + Digest::of("x").text()), 404, "not_found");
}

TEST_F(Uploads, OperatorsSeeTheStore) {
  EXPECT_EQ(get("/v1/storage").json().at("blobs").at("count"), 3);
  EXPECT_EQ(get("/v1/storage").json().at("rows").at("deployments"), 1);
  EXPECT_EQ(send("POST", "/v1/gc?dry_run=1").json().at("dry_run"), true);
  const Json report = send("POST", "/v1/gc").json();
  EXPECT_EQ(report.at("dry_run"), false);
  EXPECT_EQ(report.at("removed").at("blobs"), 2);
  EXPECT_EQ(report.at("held").at("referenced"), 5);
}

}  // namespace
}  // namespace tensormill::testing_api
