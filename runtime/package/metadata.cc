#include "runtime/package/metadata.h"

#include "runtime/base/error.h"
#include "runtime/package/json_fields.h"

namespace tensormill::package {

namespace {

constexpr int64_t kMaxList = 1 << 20;
constexpr int64_t kMaxSize = int64_t{1} << 50;

Json tensors_to_json(const std::vector<TensorInfo>& tensors) {
  Json result = Json::array();
  for (const TensorInfo& tensor : tensors) {
    result.push_back({{"name", tensor.name},
                      {"dtype", std::string(dtype_long_name(tensor.dtype))},
                      {"shape", dims_to_json(tensor.shape)}});
    if (tensor.quantization) result.back()["quantization"] = quantization_to_json(*tensor.quantization);
    if (!tensor.notes.empty()) result.back()["notes"] = notes_to_json(tensor.notes);
  }
  return result;
}

std::vector<TensorInfo> tensors_from_json(JsonFields& fields, std::string_view key) {
  std::vector<TensorInfo> result;
  const Json& values = fields.array(key, kMaxList);
  for (size_t i = 0; i < values.size(); ++i) {
    JsonFields item(values[i], fields.pointer_to(key) + "/" + std::to_string(i));
    TensorInfo tensor;
    tensor.name = item.text("name");
    tensor.dtype = item.dtype("dtype");
    tensor.shape = item.dims("shape", 32);
    if (item.has("quantization")) tensor.quantization = quantization_from_json(item.object("quantization"));
    if (item.has("notes")) tensor.notes = notes_from_json(item.object("notes"));
    item.finish();
    result.push_back(std::move(tensor));
  }
  return result;
}

Json kernels_to_json(const std::vector<KernelInfo>& kernels) {
  Json result = Json::array();
  for (const KernelInfo& kernel : kernels) {
    Json item = {{"symbol", kernel.symbol},
                 {"task_key", kernel.task_key},
                 {"template", kernel.template_name},
                 {"tuning_record", kernel.tuning_record},
                 {"tuning_reason", kernel.tuning_reason},
                 {"verified", kernel.verified},
                 {"origins", kernel.origins}};
    if (!kernel.algorithm.empty()) {
      item["algorithm"] = kernel.algorithm;
      item["algorithm_reason"] = kernel.algorithm_reason;
    }
    result.push_back(std::move(item));
  }
  return result;
}

std::vector<KernelInfo> kernels_from_json(JsonFields& fields) {
  std::vector<KernelInfo> result;
  const Json& values = fields.array("kernels", kMaxList);
  for (size_t i = 0; i < values.size(); ++i) {
    JsonFields item(values[i], fields.pointer_to("kernels") + "/" + std::to_string(i));
    KernelInfo kernel;
    kernel.symbol = item.text("symbol");
    kernel.task_key = item.text("task_key");
    kernel.template_name = item.text("template");
    kernel.tuning_record = item.text("tuning_record");
    kernel.tuning_reason = item.text("tuning_reason");
    if (item.has("algorithm")) {
      kernel.algorithm = item.text("algorithm");
      if (kernel.algorithm.empty()) throw_invalid(item.pointer_to("algorithm"), "expected a name");
      kernel.algorithm_reason = item.text("algorithm_reason");
    }
    kernel.verified = item.text("verified");
    kernel.origins = item.texts("origins", kMaxList);
    item.finish();
    result.push_back(std::move(kernel));
  }
  return result;
}

std::map<std::string, MemberInfo> members_from_json(JsonFields& fields) {
  std::map<std::string, MemberInfo> result;
  JsonFields members(fields.object("members"), fields.pointer_to("members"));
  for (std::string_view name : {kCodeMember, kPlanMember, kParamsMember}) {
    JsonFields item(members.object(name), members.pointer_to(name));
    const std::optional<Digest> digest = Digest::parse(item.text("digest"));
    if (!digest) throw_invalid(item.pointer_to("digest"), "expected sha256:<64 hex>");
    result[std::string(name)] = {*digest, item.integer("size", 0, kMaxSize)};
    item.finish();
  }
  members.finish();
  return result;
}

std::map<std::string, std::string> options_from_json(JsonFields& fields) {
  std::map<std::string, std::string> result;
  JsonFields options(fields.object("options"), fields.pointer_to("options"));
  for (const auto& [key, value] : fields.object("options").items()) result[key] = options.text(key);
  return result;
}

void read_sizes(JsonFields& fields, Metadata& metadata) {
  metadata.num_steps = fields.integer("num_steps", 0, kMaxList);
  metadata.host_steps = fields.integer("host_steps", 0, kMaxList);
  metadata.weight_bytes = fields.integer("weight_bytes", 0, kMaxSize);
  metadata.arena_bytes = fields.integer("arena_bytes", 0, kMaxSize);
  metadata.worker_workspace_bytes = fields.integer("worker_workspace_bytes", 0, kMaxSize);
  metadata.flops = fields.integer("flops", 0, std::numeric_limits<int64_t>::max());
}

Metadata read_metadata(const Json& json) {
  JsonFields fields(json, "");
  Metadata metadata;
  // The version comes first: another version may have other members.
  metadata.format_version = fields.integer("format_version", 0, kMaxSize);
  if (metadata.format_version != kPackageFormatVersion) {
    throw_invalid("/format_version", "package format is " + std::to_string(metadata.format_version) +
                                         ", this program reads " + std::to_string(kPackageFormatVersion));
  }
  metadata.abi_version = fields.integer("abi_version", 0, kMaxSize);
  metadata.compiler_version = fields.text("compiler_version");
  metadata.compiler_build = fields.text("compiler_build");
  metadata.model_digest = fields.text("model_digest");
  metadata.model_format = fields.text("model_format");
  metadata.target = fields.text("target");
  metadata.triple = fields.text("triple");
  metadata.cpu_features = fields.texts("cpu_features", 1024);
  metadata.inputs = tensors_from_json(fields, "inputs");
  metadata.outputs = tensors_from_json(fields, "outputs");
  metadata.opt_level = fields.integer("opt_level", 0, 4);
  metadata.passes = fields.texts("passes", kMaxList);
  metadata.options = options_from_json(fields);
  metadata.verify = fields.text("verify");
  metadata.kernels = kernels_from_json(fields);
  read_sizes(fields, metadata);
  metadata.members = members_from_json(fields);
  fields.finish();
  return metadata;
}

}  // namespace

std::string metadata_to_json(const Metadata& metadata) {
  Json members = Json::object();
  for (const auto& [name, member] : metadata.members) {
    members[name] = {{"digest", member.digest.text()}, {"size", member.size}};
  }
  Json options = Json::object();
  for (const auto& [key, value] : metadata.options) options[key] = value;
  const Json json = {{"format_version", metadata.format_version},
                     {"abi_version", metadata.abi_version},
                     {"compiler_version", metadata.compiler_version},
                     {"compiler_build", metadata.compiler_build},
                     {"model_digest", metadata.model_digest},
                     {"model_format", metadata.model_format},
                     {"target", metadata.target},
                     {"triple", metadata.triple},
                     {"cpu_features", metadata.cpu_features},
                     {"inputs", tensors_to_json(metadata.inputs)},
                     {"outputs", tensors_to_json(metadata.outputs)},
                     {"opt_level", metadata.opt_level},
                     {"passes", metadata.passes},
                     {"options", std::move(options)},
                     {"verify", metadata.verify},
                     {"kernels", kernels_to_json(metadata.kernels)},
                     {"num_steps", metadata.num_steps},
                     {"host_steps", metadata.host_steps},
                     {"weight_bytes", metadata.weight_bytes},
                     {"arena_bytes", metadata.arena_bytes},
                     {"worker_workspace_bytes", metadata.worker_workspace_bytes},
                     {"flops", metadata.flops},
                     {"members", std::move(members)}};
  return canonical_json(json);
}

Metadata metadata_from_json(std::string_view text) {
  try {
    Metadata metadata = read_metadata(parse_json(text));
    if (metadata_to_json(metadata) != text) throw_invalid("", "text is not canonical JSON");
    return metadata;
  } catch (const Error& error) {
    Error wrapped(ErrorCode::kInvalidPackage, error.message(), error.details());
    wrapped.add_context(kMetadataMember);
    throw wrapped;
  }
}

}  // namespace tensormill::package
