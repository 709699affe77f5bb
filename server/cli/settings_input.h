/// Settings from the command line: flags go before the environment, that before the file.
/// Thread-safety: pure functions over their arguments and the environment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "server/cli/cli.h"

namespace tensormill::cli {

struct SettingsArguments {
  std::string listen;
  std::string data;
  std::string catalog;
  std::string blobs;
  std::string config;
  std::string ops_listen;
  std::string keys_file;
  bool read_only = false;
  std::string models;
  std::vector<std::string> settings;  ///< NAME=VALUE
};

/// The options that `serve` and `config` share.
std::shared_ptr<SettingsArguments> add_settings_options(CLI::App& app);
/// Those of commands on a store that no server has open.
std::shared_ptr<SettingsArguments> add_store_options(CLI::App& app);
/// Those of commands on a store that servers may have open.
std::shared_ptr<SettingsArguments> add_copied_store_options(CLI::App& app);
/// Throws Error(kUsage) naming the setting and where it came from.
config::Settings settings_of(const SettingsArguments& arguments);
/// One line a setting, together a file for --config. Settings hold no secrets: keys are in a file of their
/// own, hashed.
void print_settings(const config::Settings& settings);

}  // namespace tensormill::cli
