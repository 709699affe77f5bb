#include "server/cli/tune_on.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <mutex>
#include <optional>

#include "api/http/labels.h"
#include "api/http/problem.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/cli/link_options.h"
#include "server/cli/model_input.h"
#include "server/worker/server_link.h"

namespace tensormill::cli {

namespace {

/// How often the server is asked how the job goes.
constexpr std::chrono::milliseconds kAsk{500};

/// The name or id by which the server knows the model.
std::string model_of(worker::ServerLink& link, const std::string& model) {
  if (!std::filesystem::exists(model)) return model;
  const auto bytes = in_context(model, [&] { return MappedFile::open(model); });
  // By its bytes: no name that somebody else has given is pointed elsewhere.
  const std::string name = "tune-" + Digest::of(bytes->text()).text().substr(7, 16);
  const auto answer = link.exchange("/v1/models?name=" + name, bytes->text(), "application/json");
  return parse_json(answer.bytes).at("id").get<std::string>();
}

std::string number(const Json& json) { return json.is_number() ? json.dump() : "?"; }

void tell(const Json& job, const GlobalOptions& globals, std::string& last) {
  const Json& progress = job.at("progress");
  if (globals.json && globals.verbosity == 0) return;
  const std::string line = globals.json
                               ? progress.dump()
                               : job.at("state").get<std::string>() + " " + progress.value("stage", "") +
                                     " " + number(progress.value("done", Json())) + "/" +
                                     number(progress.value("total", Json()));
  if (line == last) return;
  last = line;
  std::cerr << line << std::endl;
}

/// A pause between two looks at the server.
void pause() {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable never;
  never.wait_for(lock, kAsk, [] { return false; });
}

Json ended(worker::ServerLink& link, const std::string& id, const GlobalOptions& globals) {
  std::string last;
  while (true) {
    Json job = link.get("/v1/jobs/" + id);
    tell(job, globals, last);
    const auto state = job.at("state").get<std::string>();
    if (state != "queued" && state != "running") return job;
    pause();
  }
}

}  // namespace

Json tune_on(const RunOnArguments& arguments, const TuneOnRequest& request, const GlobalOptions& globals) {
  if (arguments.server.empty()) throw Error(ErrorCode::kUsage, "--on needs --server");
  worker::ServerLink link(
      link_options(arguments.server, arguments.key_file, arguments.ca_file, arguments.pins));
  Json body = request.job;
  body["kind"] = "tune";
  body["model"] = model_of(link, request.model);
  body["on"] = http::join_labels(http::parse_labels(arguments.on));
  const std::string id = link.post("/v1/jobs", body).at("id").get<std::string>();
  const Json job = ended(link, id, globals);
  if (job.at("state") == "cancelled") throw Error(ErrorCode::kCancelled, "job " + id + " was cancelled");
  if (job.at("state") == "failed") {
    const Error error = http::error_of_problem(job.at("error"));
    throw Error(error.code(), "job " + id + ": " + error.message(), error.details());
  }
  Json result = job.at("result");
  const std::string part = request.output + ".part";
  std::filesystem::remove(part);
  link.get_file("/v1/tuning-records/" + result.at("records").get<std::string>(), part,
                std::numeric_limits<uint64_t>::max(), [] {});
  std::filesystem::rename(part, request.output);
  return result;
}

}  // namespace tensormill::cli
