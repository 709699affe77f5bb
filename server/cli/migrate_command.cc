// tensormill migrate
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/settings_input.h"
#include "server/services/store/blob_place.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"

namespace tensormill::cli {

namespace {

int migrate(const SettingsArguments& arguments, const std::string& to, bool json) {
  constexpr uint64_t kTellEvery = 1000;
  const config::Settings settings = settings_of(arguments);
  storage::PosixEnv env;
  if (!env.exists(settings.data + "/catalog.db"))
    throw Error(ErrorCode::kNotFound, settings.data + " is no store: there is no catalog.db");
  // Nobody else has the store open meanwhile.
  storage::SqliteCatalog catalog(env, settings.data + "/catalog.db");
  const server::Migrated done =
      server::migrate_blobs(settings, env, settings.data, catalog, to, [&](const server::Migrated& now) {
        if (!json && now.blobs % kTellEvery == 0) std::cerr << now.blobs << " blobs" << std::endl;
      });
  if (json) {
    std::cout
        << Json{{"to", to}, {"blobs", done.blobs}, {"copied", done.copied}, {"bytes", done.bytes}}.dump();
  } else {
    std::cout << to << ": " << done.blobs << " blobs, " << done.copied << " of them new, " << done.bytes
              << " bytes; what is in the old place stays there";
  }
  std::cout << std::endl;
  return 0;
}

}  // namespace

Action migrate_command(CLI::App& app) {
  const auto arguments = std::make_shared<SettingsArguments>();
  const auto to = std::make_shared<std::string>();
  app.add_option("--data", arguments->data, "folder of the store; no server may have it open");
  app.add_option("--to", *to, "s3://BUCKET/PREFIX, or `folder` for the folder of the store")->required();
  app.add_option("--config", arguments->config, "TOML file of settings");
  app.add_option("--set", arguments->settings, "NAME=VALUE of any setting; may be repeated");
  return [arguments, to](const GlobalOptions& globals) { return migrate(*arguments, *to, globals.json); };
}

}  // namespace tensormill::cli
