#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/open_package.h"
#include "server/cli/terminal.h"
#include "server/report/evaluation.h"

namespace tensormill::cli {

// What `report` runs for each package: a process of its own, whose memory is the package's alone.
Action evaluate_command(CLI::App& app) {
  struct Arguments {
    std::string package;
    std::string inputs;
    int threads = 0;
    report::EvaluationOptions options;
  };
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("PACKAGE.tar", arguments->package, "package file")->required();
  app.add_option("--inputs", arguments->inputs, "NPZ with the examples of each input")->required();
  app.add_option("--scores", arguments->options.scores, "output with the scores");
  app.add_option("--samples", arguments->options.samples, "the most to look at");
  app.add_option("--warmup", arguments->options.times.warmup, "as run");
  app.add_option("--repeat", arguments->options.times.repeat, "as run");
  app.add_option("--number", arguments->options.times.number, "as run");
  app.add_option("--threads", arguments->threads, "default: all cores");
  return [arguments](const GlobalOptions&) {
    OpenPackage package(arguments->package, arguments->threads);
    const std::shared_ptr<const MappedFile> file = MappedFile::open(arguments->inputs);
    const std::vector<npz::NamedTensor> set =
        in_context(arguments->inputs, [&] { return npz::read_npz(file->bytes()); });
    const Json result = in_context(arguments->inputs, [&] {
      return report::evaluate(package.executor(), package.pool(), package.options(), set, arguments->options);
    });
    print_json(result);
    return 0;
  };
}

}  // namespace tensormill::cli
