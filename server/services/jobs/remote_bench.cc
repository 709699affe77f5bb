#include "server/services/jobs/remote_bench.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/ask_elsewhere.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

namespace {

/// A crash of what measures is tried once more.
constexpr int kMeasureAttempts = 2;
/// As where it is measured beside the server.
constexpr double kRoofSeconds = 60;

/// Of a request's buffers, [offset, bytes, is_output].
int64_t end_of_buffer(const Json& buffer) {
  return buffer.at(0).get<int64_t>() + buffer.at(1).get<int64_t>();
}

int64_t inputs_end(const Json& requests) {
  int64_t end = 0;
  for (const Json& buffer : requests.at(0).value("buffers", Json::array())) {
    if (!buffer.at(2).get<bool>()) end = std::max(end, end_of_buffer(buffer));
  }
  return end;
}

void put_at(int fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw_errno(errno, "cannot write to a memory file");
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += put;
  }
}

}  // namespace

RemoteBench::RemoteBench(jobs::JobQueue& queue, storage::BlobStore& blobs, jobs::JobContext& context,
                         TuneFiles files, RemoteBenchOptions options)
    : queue_(queue), blobs_(blobs), context_(context), files_(files), options_(std::move(options)) {
  cancel_asked(queue_, "measure", context_.job().id);
}

Json RemoteBench::ask(Json form) {
  form["kind"] = "measure";
  form["on"] = options_.on;
  form["target"] = options_.target;
  form["job"] = context_.job().id;
  Json result = ask_elsewhere(queue_, context_, std::move(form), {kMeasureAttempts, {}});
  const std::string cpu = options_.on + " " + result.at("cpu").get<std::string>();
  if (cpu_.empty()) cpu_ = cpu;
  if (cpu != cpu_)
    throw Error(ErrorCode::kConflict,
                "the workers with the labels " + options_.on +
                    " are of different kinds, of which one job cannot measure: " + cpu_ + "; " + cpu);
  return result;
}

Json RemoteBench::ask_for(const Json& requests, double timeout_seconds) {
  const auto code = MappedFile::map(files_.code, "code");
  const auto tensors = MappedFile::map(files_.tensors, "tensors");
  const std::string_view inputs = tensors->text().substr(0, static_cast<size_t>(inputs_end(requests)));
  return ask({{"blobs", {{"code", blobs_.put(code->text()).text()}, {"tensors", blobs_.put(inputs).text()}}},
              {"requests", requests},
              {"timeout_s", timeout_seconds}});
}

const std::string& RemoteBench::cpu() {
  if (!cpu_.empty()) return cpu_;
  const target::Target target = target::parse_target(options_.target, {});
  const Json request = {{"threads", options_.threads},
                        {"vector_bits", target.facts.vector_bits},
                        {"l2_bytes", target.facts.l2_bytes}};
  Json result = ask_for(Json::array({request}), kRoofSeconds);
  roof_ = std::move(result.at("answers").at(0));
  if (!roof_.contains("gflops")) roof_ = nullptr;
  return cpu_;
}

Json RemoteBench::roof(const target::Target&) {
  cpu();
  return roof_;
}

Json RemoteBench::measure(const Json& requests, double timeout_seconds) {
  const Json result = ask_for(requests, timeout_seconds);
  Json answers = result.at("answers");
  if (answers.size() != requests.size())
    throw Error(ErrorCode::kWrongAnswer, std::to_string(requests.size()) + " measurements were asked for, " +
                                             std::to_string(answers.size()) + " came");
  const Json& outputs = result.at("outputs");
  const auto blob =
      outputs.is_null() ? nullptr : blobs_.open(Digest::parse(outputs.get<std::string>()).value());
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].contains("error")) continue;
    if (!blob || !answers[i].contains("outputs"))
      throw Error(ErrorCode::kWrongAnswer, "a measurement came without what was computed");
    take_outputs(requests[i], answers[i], *blob);
  }
  return answers;
}

void RemoteBench::take_outputs(const Json& request, const Json& answer, const storage::Blob& outputs) const {
  uint64_t bytes = 0;
  for (const Json& buffer : request.at("buffers")) {
    if (buffer.at(2).get<bool>()) bytes += buffer.at(1).get<uint64_t>();
  }
  std::string_view all = outputs.text();
  const auto place = answer.at("outputs").get<uint64_t>();
  if (bytes > 0 && (place >= all.size() / bytes))
    throw Error(ErrorCode::kWrongAnswer, "a measurement came with fewer outputs than it names");
  all.remove_prefix(static_cast<size_t>(place * bytes));
  for (const Json& buffer : request.at("buffers")) {
    if (!buffer.at(2).get<bool>()) continue;
    const auto size = buffer.at(1).get<size_t>();
    put_at(files_.tensors, all.substr(0, size), buffer.at(0).get<int64_t>());
    all.remove_prefix(size);
  }
}

PackageTiming RemoteBench::benchmark(const PackageFiles& package, const BenchmarkRequest& request) {
  const std::vector<int> members = descriptors_of(package);
  Json blobs = Json::object();
  for (size_t i = 0; i < members.size(); ++i) {
    const auto bytes = MappedFile::map(members[i], "a member of a package");
    blobs[package::kMembers.at(i)] = blobs_.put(bytes->text()).text();
  }
  const Json result = ask({{"blobs", std::move(blobs)},
                           {"repeat", request.repeat},
                           {"number", request.number},
                           {"threads", request.threads},
                           {"profile", request.profile},
                           {"fill_mode", fill_mode_name(request.fill_mode)}});
  const Json& timing = result.at("timing");
  return {timing.at("runs_ms").get<std::vector<double>>(), timing.value("profile", Json())};
}

}  // namespace tensormill::server
