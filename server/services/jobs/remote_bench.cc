#include "server/services/jobs/remote_bench.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/package/metadata.h"
#include "server/measure/exchange.h"
#include "server/services/jobs/ask_elsewhere.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

namespace {

/// A crash of what measures is tried once more.
constexpr int kMeasureAttempts = 2;
/// As where it is measured beside the server.
constexpr double kRoofSeconds = 60;

/// Ends of what the tuning child's requests name, in its two files.
struct Named {
  uint64_t code = 0;
  uint64_t inputs = 0;
  uint64_t tensors = 0;  ///< outputs with them
};

Named named_by(const Json& requests) {
  if (!requests.is_array()) throw Error(ErrorCode::kWrongAnswer, "no list of requests for measurements");
  Named named;
  for (const Json& request : requests) {
    named.code = std::max(named.code, measure::code_end_of(request));
    for (const measure::NamedBuffer& buffer : measure::buffers_of(request)) {
      named.tensors = std::max(named.tensors, buffer.end());
      if (!buffer.is_output) named.inputs = std::max(named.inputs, buffer.end());
    }
  }
  return named;
}

/// Of all that the request's kernel computes.
uint64_t output_bytes(const Json& request) {
  uint64_t bytes = 0;
  for (const measure::NamedBuffer& buffer : measure::buffers_of(request)) {
    if (buffer.is_output) bytes += buffer.bytes;
  }
  return bytes;
}

[[noreturn]] void throw_short(const char* name) {
  throw Error(ErrorCode::kWrongAnswer,
              std::string("the tuning child names more of its ") + name + " than there are");
}

void require_size(int fd, uint64_t bytes, const char* name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_errno(errno, "cannot look at a memory file");
  if (static_cast<uint64_t>(status.st_size) < bytes) throw_short(name);
}

void put_at(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw_errno(errno, "cannot write to a memory file");
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
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

std::string RemoteBench::stored(int fd, uint64_t bytes, const char* name) {
  constexpr size_t kPart = size_t{4} << 20;  // in memory at a time
  const std::unique_ptr<storage::BlobWriter> writer = blobs_.writer();
  std::string part(static_cast<size_t>(std::min<uint64_t>(kPart, bytes)), '\0');
  for (uint64_t done = 0; done < bytes;) {
    context_.keep_alive();
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(part.size(), bytes - done));
    const ssize_t got = ::pread(fd, part.data(), wanted, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(errno, "cannot read a memory file");
    if (got == 0) throw_short(name);
    writer->write(std::string_view(part).substr(0, static_cast<size_t>(got)));
    done += static_cast<uint64_t>(got);
  }
  return writer->commit().text();
}

Json RemoteBench::ask_for(const Json& requests, double timeout_seconds) {
  const Named named = named_by(requests);
  require_size(files_.code, named.code, "code");
  require_size(files_.tensors, named.tensors, "tensors");
  return ask({{"blobs",
               {{"code", stored(files_.code, named.code, "code")},
                {"tensors", stored(files_.tensors, named.inputs, "tensors")}}},
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
    // A kernel of no elements computes nothing.
    if (output_bytes(requests[i]) == 0) continue;
    if (!blob || !answers[i].contains("outputs"))
      throw Error(ErrorCode::kWrongAnswer, "a measurement came without what was computed");
    take_outputs(requests[i], answers[i], *blob);
  }
  return answers;
}

void RemoteBench::take_outputs(const Json& request, const Json& answer, const storage::Blob& outputs) const {
  const std::vector<measure::NamedBuffer> buffers = measure::buffers_of(request);
  const uint64_t bytes = output_bytes(request);
  std::string_view all = outputs.text();
  const auto place = answer.at("outputs").get<uint64_t>();
  if (place >= all.size() / bytes)
    throw Error(ErrorCode::kWrongAnswer, "a measurement came with fewer outputs than it names");
  all.remove_prefix(static_cast<size_t>(place * bytes));
  for (const measure::NamedBuffer& buffer : buffers) {
    if (!buffer.is_output) continue;
    put_at(files_.tensors, all.substr(0, buffer.bytes), buffer.offset);
    all.remove_prefix(buffer.bytes);
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
                           {"fill_mode", fill_mode_name(request.fill_mode)},
                           {"dims", request.dims}});
  const Json& timing = result.at("timing");
  return {timing.at("runs_ms").get<std::vector<double>>(), timing.value("profile", Json())};
}

}  // namespace tensormill::server
