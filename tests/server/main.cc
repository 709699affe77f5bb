// The services start their own binary as a child, as the server does.
#include <gmock/gmock.h>

#include "server/cli/children/child_commands.h"
#include "server/jobs/child_main.h"

int main(int argc, char** argv) {
  const auto body = argc > 1 ? tensormill::cli::find_child(argv[1]) : nullptr;
  if (body != nullptr)
    tensormill::jobs::run_child(argc, argv, body, [argv] { tensormill::cli::prepare_child(argv[1]); });
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
