#include "compiler/interpret/interpreter.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/npz/npz.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"
#include "server/cli/children/child_commands.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::cli {

namespace {

services::RunOptions run_options_from(const Json& request) {
  services::RunOptions options;
  request.at("seed").get_to(options.seed);
  request.at("repeat").get_to(options.repeat);
  request.at("number").get_to(options.number);
  request.at("profile").get_to(options.profile);
  const std::string fill = request.value("fill_mode", "");
  if (!fill.empty()) options.fill_mode = server::parse_fill_mode(fill);
  return options;
}

}  // namespace

std::shared_ptr<const package::Package> open_package_members() {
  std::map<std::string, std::shared_ptr<const MappedFile>> members;
  int fd = jobs::kFirstInheritedFd;
  for (const std::string_view name : package::kMembers) {
    members[std::string(name)] = MappedFile::map(fd++, std::string(name));
  }
  return package::Package::open_members(members);
}

std::string child_run(jobs::ChildChannel&, std::span<const std::string> arguments) {
  constexpr int kFeedFd = jobs::kFirstInheritedFd + 4;
  constexpr int kAnswerFd = kFeedFd + 1;
  TM_CHECK(arguments.size() == 1, "child-run needs its request");
  const Json request = parse_json(arguments[0]);
  const int threads = request.at("threads").get<int>();
  parallel::ThreadPool pool(threads);
  exec::GraphExecutor executor(
      package::LoadedPackage::load(open_package_members(), interpret::make_interpreter),
      {threads, request.at("memory_budget").get<int64_t>()});
  services::NamedTensors inputs;
  const auto feed = MappedFile::map(kFeedFd, "inputs");
  for (npz::NamedTensor& tensor : npz::read_npz(feed->bytes())) {
    inputs.emplace_back(std::move(tensor.name), std::move(tensor.tensor));
  }
  exec::RunOptions run_options;
  run_options.threads = threads;
  run_options.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(request.at("timeout_ms").get<int64_t>());
  const services::RunResult result =
      server::run_executor(executor, inputs, run_options_from(request), pool, run_options,
                           request.at("dims").get<std::vector<int64_t>>());
  std::vector<npz::NamedTensor> outputs;
  for (const auto& [name, tensor] : result.outputs) outputs.push_back({name, tensor});
  write_all(kAnswerFd, npz::write_npz(outputs), "outputs");
  Json timing = {{"compute_ms", result.timing.compute_ms}, {"runs_ms", result.timing.runs_ms}};
  if (!result.timing.profile_json.empty()) timing["profile"] = parse_json(result.timing.profile_json);
  return timing.dump();
}

}  // namespace tensormill::cli
