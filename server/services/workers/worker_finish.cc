#include "server/services/workers/worker_finish.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "api/http/tensor_body.h"
#include "compiler/tune/records/record.h"
#include "runtime/base/error.h"
#include "runtime/base/error_json.h"
#include "runtime/base/json_reader.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/store/package_import.h"

namespace tensormill::server {

namespace {

/// Of a line: results and errors are small, a resolved form names a record for each kernel.
constexpr size_t kMaxLine = size_t{16} << 20;
constexpr size_t kLineStep = 4096;
/// Of what is made of a line: of one byte of it, at most ("{}," is an empty map and its place), and of one of
/// its values, of which there are no more than there may be measured runs, twice.
constexpr uint64_t kParsed = 32;
constexpr uint64_t kValueBytes = 96;
constexpr uint64_t kMaxValues = uint64_t{2} << 20;
constexpr uint64_t kMaxCode = uint64_t{256} << 20;
constexpr size_t kMaxRuns = 1'000'000;
constexpr int64_t kMaxBackoff = 60'000;
constexpr size_t kMaxOutputs = 65'536;
constexpr size_t kMaxOutputName = 4096;
/// Of the text that says what measured.
constexpr size_t kMaxCpu = 2000;
/// The last of tune::TrialError.
constexpr int kMostTrialError = static_cast<int>(tune::TrialError::kUnknown);

Error refuse(const std::string& why) {
  return Error(ErrorCode::kInvalidRequest, "the end of a lease " + why);
}

/// The next `size` bytes of another body.
class PartBody final : public http::BodySource {
public:
  PartBody(http::BodySource& inner, uint64_t size) : inner_(inner), left_(size), size_(size) {}
  size_t read(std::span<std::byte> buffer) override {
    const auto count = static_cast<size_t>(std::min<uint64_t>(buffer.size(), left_));
    if (count == 0) return 0;
    const size_t got = inner_.read(buffer.first(count));
    if (got == 0) throw refuse("has fewer bytes than it announces");
    left_ -= got;
    return got;
  }
  std::optional<uint64_t> length() const override { return size_; }

private:
  http::BodySource& inner_;
  uint64_t left_;
  const uint64_t size_;
};

void take(MemoryShare* memory, uint64_t bytes) {
  if (memory != nullptr) memory->take(bytes);
}

http::TensorBody read_part(http::BodySource& body, uint64_t size, uint64_t limit, const char* what,
                           MemoryShare* memory) {
  if (size > limit)
    throw refuse("has " + std::to_string(size) + " bytes of " + what + ", the limit is " +
                 std::to_string(limit));
  PartBody part(body, size);
  return http::read_body_part(part, memory, size);
}

/// The line, without its line feed.
std::string read_line(http::BodySource& body, MemoryShare* memory) {
  std::string text;
  // Byte by byte, since what follows is not the line's: a body hands out of what it has read ahead.
  for (std::byte one{}; body.read(std::span(&one, 1)) == 1 && one != std::byte{'\n'};) {
    if (text.size() == kMaxLine)
      throw refuse("has a line of more than " + std::to_string(kMaxLine) + " bytes");
    if (text.size() == text.capacity()) {
      const size_t more = std::max(text.capacity(), kLineStep);
      take(memory, more);
      text.reserve(text.capacity() + more);
    }
    text.push_back(static_cast<char>(one));
  }
  return text;
}

/// {"package","times_ms"} of what the worker says: numbers alone are taken from it.
Json compile_result(const Json& said, const Digest& package) {
  Json times = Json::object();
  if (said.is_object() && said.contains("times_ms") && said["times_ms"].is_object()) {
    for (const auto& [phase, ms] : said["times_ms"].items()) {
      if (ms.is_number() && std::isfinite(ms.get<double>())) times[phase] = ms;
    }
  }
  return {{"package", package.text()}, {"times_ms", std::move(times)}};
}

/// The form after tuning records were chosen: nothing else of it may differ.
void take_resolved(const storage::JobRow& job, const Json& said, storage::JobFinish& finish) {
  if (!said.is_object() || !said.contains("tuning_records")) return;
  Json with = parse_json(job.resolved);
  if (!has_pending_records(with)) return;
  with["tuning_records"] = said["tuning_records"];
  if (with != said || !(said["tuning_records"].is_array() || said["tuning_records"].contains("kernels")))
    throw refuse("is about other work than the lease");
  finish.resolved = canonical_json(with);
  finish.action_key = action_key(with);
}

void store_code(std::string_view text, const WorkerEndPlace& place, storage::PackageRow& row) {
  if (text.empty()) return;
  // A text for each stage, each of which is held twice while it is read.
  take(place.memory, 2 * uint64_t{text.size()});
  JsonLimits limits;
  limits.values = kCodeStages.size() + 1;
  limits.depth = 1;
  const Json dumps = parse_json(text, limits);
  if (!dumps.is_object()) throw refuse("has code that is none");
  for (const auto& [stage, dump] : dumps.items()) {
    const bool known = std::find(kCodeStages.begin(), kCodeStages.end(), stage) != kCodeStages.end();
    if (!known || !dump.is_string()) throw refuse("has a stage \"" + stage.substr(0, 32) + "\" of code");
    const auto& bytes = dump.get_ref<const std::string&>();
    row.members.push_back({std::string(kCodePrefix) + stage,
                           place.blobs.put(bytes, {.form = storage::BlobForm::kCompressed}), bytes.size()});
  }
}

storage::JobFinish compile_end(const storage::JobRow& job, const WorkerEnd& end, http::BodySource& body,
                               const WorkerEndPlace& place) {
  storage::JobFinish finish;
  take_resolved(job, end.resolved, finish);
  const http::TensorBody code = read_part(body, end.code_bytes, kMaxCode, "code", place.memory);
  if (end.archive_bytes == 0) throw refuse("brings no package");
  PartBody archive(body, end.archive_bytes);
  storage::PackageRow row =
      store_signed_archive(place.blobs, place.trusted, place.quota, archive, place.folder);
  const Json resolved = parse_json(job.resolved);
  const package::Metadata metadata = package::metadata_from_json(place.blobs.open(row.id)->text());
  const std::array<std::pair<const std::string*, const char*>, 3> same = {
      {{&metadata.model_digest, "model"},
       {&metadata.target, "target"},
       {&metadata.compiler_build, "compiler"}}};
  for (const auto& [has, member] : same) {
    const auto wanted = resolved.at(member).get<std::string>();
    if (*has != wanted)
      throw Error(ErrorCode::kInvalidPackage, "the package is of the " + std::string(member) + " " + *has +
                                                  ", the lease is about " + wanted);
  }
  store_code(code.text(), place, row);
  finish.result = compile_result(end.result, row.id).dump();
  finish.package = std::move(row);
  return finish;
}

/// Of a time or a difference.
double number_of(const Json& said) {
  const double number = said.is_number() ? said.get<double>() : -1;
  if (!(number >= 0) || !std::isfinite(number)) throw refuse("has a number that is none");
  return number;
}

/// The runs, of which everything else is made here.
storage::JobFinish benchmark_end(const storage::JobRow& job, const WorkerEnd& end) {
  const auto runs = end.result.is_object() ? end.result.find("runs_ms") : end.result.end();
  if (runs == end.result.end() || !runs->is_array() || runs->empty() || runs->size() > kMaxRuns)
    throw refuse("has no measured runs");
  std::vector<double> runs_ms;
  for (const Json& run : *runs) {
    runs_ms.push_back(number_of(run));
  }
  Json result = summary_of(std::move(runs_ms));
  result["package"] = parse_json(job.resolved).at("package");
  const Json threads = end.result.value("threads", Json());
  result["threads"] = threads.is_number_integer() ? threads : Json(0);
  storage::JobFinish finish;
  finish.result = result.dump();
  return finish;
}

/// Numbers of each run, and where its outputs are; of what else a worker says nothing is kept.
Json measured(const Json& said) {
  if (!said.is_object()) throw refuse("has a measurement that is none");
  if (said.contains("error")) {
    const Json &code = said["error"], message = said.value("message", Json(""));
    const bool known = code.is_number_integer() && code >= 1 && code <= kMostTrialError;
    if (!known || !message.is_string()) throw refuse("has an error that is none");
    return {{"error", code}, {"message", message.get<std::string>().substr(0, 2000)}};
  }
  Json one = Json::object();
  if (said.contains("gflops")) {
    for (const char* limit : {"gflops", "memory_gbytes_per_s", "l2_gbytes_per_s"})
      one[limit] = number_of(said.value(limit, Json()));
    return one;
  }
  const Json code = said.value("code", Json()), overrun = said.value("overrun", Json()),
             place = said.value("outputs", Json()), seconds = said.value("seconds", Json());
  const bool whole = code.is_number_integer() && code >= INT32_MIN && code <= INT32_MAX &&
                     overrun.is_boolean() && place.is_number_unsigned() && place <= kMaxRuns &&
                     seconds.is_array() && seconds.size() <= kMaxRuns;
  if (!whole) throw refuse("has a measurement that is none");
  one = {{"code", code}, {"overrun", overrun}, {"outputs", place}, {"seconds", Json::array()}};
  for (const Json& each : seconds) one["seconds"].push_back(number_of(each));
  return one;
}

Digest store_outputs(const WorkerEnd& end, http::BodySource& body, const WorkerEndPlace& place) {
  PartBody part(body, end.archive_bytes);
  const auto writer = place.blobs.writer({.max_bytes = place.max_output_bytes});
  std::string bytes(size_t{1} << 20, '\0');
  while (const size_t count = part.read(std::as_writable_bytes(std::span(bytes))))
    writer->write(std::string_view(bytes).substr(0, count));
  return writer->commit();
}

storage::JobFinish measure_end(const storage::JobRow& job, const WorkerEnd& end, http::BodySource& body,
                               const WorkerEndPlace& place) {
  const Json said = end.result.is_object() ? end.result : Json::object();
  const Json cpu = said.value("cpu", Json()), cores = said.value("cores", Json());
  if (!cpu.is_string() || cpu.get<std::string>().size() > kMaxCpu || !cores.is_number_unsigned())
    throw refuse("says not what measured");
  Json result = {{"cpu", cpu}, {"cores", cores}};
  const Json resolved = parse_json(job.resolved);
  if (resolved.contains("requests")) {
    const Json answers = said.value("answers", Json());
    if (!answers.is_array() || answers.size() != resolved["requests"].size())
      throw refuse("has other measurements than were asked for");
    result["answers"] = Json::array();
    for (const Json& one : answers) result["answers"].push_back(measured(one));
    result["outputs"] = end.archive_bytes > 0 ? Json(store_outputs(end, body, place).text()) : Json();
  } else {
    const Json timing = said.value("timing", Json::object());
    const Json runs = timing.is_object() ? timing.value("runs_ms", Json()) : Json();
    if (!runs.is_array() || runs.empty() || runs.size() > kMaxRuns) throw refuse("has no measured runs");
    result["timing"] = {{"runs_ms", Json::array()}};
    for (const Json& run : runs) result["timing"]["runs_ms"].push_back(number_of(run));
    if (timing.value("profile", Json()).is_array()) result["timing"]["profile"] = timing["profile"];
  }
  storage::JobFinish finish;
  finish.result = result.dump(-1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

storage::JobFinish run_end(const storage::JobRow& job, const WorkerEnd& end, http::BodySource& body,
                           const WorkerEndPlace& place) {
  const Json said = end.result.is_object() ? end.result.value("timing", Json()) : Json();
  if (!said.is_object()) throw refuse("has no times");
  Json timing = {{"compute_ms", number_of(said.value("compute_ms", Json()))}, {"runs_ms", Json::array()}};
  const Json runs = said.value("runs_ms", Json::array());
  if (!runs.is_array() || runs.size() > kMaxRuns) throw refuse("has no measured runs");
  for (const Json& run : runs) timing["runs_ms"].push_back(number_of(run));
  if (said.contains("profile") && said["profile"].is_array()) timing["profile"] = said["profile"];
  storage::JobFinish finish;
  finish.result = Json{{"package", parse_json(job.resolved).at("package")},
                       {"outputs", store_outputs(end, body, place).text()},
                       {"timing", std::move(timing)}}
                      .dump(-1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

/// Numbers of outputs that the worker found right; that they are those of the package is not known here.
storage::JobFinish verify_end(const storage::JobRow& job, const WorkerEnd& end) {
  const Json said = end.result.is_object() ? end.result.value("outputs", Json()) : Json();
  if (!said.is_array() || said.empty() || said.size() > kMaxOutputs) throw refuse("has no compared outputs");
  Json outputs = Json::array();
  for (const Json& one : said) {
    const Json name = one.is_object() ? one.value("name", Json()) : Json();
    const Json elements = one.is_object() ? one.value("elements", Json()) : Json();
    if (!name.is_string() || name.get_ref<const std::string&>().size() > kMaxOutputName ||
        !elements.is_number_unsigned())
      throw refuse("has an output that is none");
    outputs.push_back({{"name", name},
                       {"elements", elements},
                       {"max_abs_error", number_of(one.value("max_abs_error", Json()))},
                       {"largest", number_of(one.value("largest", Json()))}});
  }
  storage::JobFinish finish;
  finish.result =
      Json{{"package", parse_json(job.resolved).at("package")}, {"outputs", std::move(outputs)}}.dump(
          -1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

}  // namespace

std::string end_line(const WorkerEnd& end) {
  Json line = {{"state", end.state},
               {"backoff_ms", end.backoff_ms},
               {"log_bytes", end.log_bytes},
               {"code_bytes", end.code_bytes},
               {"archive_bytes", end.archive_bytes}};
  if (!end.result.is_null()) line["result"] = end.result;
  if (!end.error.empty()) line["error"] = parse_json(end.error);
  if (!end.resolved.is_null()) line["resolved"] = end.resolved;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

WorkerEnd read_end(http::BodySource& body, MemoryShare* memory) {
  const std::string text = read_line(body, memory);
  take(memory, std::min(kParsed * text.size(), text.size() + kValueBytes * kMaxValues));
  JsonLimits limits;
  limits.values = kMaxValues;
  Json line = parse_json(text, limits);
  if (!line.is_object()) throw refuse("does not begin with an object");
  WorkerEnd end;
  const auto number = [&](const char* name) -> uint64_t {
    const Json value = line.value(name, Json(0));
    if (!value.is_number_unsigned() && !(value.is_number_integer() && value.get<int64_t>() >= 0))
      throw refuse("has a wrong " + std::string(name));
    return value.get<uint64_t>();
  };
  const Json state = line.value("state", Json());
  if (state.is_string()) end.state = state.get<std::string>();
  const auto moved = [&](const char* name) {
    const auto found = line.find(name);
    return found == line.end() ? Json() : std::move(*found);
  };
  end.result = moved("result");
  end.resolved = moved("resolved");
  if (const Json error = line.value("error", Json()); !error.is_null()) {
    try {
      end.error = error_to_json(error_from_json(error));
    } catch (const Json::exception&) {
      throw refuse("has an error that is none");
    }
  }
  end.backoff_ms = static_cast<int64_t>(std::min<uint64_t>(number("backoff_ms"), kMaxBackoff));
  end.log_bytes = number("log_bytes");
  end.code_bytes = number("code_bytes");
  end.archive_bytes = number("archive_bytes");
  return end;
}

std::optional<Digest> read_log(const WorkerEnd& end, http::BodySource& body, const WorkerEndPlace& place) {
  if (end.log_bytes == 0) return std::nullopt;
  return place.blobs.put(read_part(body, end.log_bytes, kMaxWorkerLog, "log", place.memory).text(),
                         {.form = storage::BlobForm::kCompressed, .always = true});
}

storage::JobFinish read_result(const storage::JobRow& job, const WorkerEnd& end, http::BodySource& body,
                               const WorkerEndPlace& place) {
  if (job.kind == "compile") return compile_end(job, end, body, place);
  if (job.kind == "benchmark") return benchmark_end(job, end);
  if (job.kind == "run") return run_end(job, end, body, place);
  if (job.kind == "verify") return verify_end(job, end);
  if (job.kind == "measure") return measure_end(job, end, body, place);
  throw refuse("is about a " + job.kind + " job, which no worker elsewhere does");
}

}  // namespace tensormill::server
