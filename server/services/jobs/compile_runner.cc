#include "server/services/jobs/compile_runner.h"

#include "server/services/jobs/compile_action.h"

namespace tensormill::server {

storage::JobFinish CompileRunner::run(jobs::JobContext& context) {
  const std::string submitted = context.job().resolved;
  Json resolved = parse_json(submitted);
  GraphFiles graph(context.folder());
  const std::vector<std::string> kernels =
      import_graph(work_, context, resolved, graph, has_pending_records(resolved));
  const Tuned tuned = work_.desk.tuned(context, resolved, kernels);
  const PackageFiles files(context.folder());
  const std::string times = compile_graph(work_, context, resolved, graph, tuned, files);
  context.progress(R"({"stage":"publish","done":0,"total":1})");
  storage::JobFinish finish;
  finish.package = store_package(work_, context, files);
  context.progress(R"({"stage":"publish","done":1,"total":1})");
  Json result = parse_json(times);
  for (const std::string& line : layout_lines(result)) context.log(line);
  result["package"] = finish.package->id.text();
  finish.result = result.dump();
  if (canonical_json(resolved) != submitted) {
    finish.resolved = canonical_json(resolved);
    finish.action_key = action_key(resolved);
  }
  return finish;
}

}  // namespace tensormill::server
