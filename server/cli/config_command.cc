#include <iostream>
#include <memory>

#include "server/cli/settings_input.h"

namespace tensormill::cli {

Action config_command(CLI::App& app) {
  app.require_subcommand(1);
  CLI::App* check = app.add_subcommand("check", "read the settings as serve would, and print what holds");
  const auto arguments = add_settings_options(*check);
  return [arguments](const GlobalOptions&) {
    print_settings(settings_of(*arguments));
    std::cout << std::flush;
    return 0;
  };
}

}  // namespace tensormill::cli
