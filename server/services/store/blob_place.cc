#include "server/services/store/blob_place.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <random>

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/json.h"
#include "server/services/store/replica.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/s3/s3_blob_store.h"

namespace tensormill::server {
namespace {

/// Which store this is, and where its blobs are: {"store_id": …, "blobs": "s3://…"}. Only where that is S3;
/// the place is "" until it was found to be this store's.
constexpr const char* kPlaceFile = "/blobs.json";

struct Place {
  std::string store_id;
  std::string blobs;
};

Place read_place(storage::Env& env, const std::string& root) {
  if (!env.exists(root + kPlaceFile)) return {};
  const Json json = parse_json(storage::read_all(env, root + kPlaceFile));
  return {json.at("store_id").get<std::string>(), json.at("blobs").get<std::string>()};
}

void write_place(storage::Env& env, const std::string& root, const Place& place) {
  const std::string temporary = root + kPlaceFile + ".new";
  {
    const auto file = env.open(temporary, storage::OpenMode::kCreate);
    const std::string text = Json{{"store_id", place.store_id}, {"blobs", place.blobs}}.dump() + "\n";
    file->truncate(0);
    file->write(0, text);
    file->sync();
  }
  env.rename(temporary, root + kPlaceFile);
  env.sync_folder(root);
}

bool has_blobs(storage::Env& env, const std::string& root) {
  return env.exists(root + "/blobs/sha256") && !env.list(root + "/blobs/sha256").empty();
}

std::string new_id() {
  std::random_device random;
  std::array<uint8_t, 16> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return hex_text(bytes);
}

std::map<std::string, std::string> aws_environment() {
  std::map<std::string, std::string> found;
  for (char** next = environ; *next != nullptr; ++next) {
    const std::string_view entry = *next;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(entry.substr(0, equals));
    if (name.starts_with("AWS_") || name == "HOME") found.emplace(name, entry.substr(equals + 1));
  }
  return found;
}

int64_t unix_seconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

storage::S3StoreOptions s3_options(const config::Settings& settings, const std::string& url) {
  storage::S3StoreOptions options;
  storage::parse_s3_url(url, options.s3);
  options.s3.region = settings.s3_region;
  options.s3.endpoint = settings.s3_endpoint;
  while (options.s3.endpoint.ends_with('/')) options.s3.endpoint.pop_back();
  const std::string& addressing = settings.s3_addressing;
  if (addressing != "" && addressing != "path" && addressing != "host")
    throw Error(ErrorCode::kUsage, "s3.addressing: " + addressing + " is neither path nor host");
  options.s3.path_style = addressing == "path" || (addressing.empty() && !options.s3.endpoint.empty());
  if (options.s3.endpoint.empty())
    options.s3.endpoint = "https://s3." + settings.s3_region + ".amazonaws.com";
  options.s3.ca_file = settings.s3_ca_file;
  options.s3.stall_timeout = settings.s3_stall_timeout;
  options.s3.retries.attempts = settings.s3_attempts;
  options.s3.unix_seconds = unix_seconds;
  options.credentials.file = settings.s3_credentials_file;
  options.credentials.environment = aws_environment();
  options.credentials.region = settings.s3_region;
  options.credentials.ca_file = settings.s3_ca_file;
  options.credentials.unix_seconds = unix_seconds;
  options.cache_bytes = settings.s3_cache;
  return options;
}

std::string url_of(const storage::S3Options& options) {
  return "s3://" + options.bucket + "/" + options.prefix;
}

void copy_blob(storage::BlobStore& from, storage::BlobStore& to, const storage::BlobInfo& info) {
  constexpr size_t kPart = size_t{1} << 20;
  const std::shared_ptr<const storage::Blob> blob = from.open(info.digest);
  const auto writer = to.writer({.form = info.form, .expected = info.digest});
  for (std::string_view left = blob->text(); !left.empty(); left.remove_prefix(std::min(kPart, left.size())))
    writer->write(left.substr(0, kPart));
  writer->commit();
}

}  // namespace

Migrated migrate_blobs(const config::Settings& settings, storage::Env& env, const std::string& root,
                       storage::Catalog& catalog, const std::string& to,
                       const std::function<void(const Migrated&)>& tell) {
  Place place = read_place(env, root);
  const bool to_folder = to == "folder";
  if (to_folder == place.blobs.empty())
    throw Error(ErrorCode::kUsage, "the blobs of " + root + " are in " +
                                       (place.blobs.empty() ? "its folder" : place.blobs) +
                                       "; they go from there to the other kind of place alone");
  storage::S3StoreOptions options = s3_options(settings, to_folder ? place.blobs : to);
  if (place.store_id.empty()) write_place(env, root, place = {new_id(), ""});
  put_store_id(catalog, place.store_id);
  options.store_id = place.store_id;
  // Beside the folder's own temporary files.
  const std::string cache = root + "/migrating";
  Migrated done;
  {
    storage::FolderBlobStore folder(env, root);
    storage::S3BlobStore s3(env, cache, options, storage::load_http_transport());
    storage::BlobStore& from = to_folder ? static_cast<storage::BlobStore&>(s3) : folder;
    storage::BlobStore& target = to_folder ? static_cast<storage::BlobStore&>(folder) : s3;
    for (const storage::BlobInfo& info : from.list()) {
      ++done.blobs;
      if (!target.exists(info.digest)) {
        copy_blob(from, target, info);
        ++done.copied;
        done.bytes += from.open(info.digest)->size();
      }
      tell(done);
    }
  }
  storage::remove_tree(env, cache);
  write_place(env, root, {place.store_id, to_folder ? "" : url_of(options.s3)});
  return done;
}

std::string place_of_blobs(storage::Env& env, const std::string& root) { return read_place(env, root).blobs; }

bool has_blobs_in(storage::Env& env, const std::string& root, const std::string& place) {
  const std::string known = place_of_blobs(env, root);
  if (place == "folder") return known.empty();
  storage::S3Options asked;
  storage::parse_s3_url(place, asked);
  return known == url_of(asked);
}

std::unique_ptr<storage::BlobStore> open_blobs(const config::Settings& settings, storage::Env& env,
                                               const std::string& root, const SharedPlace& shared) {
  Place place = read_place(env, root);
  if (settings.blobs.empty()) {
    if (!place.blobs.empty())
      throw Error(ErrorCode::kUsage,
                  "the blobs of " + root + " are in " + place.blobs + "; name that with --blobs");
    return std::make_unique<storage::FolderBlobStore>(env, root);
  }
  storage::S3StoreOptions options = s3_options(settings, settings.blobs);
  const std::string url = url_of(options.s3);
  if (!place.blobs.empty() && place.blobs != url)
    throw Error(ErrorCode::kUsage, "the blobs of " + root + " are in " + place.blobs + ", not in " + url);
  if (place.blobs.empty() && has_blobs(env, root))
    throw Error(ErrorCode::kUsage,
                root + " has blobs in its folder; `tensormill migrate` copies them to " + url);
  if (shared.store_id) {
    place.store_id = shared.store_id(place.store_id);
  } else if (place.store_id.empty()) {
    write_place(env, root, place = {new_id(), ""});
  }
  options.store_id = place.store_id;
  auto blobs = std::make_unique<storage::S3BlobStore>(
      env, root, options, storage::load_http_transport(),
      shared.index ? shared.index() : std::make_unique<storage::MemoryBlobIndex>());
  if (place.blobs.empty()) write_place(env, root, {place.store_id, url});
  return blobs;
}

}  // namespace tensormill::server
