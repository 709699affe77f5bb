#include <algorithm>
#include <array>
#include <string_view>

#include "api/http/labels.h"
#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/names.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::schema {
namespace {

constexpr size_t kMaxRank = 16;
constexpr int kMaxThreads = 1024;
constexpr int kMaxRuns = 100'000;
constexpr int64_t kMaxExtent = int64_t{1} << 40;

void read_shape(const std::string& name, const Json& value, const std::string& pointer, Problems& problems,
                std::map<std::string, DimShape>& shapes) {
  if (!value.is_array() || value.size() > kMaxRank) {
    problems.add(pointer, "is no array of at most " + std::to_string(kMaxRank) + " dims");
    return;
  }
  DimShape& shape = shapes[name];
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string at = pointer_to(pointer, std::to_string(i));
    if (value[i].is_string()) {
      const auto dim = value[i].get<std::string>();
      if (!is_name(dim)) problems.add(at, "is \"" + dim + "\", which is no name of a dim");
      shape.emplace_back(dim);
    } else if (const auto extent = read_int(value[i], at, 0, kMaxExtent, problems)) {
      shape.emplace_back(*extent);
    }
  }
}

void read_buckets(const std::string& dim, const Json& value, const std::string& pointer, Problems& problems,
                  std::map<std::string, std::vector<int64_t>>& buckets) {
  if (value.is_string()) {
    try {
      buckets[dim] = parse_bucket(value.get<std::string>());
    } catch (const Error& error) {
      problems.add(pointer, "is no bucket: " + std::string(error.message()));
    }
    return;
  }
  if (!value.is_array() || value.empty() || value.size() > static_cast<size_t>(kMaxBucketExtents)) {
    problems.add(pointer,
                 "is neither \"1,8\" nor an array of 1 to " + std::to_string(kMaxBucketExtents) + " extents");
    return;
  }
  std::vector<int64_t>& extents = buckets[dim];
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string at = pointer_to(pointer, std::to_string(i));
    const auto extent = read_int(value[i], at, 1, kMaxExtent, problems);
    if (!extent) continue;
    if (!extents.empty() && *extent <= extents.back()) problems.add(at, "is not larger than the one before");
    extents.push_back(*extent);
  }
}

/// Pass settings are texts inside, as the command line's are; JSON may write them with their own types.
void read_pass_setting(const std::string& name, const Json& value, const std::string& pointer,
                       Problems& problems, std::map<std::string, std::string>& settings) {
  if (value.is_string()) {
    settings[name] = value.get<std::string>();
  } else if (value.is_boolean() || value.is_number()) {
    settings[name] = value.dump();
  } else {
    problems.add(pointer, "is neither a string nor a number nor true or false");
  }
}

/// A target is a string, or an object whose text is passed on.
void read_target_member(ObjectReader& body, std::string& target) {
  const Json* value = body.find("target");
  if (value != nullptr && value->is_object()) {
    target = canonical_json(*value);
  } else {
    body.required("target", target);
  }
}

