/// What the test binary does when it is started as a child.
#pragma once

#include <string>

namespace tensormill::jobs {

/// Runs the child that `command` names and never returns; returns for an option of the test binary's own.
void run_test_child(const std::string& command, int argc, char** argv);

/// The same for the children that try single walls (wall_children.cc); returns for any other command.
void run_wall_child(const std::string& command, int argc, char** argv);

}  // namespace tensormill::jobs
