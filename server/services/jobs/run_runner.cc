#include "server/services/jobs/run_runner.h"

#include <algorithm>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "server/services/jobs/child_run.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

storage::JobFinish RunRunner::run(jobs::JobContext& context) {
  const Json resolved = parse_json(context.job().resolved);
  const MemberBlobs members = desk_.open_members(context, resolved);
  const auto inputs = desk_.open_inputs(context, resolved);
  const FileDescriptor feed = memory_file("inputs", inputs->text());
  const FileDescriptor answer = memory_file("outputs");
  ChildRun run;
  const auto fill = resolved.at("fill_mode").get<std::string>();
  if (!fill.empty()) run.options.fill_mode = parse_fill_mode(fill);
  resolved.at("seed").get_to(run.options.seed);
  resolved.at("repeat").get_to(run.options.repeat);
  resolved.at("number").get_to(run.options.number);
  resolved.at("profile").get_to(run.options.profile);
  run.threads = options_.threads;
  run.memory = options_.memory;
  run.timeout =
      std::min(options_.timeout, std::chrono::milliseconds(resolved.at("timeout_ms").get<int64_t>()));
  run.nice = jobs::kRunNice;
  jobs::ChildSpec spec = child_run_spec(descriptors_of(members), feed, answer, run);
  // The start of the process and the transfers are not the run's.
  spec.time_limit = run.timeout + std::chrono::seconds(5);
  context.progress(R"({"stage":"run","done":0,"total":1})");
  const Json timing = parse_json(context.run_child(std::move(spec)));
  context.progress(R"({"stage":"run","done":1,"total":1})");
  const auto made = MappedFile::map(answer.get(), "outputs");
  const auto writer = blobs_.writer({.max_bytes = options_.max_output_bytes});
  writer->write(made->text());
  storage::JobFinish finish;
  finish.result =
      Json{{"package", resolved.at("package")}, {"outputs", writer->commit().text()}, {"timing", timing}}
          .dump(-1, ' ', false, Json::error_handler_t::replace);
  return finish;
}

}  // namespace tensormill::server
