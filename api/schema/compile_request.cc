#include "api/schema/reader.h"
#include "api/schema/requests.h"
#include "runtime/base/digest.h"

namespace tensormill::schema {
namespace {

constexpr size_t kMaxRank = 16;
constexpr size_t kMaxBuckets = 64;
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
  if (!value.is_array() || value.empty() || value.size() > kMaxBuckets) {
    problems.add(pointer, "is no array of 1 to " + std::to_string(kMaxBuckets) + " extents");
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

void check_kind(ObjectReader& body) {
  std::string kind;
  body.required("kind", kind);
  if (kind == "tune" || kind == "benchmark") {
    throw Error(ErrorCode::kNotSupported, "jobs of kind \"" + kind + "\" are not supported yet");
  }
  if (!kind.empty() && kind != "compile") {
    body.problems().add("/kind", "is \"" + kind + "\", expected one of compile, tune, benchmark");
  }
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

services::CompileRequest read_compile_request(std::string_view text) {
  const Json json = parse_json(text);
  Problems problems;
  ObjectReader body(json, "", problems);
  services::CompileRequest request;
  check_kind(body);
  body.required("model", request.model);
  read_target_member(body, request.target);
  body.optional("opt_level", request.opt_level, 0, 4);
  body.each_member("input_shapes", [&](const std::string& name, const Json& value, const std::string& at) {
    read_shape(name, value, at, problems, request.input_shapes);
  });
  body.each_member("shape_buckets", [&](const std::string& dim, const Json& value, const std::string& at) {
    read_buckets(dim, value, at, problems, request.shape_buckets);
  });
  body.nullable("outputs", request.outputs);
  if (request.outputs && request.outputs->empty()) problems.add("/outputs", "is empty");
  body.nullable("tuning_records", request.tuning_records);
  if (request.tuning_records && *request.tuning_records != "auto" &&
      !Digest::parse(*request.tuning_records)) {
    problems.add("/tuning_records", "is neither \"auto\" nor an id nor null");
  }
  body.each_member("pass_config", [&](const std::string& name, const Json& value, const std::string& at) {
    read_pass_setting(name, value, at, problems, request.pass_config);
  });
  body.optional("disabled_pass", request.disabled_pass);
  body.nullable("desired_layout", request.desired_layout);
  if (request.desired_layout && *request.desired_layout != "NCHW" && *request.desired_layout != "NHWC") {
    problems.add("/desired_layout", "is \"" + *request.desired_layout + "\", expected NCHW or NHWC");
  }
  body.nullable("mixed_precision", request.mixed_precision);
  body.optional("force", request.force);
  body.finish();
  problems.throw_if_any();
  return request;
}

}  // namespace tensormill::schema
