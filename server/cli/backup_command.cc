// tensormill backup, tensormill restore
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/services/blob_place.h"
#include "storage/backup/store_copy.h"
#include "storage/env/posix_env.h"

namespace tensormill::cli {

namespace {

struct CopyArguments {
  std::string data = "tensormill-data";
  std::string copy;
};

int copy(const std::string& from, const std::string& to, bool json) {
  storage::PosixEnv env;
  if (const std::string place = server::place_of_blobs(env, from); !place.empty())
    throw Error(ErrorCode::kNotSupported, "the blobs of " + from + " are in " + place +
                                              "; `tensormill migrate` copies such a store to a folder");
  const storage::StoreCopy done = storage::copy_store(env, from, to);
  if (json) {
    std::cout
        << Json{{"to", to}, {"blobs", done.blobs}, {"copied", done.copied}, {"bytes", done.bytes}}.dump();
  } else {
    std::cout << to << ": " << done.blobs << " blobs, " << done.copied << " of them new, " << done.bytes
              << " bytes";
  }
  std::cout << std::endl;
  return 0;
}

}  // namespace

Action backup_command(CLI::App& app) {
  const auto arguments = std::make_shared<CopyArguments>();
  app.add_option("--data", arguments->data, "folder of the store; a server may have it open");
  app.add_option("-o,--output", arguments->copy, "folder of the backup; what it has already is not copied")
      ->required();
  return [arguments](const GlobalOptions& globals) {
    return copy(arguments->data, arguments->copy, globals.json);
  };
}

Action restore_command(CLI::App& app) {
  const auto arguments = std::make_shared<CopyArguments>();
  app.add_option("BACKUP", arguments->copy, "folder of the backup")->required();
  app.add_option("--data", arguments->data, "folder of the new store");
  return [arguments](const GlobalOptions& globals) {
    storage::PosixEnv env;
    if (env.exists(arguments->data + "/catalog.db"))
      throw Error(ErrorCode::kConflict, arguments->data + " is a store already; restore into another folder");
    return copy(arguments->copy, arguments->data, globals.json);
  };
}

}  // namespace tensormill::cli
