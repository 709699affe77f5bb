// The tests start their own binary as a child, as the server does.
#include <gmock/gmock.h>

#include "tests/jobs/children.h"

int main(int argc, char** argv) {
  if (argc > 1) tensormill::jobs::run_test_child(argv[1], argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
