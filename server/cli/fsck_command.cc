#include <chrono>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/settings_input.h"
#include "server/cli/terminal.h"
#include "server/services/store/blob_place.h"
#include "server/services/store/fsck.h"
#include "server/services/store/replica.h"
#include "storage/env/posix_env.h"
#include "storage/postgresql/open_catalog.h"
#include "storage/replica/shared_upload_store.h"
#include "storage/upload/folder_upload_store.h"

namespace tensormill::cli {

namespace {

int fsck(const SettingsArguments& arguments, const storage::CatalogPlace& place, bool json) {
  const config::Settings settings = settings_of(arguments);
  const std::string& data = settings.data;
  storage::PosixEnv env;
  if (place.url.empty() && !env.exists(data + "/catalog.db")) {
    throw Error(ErrorCode::kNotFound, data + " is no store: there is no catalog.db");
  }
  const storage::StoreCatalog opened = storage::open_catalog(env, data, place);
  storage::Catalog& catalog = *opened.catalog;
  server::SharedPlace shared;
  const bool is_shared = !opened.shared_id.empty() && !settings.blobs.empty();
  if (is_shared)
    shared.store_id = [&](const std::string& known) {
      return server::shared_store_id(catalog, opened.shared_id, known);
    };
  const std::unique_ptr<storage::BlobStore> store = server::open_blobs(settings, env, data, shared);
  storage::BlobStore& blobs = *store;
  const auto now_ms = [] {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  };
  std::unique_ptr<storage::UploadStore> uploads;
  if (is_shared) {
    uploads = std::make_unique<storage::SharedUploadStore>(catalog, blobs, storage::UploadOptions{}, now_ms);
  } else {
    uploads =
        std::make_unique<storage::FolderUploadStore>(env, data, blobs, storage::UploadOptions{}, now_ms);
  }
  const server::FsckReport report = server::check_store(blobs, catalog, *uploads);
  if (json) {
    print_json(Json{{"blobs", report.blobs},
                    {"bytes", report.bytes},
                    {"unreferenced", report.unreferenced},
                    {"problems", report.problems}});
  } else {
    for (const std::string& problem : report.problems) std::cout << problem << "\n";
    std::cout << report.blobs << " blobs of " << report.bytes << " bytes, " << report.unreferenced
              << " that nothing names, " << report.problems.size() << " problems" << std::endl;
  }
  return report.problems.empty() ? 0 : error_code_info(ErrorCode::kInvalidPackage).exit_code;
}

}  // namespace

Action fsck_command(CLI::App& app) {
  const auto arguments = add_store_options(app);
  const auto place = std::make_shared<storage::CatalogPlace>();
  app.add_option("--catalog", place->url, "postgresql://USER@HOST/DATABASE; default: a file in --data");
  app.add_option("--password-file", place->password_file, "file whose first line is the password for it");
  return [arguments, place](const GlobalOptions& globals) { return fsck(*arguments, *place, globals.json); };
}

}  // namespace tensormill::cli