std::string read_kind(ObjectReader& body) {
  std::string kind;
  body.required("kind", kind);
  constexpr std::array<std::string_view, 5> kKinds = {"compile", "tune", "benchmark", "verify", "report"};
  if (!kind.empty() && std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    body.problems().add("/kind",
                        "is \"" + kind + "\", expected one of compile, tune, benchmark, verify, report");
  return kind;
}

/// Numbers, true or false, arrays of them, or null: what they are for each input, the model says.
bool is_value(const Json& value) {
  if (value.is_array()) return std::all_of(value.begin(), value.end(), is_value);
  return value.is_number() || value.is_boolean() || value.is_null();
}

void read_input_values(ObjectReader& body, Problems& problems, std::string& values) {
  body.each_member("input_values", [&](const std::string&, const Json& value, const std::string& at) {
    if (!is_value(value))
      problems.add(at, "is neither a number nor true or false nor an array of them nor null");
  });
  const Json* all = body.find("input_values");
  if (all != nullptr && all->is_object() && !all->empty()) values = canonical_json(*all);
}

/// The labels of the worker that is to do it.
void read_on(ObjectReader& body, std::string& on) {
  body.optional("on", on);
  try {
    on = http::join_labels(http::parse_labels(on));
  } catch (const Error& error) {
    body.problems().add("/on", error.message());
  }
}

/// `tuning_records`: "auto", an id, or null for none.
void read_records(ObjectReader& body, std::optional<std::string>& records) {
  body.nullable("tuning_records", records);
  if (records && *records != "auto" && !Digest::parse(*records))
    body.problems().add("/tuning_records", "is neither \"auto\" nor an id nor null");
}

void read_input_shapes(ObjectReader& body, Problems& problems, std::map<std::string, DimShape>& shapes) {
  body.each_member("input_shapes", [&](const std::string& name, const Json& value, const std::string& at) {
    read_shape(name, value, at, problems, shapes);
  });
}

services::CompileRequest read_compile(ObjectReader& body, Problems& problems) {
  services::CompileRequest request;
  body.required("model", request.model);
  read_target_member(body, request.target);
  body.optional("opt_level", request.opt_level, 0, 4);
  read_input_shapes(body, problems, request.input_shapes);
  read_input_values(body, problems, request.input_values);
  body.each_member("shape_buckets", [&](const std::string& dim, const Json& value, const std::string& at) {
    read_buckets(dim, value, at, problems, request.shape_buckets);
  });
  body.nullable("outputs", request.outputs);
  body.optional("signature", request.signature);
  body.optional("quantized", request.quantized);
  if (!request.quantized.empty() && request.quantized != "exact")
    problems.add("/quantized", "is \"" + request.quantized + "\", expected exact");
  if (request.outputs && request.outputs->empty()) problems.add("/outputs", "is empty");
  read_records(body, request.tuning_records);
  body.each_member("pass_config", [&](const std::string& name, const Json& value, const std::string& at) {
    read_pass_setting(name, value, at, problems, request.pass_config);
  });
  body.optional("disabled_pass", request.disabled_pass);
  body.nullable("desired_layout", request.desired_layout);
  if (request.desired_layout && *request.desired_layout != "NCHW" && *request.desired_layout != "NHWC") {
    problems.add("/desired_layout", "is \"" + *request.desired_layout + "\", expected NCHW or NHWC");
  }
  body.optional("desired_layout_ops", request.desired_layout_ops);
  if (!request.desired_layout_ops.empty() && !request.desired_layout)
    problems.add("/desired_layout_ops", "is given without desired_layout");
  body.nullable("mixed_precision", request.mixed_precision);
  body.optional("force", request.force);
  read_on(body, request.on);
  return request;
}

void read_large(ObjectReader& body, const char* name, int64_t low, int64_t& out) {
  if (const Json* value = body.find(name))
    out = read_int(*value, body.pointer(name), low, int64_t{1} << 53, body.problems()).value_or(out);
}

void read_seconds(ObjectReader& body, const char* name, double& out) {
  const Json* value = body.find(name);
  if (value == nullptr) return;
  out = read_number(*value, body.pointer(name), body.problems()).value_or(out);
  if (out < 0) body.problems().add(body.pointer(name), "is below 0");
}

services::TuneRequest read_tune(ObjectReader& body, Problems& problems) {
  services::TuneRequest request;
  request.compile = read_compile(body, problems);
  read_large(body, "trials", 1, request.trials);
  read_seconds(body, "time_budget_s", request.time_budget_s);
  body.choice("tuner", request.tuner, {"xgb", "xgb-rank", "ga", "gridsearch", "random"});
  body.optional("autoscheduler", request.autoscheduler);
  body.optional("tasks", request.tasks);
  body.each_member("extents", [&](const std::string& dim, const Json& value, const std::string& at) {
    read_buckets(dim, value, at, problems, request.extents);
  });
  read_large(body, "early_stopping", 0, request.early_stopping);
  body.nullable("prior_records", request.prior_records);
  if (request.prior_records && !Digest::parse(*request.prior_records))
    problems.add("/prior_records", "is neither an id nor null");
  body.optional("exclusive", request.exclusive);
  body.optional("threads", request.threads, 0, kMaxThreads);
  body.optional("number", request.number, 1, kMaxRuns);
  body.optional("repeat", request.repeat, 1, kMaxRuns);
  read_seconds(body, "min_repeat_ms", request.min_repeat_ms);
  read_large(body, "seed", 0, request.seed);
  return request;
}

services::BenchmarkRequest read_benchmark(ObjectReader& body) {
  services::BenchmarkRequest request;
  body.required("package", request.package);
  body.optional("repeat", request.repeat, 1, kMaxRuns);
  body.optional("number", request.number, 1, kMaxRuns);
  body.optional("threads", request.threads, 0, kMaxThreads);
  body.optional("force", request.force);
  read_on(body, request.on);
  return request;
}

/// Of a blob.
void read_digest(ObjectReader& body, const char* name, std::string& out) {
  body.required(name, out);
  if (!out.empty() && !Digest::parse(out)) body.problems().add(body.pointer(name), "is no id of a blob");
}

services::VerifyRequest read_verify(ObjectReader& body) {
  services::VerifyRequest request;
  body.required("package", request.package);
  read_digest(body, "inputs", request.inputs);
  read_on(body, request.on);
  read_seconds(body, "rtol", request.rtol);
  read_seconds(body, "atol", request.atol);
  read_seconds(body, "timeout_s", request.timeout_s);
  constexpr double kLeast = 1, kMost = 86400;
  if (request.timeout_s < kLeast || request.timeout_s > kMost)
    body.problems().add("/timeout_s", "is not from 1 to 86400");
  return request;
}

/// One or more texts, none of them empty.
void read_some(ObjectReader& body, const char* name, bool is_required, std::vector<std::string>& out) {
  if (is_required && body.find(name) == nullptr) body.problems().add(body.pointer(name), "is missing");
  if (body.find(name) == nullptr) return;
  out.clear();
  body.optional(name, out);
  if (out.empty()) body.problems().add(body.pointer(name), "is empty");
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i].empty()) body.problems().add(pointer_to(body.pointer(name), std::to_string(i)), "is empty");
}

