// The measuring child is this binary under another command name, as in the program.
#include <gmock/gmock.h>

#include "compiler/codegen/backend.h"
#include "server/measure/measure_child.h"

int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "child-measure")
    tensormill::jobs::run_child(argc, argv, tensormill::measure::child_measure,
                                [] { tensormill::codegen::make_llvm_backend(); });
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
