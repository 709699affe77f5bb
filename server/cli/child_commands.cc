#include "server/cli/child_commands.h"

#include "server/measure/measure_child.h"
#include "server/measure/tune_child.h"

namespace tensormill::cli {

jobs::ChildBody find_child(std::string_view command) {
  if (command == "child-import") return child_import;
  if (command == "child-compile") return child_compile;
  if (command == "child-run") return child_run;
  if (command == "child-execute") return child_execute;
  if (command == "child-measure") return measure::child_measure;
  if (command == "child-tune") return measure::child_tune;
  return nullptr;
}

}  // namespace tensormill::cli
