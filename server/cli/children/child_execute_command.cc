#include "compiler/interpret/interpreter.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"
#include "server/cli/children/child_commands.h"
#include "server/services/deployments/executor_child.h"
#include "server/services/deployments/executor_host.h"
#include "server/services/forms.h"

namespace tensormill::cli {

namespace {

server::HostOptions host_options_from(const Json& request) {
  server::HostOptions options;
  request.at("instances").get_to(options.instances);
  request.at("max_queue").get_to(options.max_queue);
  request.at("warmup").get_to(options.warmup);
  request.at("max_batch").get_to(options.max_batch);
  options.max_delay = std::chrono::microseconds(request.at("max_delay_us").get<int64_t>());
  return options;
}

}  // namespace

std::string child_execute(jobs::ChildChannel& channel, std::span<const std::string> arguments) {
  constexpr int kRequestFd = jobs::kFirstInheritedFd + 4;
  constexpr int kAnswerFd = kRequestFd + 1;
  TM_CHECK(arguments.size() == 1, "child-execute needs its request");
  const Json request = parse_json(arguments[0]);
  const server::HostOptions options = host_options_from(request);
  server::InProcessOptions host;
  request.at("threads").get_to(host.threads);
  request.at("memory").get_to(host.memory_budget);
  host.run_timeout = std::chrono::milliseconds(request.at("run_timeout_ms").get<int64_t>());
  // This is a process of its own already, so it interprets itself what no plan takes.
  host.interpreter = interpret::make_interpreter;
  parallel::ThreadPool pool(host.threads);
  const auto executors = server::make_in_process_host(pool, host);
  const auto hosted = executors->load(open_package_members(), options);
  channel.event("ready", Json{{"inputs", server::specs_to_json(hosted->inputs())},
                              {"outputs", server::specs_to_json(hosted->outputs())},
                              {"memory_bytes", hosted->statistics().memory_bytes}}
                             .dump(-1, ' ', false, Json::error_handler_t::replace));
  server::serve_executor(hosted, kRequestFd, kAnswerFd, options.instances,
                         static_cast<uint64_t>(host.memory_budget));
  return "{}";
}

}  // namespace tensormill::cli
