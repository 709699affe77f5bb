// tensormill migrate
#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/settings_input.h"
#include "server/cli/terminal.h"
#include "server/services/store/blob_place.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/move_catalog.h"
#include "storage/postgresql/pg_url.h"

namespace tensormill::cli {

namespace {

constexpr const char* kFile = "file";      // of a catalog
constexpr const char* kFolder = "folder";  // of blobs

struct MigrateArguments {
  SettingsArguments store;
  std::vector<std::string> from;
  std::vector<std::string> to;
};

/// Where the two parts of a store are, or shall be; "" is not said.
struct Places {
  std::string catalog;
  std::string blobs;
};

Places places_of(const std::vector<std::string>& texts, const char* option) {
  Places places;
  for (const std::string& text : texts) {
    const bool is_catalog = text == kFile || storage::is_pg_url(text);
    if (!is_catalog && text != kFolder && !text.starts_with("s3://"))
      throw Error(ErrorCode::kUsage, std::string(option) +
                                         " is `file` or postgresql://USER@HOST/DATABASE for the catalog, "
                                         "`folder` or s3://BUCKET/PREFIX for the blobs");
    std::string& place = is_catalog ? places.catalog : places.blobs;
    if (!place.empty())
      throw Error(ErrorCode::kUsage, std::string(option) + " names two places for the same part");
    place = text;
  }
  return places;
}

class Migration {
public:
  Migration(const MigrateArguments& arguments, bool json)
      : settings_(settings_of(arguments.store)),
        from_(places_of(arguments.from, "--from")),
        to_(places_of(arguments.to, "--to")),
        json_(json) {
    const bool is_of_file = storage::is_pg_url(to_.catalog) && !storage::is_pg_url(from_.catalog);
    const bool is_to_file = to_.catalog == kFile && storage::is_pg_url(from_.catalog);
    if (!to_.catalog.empty() && !is_of_file && !is_to_file)
      throw Error(
          ErrorCode::kUsage,
          "a catalog goes from `file` to a postgresql:// URL, or back, for which --from names the URL");
    if (!from_.blobs.empty() && !server::has_blobs_in(env_, settings_.data, from_.blobs))
      throw Error(ErrorCode::kUsage, "the blobs of this store are not in " + from_.blobs);
  }

  /// The catalog is in its file while blobs are copied, since that says which there are.
  void run() {
    if (to_.catalog == kFile) move_catalog();
    if (!to_.blobs.empty()) copy_blobs();
    if (storage::is_pg_url(to_.catalog)) move_catalog();
  }

private:
  void move_catalog() {
    storage::CatalogPlace place;
    place.password_file = settings_.catalog_password_file;
    const bool is_to_file = to_.catalog == kFile;
    place.url = is_to_file ? from_.catalog : to_.catalog;
    const storage::CatalogCopy done = is_to_file ? storage::move_to_file(env_, settings_.data, place)
                                                 : storage::move_to_database(env_, settings_.data, place);
    if (json_) {
      print_json(Json{{"to", to_.catalog}, {"rows", done.rows}, {"copied", done.copied}});
    } else {
      std::cout << to_.catalog << ": " << done.rows << " rows, " << done.copied
                << " of them copied now; both sides are the same" << std::endl;
    }
  }

  void copy_blobs() {
    constexpr uint64_t kTellEvery = 1000;
    if (!env_.exists(settings_.data + "/catalog.db"))
      throw Error(ErrorCode::kNotFound, settings_.data + " is no store: there is no catalog.db");
    // Nobody else has the store open meanwhile.
    storage::SqliteCatalog catalog(env_, settings_.data + "/catalog.db");
    const server::Migrated done = server::migrate_blobs(settings_, env_, settings_.data, catalog, to_.blobs,
                                                        [&](const server::Migrated& now) {
                                                          if (!json_ && now.blobs % kTellEvery == 0)
                                                            std::cerr << now.blobs << " blobs" << std::endl;
                                                        });
    if (json_) {
      print_json(
          Json{{"to", to_.blobs}, {"blobs", done.blobs}, {"copied", done.copied}, {"bytes", done.bytes}});
    } else {
      std::cout << to_.blobs << ": " << done.blobs << " blobs, " << done.copied << " of them new, "
                << done.bytes << " bytes; what is in the old place stays there" << std::endl;
    }
  }

  storage::PosixEnv env_;
  const config::Settings settings_;
  const Places from_, to_;
  const bool json_;
};

}  // namespace

Action migrate_command(CLI::App& app) {
  const auto arguments = std::make_shared<MigrateArguments>();
  app.add_option("--data", arguments->store.data, "folder of the store; no server may have it open");
  app.add_option("--from", arguments->from,
                 "where the catalog is (`file`, postgresql://USER@HOST/DATABASE) or the blobs are (`folder`, "
                 "s3://BUCKET/PREFIX); may be repeated; default: what the folder says");
  app.add_option("--to", arguments->to, "where either goes; may be repeated, for both")->required();
  app.add_option("--config", arguments->store.config, "TOML file of settings");
  app.add_option("--set", arguments->store.settings, "NAME=VALUE of any setting; may be repeated");
  return [arguments](const GlobalOptions& globals) {
    Migration(*arguments, globals.json).run();
    return 0;
  };
}

}  // namespace tensormill::cli
