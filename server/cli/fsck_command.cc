#include <chrono>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/services/fsck.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/open_catalog.h"

namespace tensormill::cli {

namespace {

int fsck(const std::string& data, const storage::CatalogPlace& place, bool json) {
  storage::PosixEnv env;
  if (place.url.empty() && !env.exists(data + "/catalog.db")) {
    throw Error(ErrorCode::kNotFound, data + " is no store: there is no catalog.db");
  }
  const storage::StoreCatalog opened = storage::open_catalog(env, data, place);
  storage::Catalog& catalog = *opened.catalog;
  storage::FolderBlobStore blobs(env, data);
  const auto now_ms = [] {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  };
  storage::UploadStore uploads(env, data, blobs, {}, now_ms);
  const server::FsckReport report = server::check_store(blobs, catalog, uploads);
  if (json) {
    std::cout << Json{{"blobs", report.blobs},
                      {"bytes", report.bytes},
                      {"unreferenced", report.unreferenced},
                      {"problems", report.problems}}
                     .dump()
              << std::endl;
  } else {
    for (const std::string& problem : report.problems) std::cout << problem << "\n";
    std::cout << report.blobs << " blobs of " << report.bytes << " bytes, " << report.unreferenced
              << " that nothing names, " << report.problems.size() << " problems" << std::endl;
  }
  return report.problems.empty() ? 0 : error_code_info(ErrorCode::kInvalidPackage).exit_code;
}

}  // namespace

Action fsck_command(CLI::App& app) {
  const auto data = std::make_shared<std::string>("tensormill-data");
  app.add_option("--data", *data, "folder of the store; no server may have it open");
  const auto place = std::make_shared<storage::CatalogPlace>();
  app.add_option("--catalog", place->url, "postgresql://USER@HOST/DATABASE; default: a file in --data");
  app.add_option("--password-file", place->password_file, "file whose first line is the password for it");
  return [data, place](const GlobalOptions& globals) { return fsck(*data, *place, globals.json); };
}

}  // namespace tensormill::cli
