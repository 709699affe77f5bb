#include "server/cli/child_commands.h"

namespace tensormill::cli {

jobs::ChildBody find_child(std::string_view command) {
  if (command == "child-import") return child_import;
  if (command == "child-compile") return child_compile;
  if (command == "child-run") return child_run;
  return nullptr;
}

}  // namespace tensormill::cli
