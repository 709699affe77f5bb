#include "server/services/jobs/verify_runner.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/memory_file.h"
#include "runtime/base/text.h"
#include "runtime/npz/npz.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/ask_elsewhere.h"
#include "server/services/jobs/child_run.h"
#include "server/services/jobs/output_check.h"
#include "server/services/store/package_service.h"

namespace tensormill::server {

namespace {

using std::chrono::milliseconds;

std::string stage(const char* name, int done) {
  return std::string(R"({"stage":")") + name + R"(","done":)" + std::to_string(done) + R"(,"total":1})";
}

Tolerance tolerance_of(const Json& resolved) {
  return {resolved.at("rtol").get<double>(), resolved.at("atol").get<double>()};
}

/// What a run of the package on the inputs gives, as NPZ.
FileDescriptor run_package(jobs::JobContext& context, const MemberBlobs& members, std::string_view inputs,
                           const VerifyOptions& options) {
  const FileDescriptor feed = memory_file("inputs", inputs);
  FileDescriptor answer = memory_file("outputs");
  ChildRun run;
  run.threads = options.threads;
  run.memory = options.memory;
  run.timeout = options.timeout;
  run.nice = jobs::kRunNice;
  jobs::ChildSpec spec = child_run_spec(descriptors_of(members), feed, answer, run);
  // The start of the process is not the run's.
  spec.time_limit = run.timeout + std::chrono::seconds(5);
  context.progress(stage("run", 0));
  context.run_child(std::move(spec));
  context.progress(stage("run", 1));
  return answer;
}

Json compared(const FileDescriptor& made, std::string_view expected, const Json& resolved) {
  const auto outputs = MappedFile::map(made.get(), "outputs");
  return {{"package", resolved.at("package")},
          {"outputs", check_outputs(npz::read_npz(std::as_bytes(std::span(expected))),
                                    npz::read_npz(outputs->bytes()), tolerance_of(resolved))}};
}

/// What the model gives, as NPZ: a child evaluates it, which ran no code of a package.
FileDescriptor evaluate_model(jobs::JobContext& context, const GraphFiles& graph, std::string_view inputs,
                              const std::vector<std::string>& outputs, const CompileRunnerOptions& options,
                              milliseconds timeout) {
  const FileDescriptor feed = memory_file("inputs", inputs);
  FileDescriptor answer = memory_file("reference");
  jobs::ChildSpec spec;
  spec.command = "child-reference";
  spec.limits.kind = jobs::ChildKind::kPlain;
  spec.arguments = {Json{{"variants", graph.variants}, {"outputs", outputs}}.dump()};
  spec.descriptors = {graph.text.get(), graph.constants.get(), feed.get(), answer.get()};
  spec.limits.data_bytes = options.memory;
  spec.limits.nice = jobs::kJobNice;
  spec.time_limit = timeout;
  context.progress(stage("reference", 0));
  context.run_child(std::move(spec));
  context.progress(stage("reference", 1));
  return answer;
}

std::map<std::string, Shape> shapes_in(std::span<const std::byte> npz) {
  std::map<std::string, Shape> shapes;
  const npz::Reader reader(npz);
  for (const npz::Entry& entry : reader.entries()) shapes[entry.name] = shown_shape(entry.dtype, entry.shape);
  return shapes;
}

/// What is left of the job's own time.
class TimeLeft {
public:
  explicit TimeLeft(const Json& resolved)
      : timeout_(static_cast<int64_t>(resolved.at("timeout_s").get<double>() * 1000)),
        end_(std::chrono::steady_clock::now() + timeout_) {}
  milliseconds get() const {
    const auto left = std::chrono::duration_cast<milliseconds>(end_ - std::chrono::steady_clock::now());
    if (left.count() > 0) return left;
    throw Error(ErrorCode::kDeadlineExceeded,
                "the verification had " + std::to_string(timeout_.count()) + " ms");
  }

private:
  const milliseconds timeout_;
  const std::chrono::steady_clock::time_point end_;
};

}  // namespace

Json reference_form(const package::Metadata& metadata, const Json& model_facts,
                    const std::map<std::string, Shape>& shapes) {
  const auto option = [&](const char* name) -> std::string {
    const auto found = metadata.options.find(name);
    return found == metadata.options.end() ? "" : found->second;
  };
  Json input_shapes = Json::object();
  for (const auto& [name, shape] : shapes) input_shapes[name] = shape;
  const std::string values = option("input_values");
  Json outputs = Json::array();
  if (!option("outputs").empty()) {
    for (const package::TensorInfo& output : metadata.outputs) outputs.push_back(output.name);
  }
  return {{"model", metadata.model_digest},
          {"model_format", model_facts.at("format")},
          {"target", metadata.target},
          {"opt_level", 0},
          {"disabled_pass", Json::array()},
          {"input_shapes", std::move(input_shapes)},
          {"input_values", values.empty() ? Json::object() : parse_json(values)},
          {"shape_buckets", Json::object()},
          {"outputs", std::move(outputs)},
          {"signature", option("signature")},
          {"quantized", option("quantized")}};
}

storage::JobFinish VerifyItemRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  const MemberBlobs members = desk_.open_members(context, resolved);
  const auto inputs = desk_.open_inputs(context, resolved);
  const auto expected = desk_.open_blob(context, resolved, "expected");
  VerifyOptions options = options_;
  options.timeout = std::min(
      options.timeout, milliseconds(static_cast<int64_t>(resolved.at("timeout_s").get<double>() * 1000)));
  const FileDescriptor made = run_package(context, members, inputs->text(), options);
  storage::JobFinish finish;
  finish.result = compared(made, expected->text(), resolved).dump();
  return finish;
}

bool VerifyRunner::is_elsewhere(const storage::JobRow& job) const {
  return parse_json(job.resolved).contains("on");
}

storage::JobFinish VerifyRunner::run(jobs::JobContext& context) {
  cancel_asked(queue_, kind(), context.job().id);
  Json resolved = parse_json(context.job().resolved);
  const TimeLeft left(resolved);
  const auto inputs = tools_.desk.open_inputs(context, resolved);
  const MemberBlobs members = tools_.desk.open_members(context, resolved);
  const package::Metadata metadata =
      package::metadata_from_json(members.find(package::kMetadataMember)->second->text());
  const auto model = tools_.catalog.find_model(Digest::parse(metadata.model_digest).value());
  if (!model) throw Error(ErrorCode::kNotFound, "the model " + metadata.model_digest + " was removed");
  CompileTools tools = tools_;
  tools.options.import_timeout = std::min(tools.options.import_timeout, left.get());
  GraphFiles graph(context.folder());
  import_graph(tools, context,
               reference_form(metadata, parse_json(model->facts, 128), shapes_in(inputs->bytes())), graph);
  std::vector<std::string> outputs;
  for (const package::TensorInfo& output : metadata.outputs) outputs.push_back(output.name);
  const FileDescriptor reference =
      evaluate_model(context, graph, inputs->text(), outputs, tools.options, left.get());
  const auto expected = MappedFile::map(reference.get(), "reference");
  storage::JobFinish finish;
  if (!resolved.contains("on")) {
    VerifyOptions options = options_;
    options.timeout = std::min(options.timeout, left.get());
    const FileDescriptor made = run_package(context, members, inputs->text(), options);
    finish.result = compared(made, expected->text(), resolved).dump();
    return finish;
  }
  // The attempt holds what it stores until the row of the item names it.
  resolved["expected"] = tools_.blobs.put(expected->text()).text();
  context.progress(stage("elsewhere", 0));
  finish.result = ask_elsewhere(queue_, context, std::move(resolved), {.timeout = left.get()}).dump();
  return finish;
}

}  // namespace tensormill::server