void read_levels(ObjectReader& body, std::vector<int>& levels) {
  const Json* value = body.find("opt_levels");
  if (value == nullptr) return;
  constexpr size_t kLevels = 5;
  if (!value->is_array() || value->empty() || value->size() > kLevels) {
    body.problems().add("/opt_levels", "is no array of 1 to 5 levels");
    return;
  }
  levels.clear();
  for (size_t i = 0; i < value->size(); ++i) {
    const std::string at = pointer_to("/opt_levels", std::to_string(i));
    levels.push_back(static_cast<int>(read_int((*value)[i], at, 0, 4, body.problems()).value_or(0)));
  }
}

void read_layouts(ObjectReader& body, std::vector<std::string>& layouts) {
  body.optional("layouts", layouts);
  for (size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i] == "NCHW" || layouts[i] == "NHWC") continue;
    body.problems().add(pointer_to("/layouts", std::to_string(i)),
                        "is \"" + layouts[i] + "\", expected NCHW or NHWC");
  }
}

void read_example_sets(ObjectReader& body, services::ReportRequest& request) {
  constexpr size_t kMaxClasses = 1000;
  body.required("inputs", request.inputs);
  if (!request.inputs.empty() && !Digest::parse(request.inputs))
    body.problems().add("/inputs", "is no id of a blob");
  body.nullable("labels", request.labels);
  if (request.labels && !Digest::parse(*request.labels))
    body.problems().add("/labels", "is neither the id of a blob nor null");
  body.optional("classes", request.classes);
  if (request.classes.size() > kMaxClasses) body.problems().add("/classes", "has more than 1000 names");
}

services::ReportRequest read_report(ObjectReader& body, Problems& problems) {
  services::ReportRequest request;
  read_some(body, "models", true, request.models);
  read_some(body, "targets", false, request.targets);
  read_levels(body, request.opt_levels);
  read_layouts(body, request.layouts);
  const size_t count = request.models.size() * request.targets.size() * request.opt_levels.size() *
                       std::max<size_t>(1, request.layouts.size());
  if (count > services::kMaxConfigurations)
    problems.add("", "are " + std::to_string(count) + " configurations, more than 64");
  read_input_shapes(body, problems, request.input_shapes);
  read_records(body, request.tuning_records);
  read_example_sets(body, request);
  body.optional("scores", request.scores);
  read_large(body, "samples", 0, request.samples);
  body.optional("warmup", request.warmup, 0, kMaxRuns);
  body.optional("repeat", request.repeat, 1, kMaxRuns);
  body.optional("number", request.number, 1, kMaxRuns);
  body.optional("threads", request.threads, 0, kMaxThreads);
  read_seconds(body, "time_budget_s", request.time_budget_s);
  constexpr double kLeastBudget = 1, kMostBudget = 86400;
  if (request.time_budget_s < kLeastBudget || request.time_budget_s > kMostBudget)
    problems.add("/time_budget_s", "is not from 1 to 86400");
  return request;
}

}  // namespace

std::string read_target(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  std::string target;
  read_target_member(body, target);
  body.finish();
  problems.throw_if_any();
  return target;
}

services::JobRequest read_job_request(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::JobRequest request;
  const std::string kind = read_kind(body);
  if (kind == "benchmark") {
    request = read_benchmark(body);
  } else if (kind == "tune") {
    request = read_tune(body, problems);
  } else if (kind == "verify") {
    request = read_verify(body);
  } else if (kind == "report") {
    request = read_report(body, problems);
  } else {
    request = read_compile(body, problems);
  }
  body.finish();
  problems.throw_if_any();
  return request;
}

}  // namespace tensormill::schema
