// Every operation of a server with the k-th change of its disk failing, for all k: it says that the disk is
// full, or its job fails and says so; nothing half-written stays; the same operation works once there is room
// again.
#include <cstdlib>
#include <string>

#include "tests/server/faults.h"

namespace tensormill::server {
namespace {

TEST_F(FaultsTest, Imports) {
  const std::string bytes = digits_model() + std::string("\x12\x04name", 6);
  fail_each([&] { import("other", bytes); },
            [&] {
              const auto forget = [&](const std::string& reference) {
                try {
                  services_.models->remove(reference);
                } catch (const Error& error) {
                  EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
                }
              };
              forget("other");
              forget(Digest::of(bytes).text());
            });
}

TEST_F(FaultsTest, Uploads) {
  const std::string bytes(3000, 'u');
  std::string id;
  fail_each(
      [&] {
        id = services_.store->begin_upload({}).id;
        http::BytesBody body(bytes);
        services_.store->append_upload(id, {}, body, {});
        services_.store->finish_upload(id, Digest::of(bytes));
      },
      [&] {
        if (!id.empty()) services_.store->remove_upload(id);
        id.clear();
      });
}

// Each compile is a child process: in the test run some of the changes stand for all. ./dev soak faults tries
// each.
uint64_t compile_stride() {
  const char* text = std::getenv("TENSORMILL_TEST_STRIDE");
  return text == nullptr ? 29 : std::stoull(text);
}

TEST_F(FaultsTest, CompileJobs) {
  const auto compile = [&] {
    services::CompileRequest request;
    request.model = "digits";
    request.target = "llvm -mcpu=native";
    request.opt_level = 0;
    request.force = true;
    request.input_shapes["image"] = {Dim(int64_t{1}), Dim(int64_t{1}), Dim(int64_t{28}), Dim(int64_t{28})};
    const std::string id = services_.jobs->submit_compile(request, {}, {}).job.id;
    const services::Job job = services_.jobs->wait(id, std::chrono::minutes(5), {});
    ASSERT_TRUE(services::is_final(job.state));
    if (job.state == services::JobState::kSucceeded) return;
    ASSERT_TRUE(job.error);
    throw Error(job.error->code, job.error->message);
  };
  fail_each(
      compile, [] {}, compile_stride());
}

TEST_F(FaultsTest, Deployments) {
  services::DeploymentSpec spec;
  spec.package = package_;
  fail_each([&] { services_.deployments->put("digits", spec, {}); },
            [&] {
              if (services_.deployments->has("digits"))
                services_.deployments->remove("digits", std::nullopt, {});
            });
  services_.deployments->put("digits", spec, {});
  fail_each([&] { services_.deployments->remove("digits", std::nullopt, {}); },
            [&] { services_.deployments->put("digits", spec, {}); });
}

}  // namespace
}  // namespace tensormill::server
