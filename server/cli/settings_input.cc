#include "server/cli/settings_input.h"

#include <unistd.h>

#include <iostream>

#include "config/settings_file.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::cli {

std::shared_ptr<SettingsArguments> add_settings_options(CLI::App& app) {
  auto arguments = std::make_shared<SettingsArguments>();
  app.add_option("--listen", arguments->listen, "address and port; default 127.0.0.1:8080");
  app.add_option("--data", arguments->data, "folder of the store");
  app.add_option("--catalog", arguments->catalog,
                 "postgresql://USER@HOST/DATABASE; default: a file in --data");
  app.add_option("--blobs", arguments->blobs, "s3://BUCKET/PREFIX; default: in the folder of the store");
  app.add_option("--ops-listen", arguments->ops_listen, "address and port of /metrics and health");
  app.add_option("--keys-file", arguments->keys_file, "file of API keys, as `tensormill keys` makes it");
  app.add_flag("--read-only", arguments->read_only, "serve the packages of --models and change nothing");
  app.add_option("--models", arguments->models, "folder of NAME.tar packages for --read-only");
  app.add_option("--config", arguments->config, "TOML file of settings");
  app.add_option("--set", arguments->settings, "NAME=VALUE of any setting; may be repeated");
  return arguments;
}

std::shared_ptr<SettingsArguments> add_store_options(CLI::App& app) {
  auto arguments = std::make_shared<SettingsArguments>();
  app.add_option("--data", arguments->data, "folder of the store; no server may have it open");
  app.add_option("--blobs", arguments->blobs, "s3://BUCKET/PREFIX; default: in the folder of the store");
  app.add_option("--config", arguments->config, "TOML file of settings");
  app.add_option("--set", arguments->settings, "NAME=VALUE of any setting; may be repeated");
  return arguments;
}

std::shared_ptr<SettingsArguments> add_copied_store_options(CLI::App& app) {
  auto arguments = std::make_shared<SettingsArguments>();
  app.add_option("--data", arguments->data, "folder of the store");
  app.add_option(
      "--catalog", arguments->catalog,
      "postgresql://USER@HOST/DATABASE of a store that several servers may have open, with --blobs");
  app.add_option("--blobs", arguments->blobs, "s3://BUCKET/PREFIX of such a store");
  app.add_option("--config", arguments->config, "TOML file of settings");
  app.add_option("--set", arguments->settings, "NAME=VALUE of any setting; may be repeated");
  return arguments;
}

config::Settings settings_of(const SettingsArguments& arguments) {
  config::SettingSources sources;
  sources.environment = config::tensormill_environment(environ);
  if (!arguments.config.empty()) {
    sources.file_name = arguments.config;
    try {
      // One byte more than a file of settings may have: what is larger is refused without being copied.
      sources.file_text = MappedFile::open(arguments.config)->text().substr(0, config::kMaxFileBytes + 1);
    } catch (const Error& error) {
      throw Error(ErrorCode::kUsage, "--config: " + error.message());
    }
  }
  if (!arguments.listen.empty()) sources.flags.emplace_back("listen", arguments.listen);
  if (!arguments.ops_listen.empty()) sources.flags.emplace_back("ops_listen", arguments.ops_listen);
  if (!arguments.keys_file.empty()) sources.flags.emplace_back("keys_file", arguments.keys_file);
  if (arguments.read_only) sources.flags.emplace_back("read_only", "true");
  if (!arguments.models.empty()) sources.flags.emplace_back("models", arguments.models);
  if (!arguments.catalog.empty()) sources.flags.emplace_back("catalog.url", arguments.catalog);
  if (!arguments.data.empty()) sources.flags.emplace_back("data", arguments.data);
  if (!arguments.blobs.empty()) sources.flags.emplace_back("blobs", arguments.blobs);
  for (const std::string& setting : arguments.settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCode::kUsage, "--set " + setting + ": expected NAME=VALUE");
    }
    sources.flags.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  config::Settings settings = config::load_settings(sources);
  if (settings.read_only != !settings.models.empty())
    throw Error(ErrorCode::kUsage, "read_only and models (--read-only --models DIR) go together");
  if (settings.read_only && !settings.catalog_url.empty())
    throw Error(ErrorCode::kUsage, "catalog.url: a read-only server has no catalog");
  if (settings.read_only && !settings.blobs.empty())
    throw Error(ErrorCode::kUsage, "a read-only server has no store: it takes no blobs (--blobs)");
  return settings;
}

void print_settings(const config::Settings& settings) {
  for (const config::SettingInfo& info : config::all_settings()) {
    std::cout << config::settings_file_line(info, settings) << "\n";
  }
}

}  // namespace tensormill::cli
