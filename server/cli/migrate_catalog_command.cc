// tensormill migrate-catalog
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/move_catalog.h"
#include "storage/postgresql/pg_url.h"

namespace tensormill::cli {

namespace {

struct MigrateArguments {
  std::string data = "tensormill-data";
  std::string from;
  std::string to;
  std::string password_file;
};

int migrate_catalog(const MigrateArguments& arguments, bool json) {
  const bool to_database = storage::is_pg_url(arguments.to) && arguments.from == "file";
  const bool to_file = storage::is_pg_url(arguments.from) && arguments.to == "file";
  if (!to_database && !to_file)
    throw Error(ErrorCode::kUsage,
                "one of --from and --to is `file`, the other one postgresql://HOST/DATABASE");
  storage::PosixEnv env;
  storage::CatalogPlace place;
  place.url = to_database ? arguments.to : arguments.from;
  place.password_file = arguments.password_file;
  const storage::CatalogCopy done = to_database ? storage::move_to_database(env, arguments.data, place)
                                                : storage::move_to_file(env, arguments.data, place);
  if (json) {
    std::cout << Json{{"rows", done.rows}, {"copied", done.copied}}.dump() << std::endl;
  } else {
    std::cout << done.rows << " rows, " << done.copied << " of them copied now; both sides are the same"
              << std::endl;
  }
  return 0;
}

}  // namespace

Action migrate_catalog_command(CLI::App& app) {
  const auto arguments = std::make_shared<MigrateArguments>();
  app.add_option("--data", arguments->data,
                 "folder of the store; no server may have it or the database open");
  app.add_option("--from", arguments->from, "`file` or postgresql://USER@HOST/DATABASE")->required();
  app.add_option("--to", arguments->to, "`file` or postgresql://USER@HOST/DATABASE")->required();
  app.add_option("--password-file", arguments->password_file,
                 "file whose first line is the database's password");
  return [arguments](const GlobalOptions& globals) { return migrate_catalog(*arguments, globals.json); };
}

}  // namespace tensormill::cli
