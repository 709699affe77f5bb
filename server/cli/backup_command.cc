// tensormill backup, tensormill restore
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/settings_input.h"
#include "server/cli/terminal.h"
#include "server/services/store/blob_place.h"
#include "server/services/store/store_backup.h"
#include "storage/backup/store_copy.h"
#include "storage/env/posix_env.h"

namespace tensormill::cli {

namespace {

void tell(const std::string& to, const storage::StoreCopy& done, bool json) {
  if (json) {
    print_json(Json{{"to", to}, {"blobs", done.blobs}, {"copied", done.copied}, {"bytes", done.bytes}});
  } else {
    std::cout << to << ": " << done.blobs << " blobs, " << done.copied << " of them new, " << done.bytes
              << " bytes" << std::endl;
  }
}

/// Whether the store is one that several servers may have open. One of the two elsewhere alone is none.
bool is_shared(const config::Settings& settings) {
  const bool has_catalog = !settings.catalog_url.empty(), has_blobs = !settings.blobs.empty();
  if (has_catalog == has_blobs) return has_catalog;
  throw Error(
      ErrorCode::kNotSupported,
      "a store is copied from its folder, or from a PostgreSQL database and an S3 bucket, not from one of "
      "these and the folder; `tensormill migrate` moves either");
}

int back_up(const config::Settings& settings, const std::string& to, bool json) {
  storage::PosixEnv env;
  if (is_shared(settings)) {
    tell(to, server::back_up_shared(settings, env, to), json);
    return 0;
  }
  if (const std::string place = server::place_of_blobs(env, settings.data); !place.empty())
    throw Error(ErrorCode::kNotSupported, "the blobs of " + settings.data + " are in " + place +
                                              "; `tensormill migrate` copies such a store to a folder");
  tell(to, storage::copy_store(env, settings.data, to), json);
  return 0;
}

int restore(const config::Settings& settings, const std::string& from, bool json) {
  storage::PosixEnv env;
  if (env.exists(settings.data + "/catalog.db"))
    throw Error(ErrorCode::kConflict, settings.data + " is a store already; restore into another folder");
  const bool shared = is_shared(settings);
  const storage::StoreCopy done = storage::copy_store(env, from, settings.data);
  if (shared) server::move_to_shared(settings, env, settings.data);
  tell(shared ? settings.catalog_url + ", " + settings.blobs : settings.data, done, json);
  return 0;
}

}  // namespace

Action backup_command(CLI::App& app) {
  const std::shared_ptr<SettingsArguments> settings = add_copied_store_options(app);
  const auto to = std::make_shared<std::string>();
  app.add_option("-o,--output", *to, "folder of the backup; what it has already is not copied")->required();
  return [settings, to](const GlobalOptions& globals) {
    return back_up(settings_of(*settings), *to, globals.json);
  };
}

Action restore_command(CLI::App& app) {
  const std::shared_ptr<SettingsArguments> settings = add_copied_store_options(app);
  const auto from = std::make_shared<std::string>();
  app.add_option("BACKUP", *from, "folder of the backup")->required();
  return [settings, from](const GlobalOptions& globals) {
    return restore(settings_of(*settings), *from, globals.json);
  };
}

}  // namespace tensormill::cli
