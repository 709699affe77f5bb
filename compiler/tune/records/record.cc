#include "compiler/tune/records/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>

#include "compiler/schedule/schedule.h"
#include "compiler/tune/records/feature_version.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/json.h"
#include "runtime/base/median.h"

namespace tensormill::tune {

namespace {

constexpr std::string_view kFormatVersion = "1";
constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr size_t kMaxSamples = 1000;
constexpr size_t kMaxSteps = 1000;
constexpr size_t kMaxKnobs = 100;

[[noreturn]] void reject(const std::string& what) { throw Error(ErrorCode::kInvalidRecords, what); }

/// Members of an object, each of the type that is asked for.
class Members {
public:
  Members(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) reject(path_ + " is no object");
  }
  const Json& at(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) reject(path_ + " has no " + name);
    return *found;
  }
  std::string text(const char* name) const {
    if (!at(name).is_string()) reject(path_ + "." + name + " is no text");
    return at(name).get<std::string>();
  }
  const Json& array(const char* name, size_t fewest, size_t most) const {
    const Json& value = at(name);
    if (!value.is_array() || value.size() < fewest || value.size() > most)
      reject(path_ + "." + name + " is no list of " + std::to_string(fewest) + " to " + std::to_string(most));
    return value;
  }
  int64_t integer(const char* name, int64_t least, int64_t most) const {
    return as_integer(at(name), path_ + "." + name, least, most);
  }
  static int64_t as_integer(const Json& value, const std::string& name, int64_t least, int64_t most) {
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= static_cast<uint64_t>(most)
                                                 : value.is_number_integer();
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
      reject(name + " is no integer from " + std::to_string(least) + " to " + std::to_string(most));
    return value.get<int64_t>();
  }
  /// False where it is not there.
  bool flag(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end()) return false;
    if (!found->is_boolean()) reject(path_ + "." + name + " is no bool");
    return found->get<bool>();
  }
  static double as_seconds(const Json& value, const std::string& name) {
    if (!value.is_number() || !(value.get<double>() >= 0) || !std::isfinite(value.get<double>()))
      reject(name + " is no time");
    return value.get<double>();
  }

private:
  const Json& json_;
  std::string path_;
};

const std::string& as_text(const Json& value, const std::string& name) {
  if (!value.is_string()) reject(name + " is no text");
  return value.get_ref<const std::string&>();
}

TrialError error_from(int64_t number) {
  const auto error = static_cast<TrialError>(number);
  if (to_text(error).empty()) reject("result has no error " + std::to_string(number));
  return error;
}

void read_result(const Json& result, Record& record) {
  if (!result[0].is_array() || result[0].size() > kMaxSamples) reject("result[0] is no list of times");
  for (const Json& seconds : result[0]) {
    record.seconds.push_back(Members::as_seconds(seconds, "a time of result"));
    // Nothing runs in no time, and it would be the best of all.
    if (record.seconds.back() == 0) reject("a time of result is 0");
  }
  record.error = error_from(Members::as_integer(result[1], "result[1]", 0, 8));
  if ((record.error == TrialError::kNone) == record.seconds.empty())
    reject("result has times and an error, or neither");
  record.all_seconds = Members::as_seconds(result[2], "result[2]");
  record.timestamp = Members::as_seconds(result[3], "result[3]");
}

void read_config(const Members& config, Record& record) {
  record.index = static_cast<uint64_t>(config.integer("index", 0, std::numeric_limits<int64_t>::max()));
  config.at("final");
  record.final = config.flag("final");
  record.is_default = config.flag("default");
  for (const Json& knob : config.array("entity", 0, kMaxKnobs)) {
    if (!knob.is_array() || knob.size() != 3)
      reject("an element of config.entity is not [knob, kind, value]");
    schedule::Knob next;
    next.name = as_text(knob[0], "a knob's name");
    as_text(knob[1], "a knob's kind");
    next.chosen = Members::as_integer(knob[2], "a knob's value", 0, std::numeric_limits<int64_t>::max());
    record.knobs.push_back(std::move(next));
  }
}

// A record may be without, and those of another version say nothing.
void read_features(const Members& features, Record& record) {
  if (features.integer("version", 0, 1 << 30) != kFeatureVersion) return;
  for (const Json& value : features.array("values", kFeatureCount, kFeatureCount)) {
    const bool fits = value.is_number() && std::abs(value.get<double>()) <= 1e9;
    if (!fits) reject("an element of features.values is no number up to 1e9");
    record.features.push_back(value.get<float>());
  }
}

std::string steps_text(const Json& steps) {
  std::string text;
  for (const Json& step : steps) {
    const std::string& line = as_text(step, "a step");
    if (line.find('\n') != std::string::npos) reject("a step has more than one line");
    text += line + "\n";
  }
  // Unknown primitives are found here, with the step's number.
  schedule::parse_schedule(text);
  return text;
}

bool is_key(const std::string& text) { return text.size() == 64 && is_hex(text); }

}  // namespace

std::string_view to_text(TrialError error) {
  switch (error) {
    case TrialError::kNone:
      return "none";
    case TrialError::kInstantiation:
      return "does not apply";
    case TrialError::kCompileHost:
      return "does not compile";
    case TrialError::kRuntime:
      return "crashed";
    case TrialError::kWrongAnswer:
      return "wrong answer";
    case TrialError::kBuildTimeout:
      return "build too long";
    case TrialError::kRunTimeout:
      return "run too long";
    case TrialError::kUnknown:
      return "unknown";
  }
  return "";
}

