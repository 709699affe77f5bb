#include "server/cli/children/child_commands.h"
#include "server/cli/run.h"

int main(int argc, char** argv) {
  if (argc > 2) {
    if (const auto child = tensormill::cli::find_child(argv[1]))
      tensormill::jobs::run_child(argc, argv, child, [argv] { tensormill::cli::prepare_child(argv[1]); });
  }
  return tensormill::cli::run(argc, argv);
}
