#include "server/services/jobs/compile_steps.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "compiler/passes/layouts/desired_layout.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "runtime/package/metadata.h"
#include "server/services/deployments/host_runs.h"
#include "server/services/forms.h"
#include "server/services/jobs/child_runner.h"
#include "server/services/store/package_archive.h"

namespace tensormill::server {

namespace {

/// A file without a name in `folder`.
FileDescriptor nameless_file(const std::string& folder) {
  FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) throw_errno(errno, "cannot create a file in " + folder);
  return file;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

/// Members of a request to a child that stand in the resolved form where a layout is asked for.
Json with_layout(Json request, const Json& resolved) {
  request.update(layout_options(resolved));
  return request;
}

/// What metadata.json says of the request: the same texts as the command line writes.
Json recorded_options(const Json& resolved) {
  Json options = Json::object();
  for (const auto& [name, shape] : resolved.at("input_shapes").items()) {
    options["input_shapes." + name] = to_string(dims_from_json(shape));
  }
  const Json values = resolved.value("input_values", Json::object());
  if (!values.empty()) options["input_values"] = values.dump();
  const Json buckets = resolved.value("shape_buckets", Json::object());
  for (const auto& [name, extents] : buckets.items())
    options["shape_buckets." + name] = to_string(extents.get<Shape>());
  const auto outputs = resolved.at("outputs").get<std::vector<std::string>>();
  if (!outputs.empty()) options["outputs"] = joined(outputs);
  for (const char* choice : {"signature", "quantized", "desired_layout"}) {
    if (resolved.contains(choice)) options[choice] = resolved.at(choice);
  }
  if (const Json ops = layout_options(resolved); ops.contains("desired_layout_ops"))
    options["desired_layout_ops"] = joined(ops.at("desired_layout_ops").get<std::vector<std::string>>());
  return options;
}

jobs::ChildSpec import_spec(const CompileRunnerOptions& options, const Json& resolved, int model,
                            const GraphFiles& files, bool kernels) {
  jobs::ChildSpec spec;
  spec.command = "child-import";
  spec.limits.kind = jobs::ChildKind::kImport;
  const Json request = {{"mode", "bundle"},
                        {"format", resolved.at("model_format")},
                        {"max_bytes", options.max_model_bytes},
                        {"input_shapes", resolved.at("input_shapes")},
                        {"input_values", resolved.value("input_values", Json::object())},
                        {"shape_buckets", resolved.value("shape_buckets", Json::object())},
                        {"outputs", resolved.at("outputs")},
                        {"signature", resolved.value("signature", std::string())},
                        {"quantized", resolved.value("quantized", std::string())},
                        {"kernels", kernels},
                        {"target", resolved.at("target")},
                        {"opt_level", resolved.at("opt_level")},
                        {"disabled_pass", resolved.at("disabled_pass")}};
  spec.arguments = {with_layout(request, resolved).dump()};
  spec.descriptors = {model, files.text.get(), files.constants.get()};
  spec.limits.data_bytes = options.import_memory;
  spec.limits.nice = jobs::kJobNice;
  spec.time_limit = options.import_timeout;
  return spec;
}

/// Whether the machine that compiles can run what it makes, to check it.
bool runs_target(const CompileRunnerOptions& options, const Json& resolved) {
  if (!options.host) return resolved.at("host_runs_target").get<bool>();
  return host_runs(target::parse_target(resolved.at("target").get<std::string>(), {}), *options.host);
}

jobs::ChildSpec compile_spec(const CompileRunnerOptions& options, const Json& resolved,
                             const GraphFiles& graph, const PackageFiles& files, int schedules) {
  jobs::ChildSpec spec;
  spec.command = "child-compile";
  spec.limits.kind = jobs::ChildKind::kCompile;
  const Json request = {
      {"target", resolved.at("target")},
      {"opt_level", resolved.at("opt_level")},
      {"disabled_pass", resolved.at("disabled_pass")},
      {"verify", resolved.at("verify")},
      {"host_runs_target", runs_target(options, resolved)},
      {"model_digest", resolved.at("model")},
      {"model_format",
       resolved.at("model_format") == "onnx-archive" ? Json("onnx") : resolved.at("model_format")},
      {"recorded_options", recorded_options(resolved)},
      {"variants", graph.variants},
      {"dumps", kCodeStages},
      {"threads", options.threads}};
  spec.arguments = {with_layout(request, resolved).dump()};
  spec.descriptors = {graph.text.get(), graph.constants.get(), files.metadata.get(), files.plan.get(),
                      files.code.get(), files.params.get(),    files.dumps.get(),    schedules};
  spec.limits.data_bytes = options.memory;
  spec.limits.nice = jobs::kJobNice;
  spec.time_limit = options.timeout;
  return spec;
}

storage::MemberRow store_member(storage::BlobStore& blobs, jobs::JobContext& context, std::string_view name,
                                const FileDescriptor& file, const package::MemberInfo& expected) {
  constexpr size_t kPart = size_t{4} << 20;
  const auto mapped = MappedFile::map(file.get(), std::string(name));
  const auto writer = blobs.writer({.expected = expected.digest});
  for (std::string_view rest = mapped->text(); !rest.empty();
       rest.remove_prefix(std::min(kPart, rest.size()))) {
    writer->write(rest.substr(0, kPart));
    context.keep_alive();
  }
  return {std::string(name), writer->commit(), mapped->bytes().size()};
}

}  // namespace

Json layout_options(const Json& resolved) {
  Json options = Json::object();
  for (const char* name : {"desired_layout", "desired_layout_ops"}) {
    if (resolved.contains(name)) options[name] = resolved.at(name);
  }
  return options;
}

std::vector<std::string> layout_lines(const Json& said) {
  std::vector<std::string> lines;
  const Json layout = said.value("layout", Json::object());
  for (const Json& node : layout.value("stayed", Json::array()))
    lines.push_back(passes::line_of({node.at("node"), node.at("op"), node.at("reason")},
                                    layout.at("desired").get<std::string>()));
  return lines;
}

GraphFiles::GraphFiles(const std::string& folder)
    : text(nameless_file(folder)), constants(nameless_file(folder)) {}

PackageFiles::PackageFiles(const std::string& folder)
    : metadata(nameless_file(folder)),
      plan(nameless_file(folder)),
      code(nameless_file(folder)),
      params(nameless_file(folder)),
      dumps(nameless_file(folder)) {}

std::vector<std::string> import_graph(const CompileWork& work, jobs::JobContext& context,
                                      const Json& resolved, GraphFiles& files, bool kernels) {
  context.progress(R"({"stage":"import","done":0,"total":1})");
  const auto blob = work.desk.open_model(context, resolved);
  const Json done =
      parse_json(context.run_child(import_spec(work.options, resolved, blob->fd(), files, kernels)));
  files.variants = done.at("variants");
  return done.value("kernels", std::vector<std::string>());
}

std::string compile_graph(const CompileWork& work, jobs::JobContext& context, const Json& resolved,
                          const GraphFiles& graph, const Tuned& tuned, const PackageFiles& files) {
  const FileDescriptor text = memory_file("schedules", tuned_json(tuned).dump());
  return context.run_child(compile_spec(work.options, resolved, graph, files, text.get()));
}

storage::PackageRow store_package(const CompileWork& work, jobs::JobContext& context,
                                  const PackageFiles& files) {
  storage::BlobStore& blobs = work.blobs;
  const auto text = MappedFile::map(files.metadata.get(), "metadata.json");
  const package::Metadata metadata = package::metadata_from_json(text->text());
  storage::PackageRow row;
  row.id = package::package_id(text->text());
  const auto add = [&](std::string_view name, const FileDescriptor& file,
                       const package::MemberInfo& expected) {
    row.members.push_back(store_member(blobs, context, name, file, expected));
  };
  add(package::kMetadataMember, files.metadata, {row.id, static_cast<int64_t>(text->bytes().size())});
  add(package::kPlanMember, files.plan, metadata.members.at(std::string(package::kPlanMember)));
  add(package::kCodeMember, files.code, metadata.members.at(std::string(package::kCodeMember)));
  add(package::kParamsMember, files.params, metadata.members.at(std::string(package::kParamsMember)));
  PackageArchive archive(blobs, row);
  row.archive = archive.digest();
  row.archive_bytes = archive.size();
  if (work.signer.can_sign()) {
    const std::string block = work.signer.sign(row.archive);
    row.members.push_back({std::string(kSignatureName), blobs.put(block), block.size()});
  }
  const Json dumps = parse_json(MappedFile::map(files.dumps.get(), "dumps")->text());
  for (const auto& [stage, dump] : dumps.items()) {
    const std::string bytes = dump.get<std::string>();
    row.members.push_back({std::string(kCodePrefix) + stage,
                           blobs.put(bytes, {.form = storage::BlobForm::kCompressed}), bytes.size()});
  }
  row.facts = package_facts(metadata);
  row.metadata = text->text();
  row.model = metadata.model_digest;
  row.target = metadata.target;
  return row;
}

}  // namespace tensormill::server