double Record::median_seconds() const {
  if (error != TrialError::kNone || seconds.empty()) return std::numeric_limits<double>::infinity();
  return median(seconds);
}

std::string Record::id() const {
  Hasher hasher;
  for (const std::string& field : {task_key, target, schedule}) hasher.update_field(field);
  return hasher.finish().hex();
}

std::string to_line(const Record& record) {
  Json entity = Json::array();
  for (const schedule::Knob& knob : record.knobs) entity.push_back({knob.name, "ot", knob.chosen});
  Json steps = Json::array();
  size_t at = 0;
  for (size_t end = record.schedule.find('\n'); end != std::string::npos;
       end = record.schedule.find('\n', at)) {
    steps.push_back(record.schedule.substr(at, end - at));
    at = end + 1;
  }
  Json json = {
      {"input", {record.target, record.task, record.args}},
      {"task_key", record.task_key},
      {"config",
       {{"index", record.index},
        {"entity", entity},
        {"final", record.final},
        {"default", record.is_default}}},
      {"schedule", steps},
      {"result", {record.seconds, static_cast<int>(record.error), record.all_seconds, record.timestamp}},
      {"version", kFormatVersion},
      {"generator",
       {{"codegen", record.codegen}, {"template", record.task}, {"space_digest", record.space_digest}}},
      {"tensormill_version", record.codegen},
      {"device", {{"cpu", record.cpu}, {"threads", record.threads}}}};
  if (!record.layer.empty()) {
    json["layer"] = record.layer;
    json["algorithm"] = record.algorithm;
  }
  if (!record.features.empty())
    json["features"] = {{"version", kFeatureVersion}, {"values", record.features}};
  return canonical_json(json);
}

Record record_from_line(std::string_view line) {
  if (line.size() > kMaxLineBytes)
    reject("a record of more than " + std::to_string(kMaxLineBytes) + " bytes");
  Json json;
  try {
    json = parse_json(line, 8);
  } catch (const Error& error) {
    reject(error.message());
  }
  const Members members(json, "the record");
  Record record;
  if (members.text("version") != kFormatVersion) reject("format version " + members.text("version"));
  const Json& input = members.array("input", 3, 3);
  record.target = as_text(input[0], "input[0]");
  record.task = as_text(input[1], "input[1]");
  record.args = as_text(input[2], "input[2]");
  record.task_key = members.text("task_key");
  if (!is_key(record.task_key)) reject("task_key is no SHA-256");
  if (json.contains("layer")) {
    record.layer = members.text("layer");
    if (!is_key(record.layer)) reject("layer is no SHA-256");
    record.algorithm = members.text("algorithm");
  }
  read_config(Members(members.at("config"), "config"), record);
  record.schedule = steps_text(members.array("schedule", 0, kMaxSteps));
  read_result(members.array("result", 4, 4), record);
  const Members generator(members.at("generator"), "generator");
  record.codegen = generator.text("codegen");
  record.space_digest = generator.text("space_digest");
  const Members device(members.at("device"), "device");
  record.cpu = device.text("cpu");
  record.threads = static_cast<int>(device.integer("threads", 1, 1 << 16));
  if (json.contains("features")) read_features(Members(json["features"], "features"), record);
  return record;
}

namespace {

/// Calls `each` with the number (from 1) and the text of each line that is not empty.
void each_line(std::string_view text, const std::function<void(int number, std::string_view line)>& each) {
  int number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) each(number, line);
  }
}

}  // namespace

void each_record(std::string_view text,
                 const std::function<void(int number, std::string_view line, Record record)>& each) {
  each_line(text, [&](int number, std::string_view line) {
    try {
      each(number, line, record_from_line(line));
    } catch (Error& error) {
      if (error.code() != ErrorCode::kInvalidRecords) throw;
      error.add_context("records, line " + std::to_string(number));
      throw;
    }
  });
}

std::vector<Record> readable_records(std::string_view text,
                                     const std::function<void(const std::string& why)>& skipped) {
  std::vector<Record> records;
  std::string first;
  each_line(text, [&](int number, std::string_view line) {
    try {
      records.push_back(record_from_line(line));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidRecords) throw;
      const std::string why = "line " + std::to_string(number) + ": " + error.message();
      if (first.empty()) first = why;
      skipped(why);
    }
  });
  if (records.empty() && !first.empty()) reject("no line is a record: " + first);
  return records;
}

std::vector<Record> parse_records(std::string_view text) {
  std::vector<Record> records;
  each_record(text, [&](int, std::string_view, Record record) { records.push_back(std::move(record)); });
  return records;
}

RecordLog::RecordLog(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (!fd_.valid()) throw_errno(errno, "cannot open " + path_);
  const std::string text = read_file(path_);
  const size_t last = text.rfind('\n');
  const size_t whole = last == std::string::npos ? 0 : last + 1;
  if (whole < text.size() && ::ftruncate(fd_.get(), static_cast<off_t>(whole)) != 0)
    throw_errno(errno, "cannot cut " + path_);
}

void RecordLog::append(const Record& record) {
  write_all(fd_.get(), to_line(record) + "\n", path_);
  if (::fdatasync(fd_.get()) != 0) throw_errno(errno, "cannot write " + path_);
}

}  // namespace tensormill::tune
