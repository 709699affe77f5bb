/// What the test binary does when it is started as a child.
#pragma once

#include <string>

namespace tensormill::jobs {

/// Runs the child that `command` names and never returns; returns when there is none of that name.
void run_test_child(const std::string& command, int argc, char** argv);

}  // namespace tensormill::jobs
