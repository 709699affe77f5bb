#include "server/services/store/package_service.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/deployments/run_apart.h"
#include "server/services/forms.h"
#include "server/services/store/blob_content.h"
#include "server/services/store/model_service.h"
#include "server/services/store/package_archive.h"
#include "server/services/store/package_bundle.h"

namespace tensormill::server {

namespace {

std::string_view stage_name(services::CodeStage stage) {
  constexpr std::array<std::string_view, 5> kNames = {"relay", "te", "tir", "ll", "asm"};
  return kNames[static_cast<size_t>(stage)];
}

/// Content with a block of bytes behind it.
class WithBlock final : public http::Content {
public:
  WithBlock(std::shared_ptr<http::Content> content, std::string block)
      : content_(std::move(content)), block_(std::move(block)) {}
  uint64_t size() const override { return content_->size() + block_.size(); }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override {
    const uint64_t before = content_->size();
    if (offset < before) return content_->read_at(offset, buffer);
    if (offset - before >= block_.size()) return 0;
    const std::string_view rest = std::string_view(block_).substr(offset - before);
    const size_t count = std::min(rest.size(), buffer.size());
    std::memcpy(buffer.data(), rest.data(), count);
    return count;
  }

private:
  std::shared_ptr<http::Content> content_;
  std::string block_;
};

}  // namespace

storage::PackageRow require_package(storage::Catalog& catalog, const std::string& id) {
  const auto digest = Digest::parse(id);
  auto row = digest ? catalog.find_package(*digest) : std::nullopt;
  if (!row) throw Error(ErrorCode::kNotFound, "there is no package \"" + id + "\"");
  return *std::move(row);
}

std::map<Digest, std::string> PackageServiceImpl::metadata_of(const std::vector<Digest>& packages) {
  std::map<Digest, std::string> texts = catalog_.package_metadata(packages);
  // It goes into answers as it is, whoever can write to the catalog.
  std::erase_if(texts, [](const auto& one) { return package::package_id(one.second) != one.first; });
  std::map<Digest, std::string> added;
  for (const Digest& id : packages) {
    if (!texts.contains(id)) added[id] = blobs_.open(id)->text();
  }
  try {
    catalog_.put_package_metadata(added);
  } catch (const Error& error) {
    // The next list tries again; this one has what it needs.
    if (error.code() != ErrorCode::kDiskFull && error.code() != ErrorCode::kUnavailable) throw;
  }
  texts.merge(added);
  return texts;
}

services::PackageInfo PackageServiceImpl::info_of(const storage::PackageRow& row, std::string metadata,
                                                  const UsedBy& deployments) {
  services::PackageInfo info;
  const Json facts = parse_json(row.facts);
  info.id = row.id;
  info.archive_digest = row.archive;
  info.archive_size = row.archive_bytes;
  info.metadata_json = std::move(metadata);
  info.inputs = specs_from_json(facts.at("inputs"));
  info.outputs = specs_from_json(facts.at("outputs"));
  info.created_at = {row.created_ms};
  if (const auto found = deployments.find(row.id); found != deployments.end())
    info.deployments = found->second;
  return info;
}

services::Page<services::PackageInfo> PackageServiceImpl::list(const services::PackageQuery& query) {
  std::string model = query.model;
  if (!model.empty()) {
    const auto row = find_model(catalog_, model);
    model = row ? row->id.text() : "unknown model";
  }
  services::Page<services::PackageInfo> page;
  const auto rows =
      catalog_.list_packages({model, query.target}, {cursor_from_text(query.page.cursor), query.page.limit});
  std::vector<Digest> ids;
  for (const storage::PackageRow& row : rows.items) ids.push_back(row.id);
  const UsedBy deployments = catalog_.deployments_of(ids);
  std::map<Digest, std::string> metadata = metadata_of(ids);
  for (const storage::PackageRow& row : rows.items)
    page.items.push_back(info_of(row, std::move(metadata.at(row.id)), deployments));
  page.next_cursor = cursor_text(rows.next);
  return page;
}

services::PackageInfo PackageServiceImpl::get(const std::string& id) {
  const storage::PackageRow row = require_package(catalog_, id);
  return info_of(row, std::move(metadata_of({row.id}).at(row.id)), catalog_.deployments_of({row.id}));
}

services::Archive PackageServiceImpl::archive(const std::string& id, bool is_signed) {
  const storage::PackageRow row = require_package(catalog_, id);
  const std::string block = is_signed ? signer_.sign(row.archive) : "";
  catalog_.touch_package(row.id);
  std::shared_ptr<http::Content> content = std::make_shared<PackageArchive>(blobs_, row);
  if (is_signed) content = std::make_shared<WithBlock>(std::move(content), block);
  return {std::move(content), row.archive};
}

std::shared_ptr<http::Content> PackageServiceImpl::code(const std::string& id, services::CodeStage stage) {
  const storage::PackageRow row = require_package(catalog_, id);
  const std::string name = std::string(kCodePrefix) + std::string(stage_name(stage));
  for (const storage::MemberRow& member : row.members) {
    if (member.name != name) continue;
    return std::make_shared<BlobContent>(blobs_.open(member.digest));
  }
  throw Error(ErrorCode::kNotFound, "package " + id + " has no text of the stage " +
                                        std::string(stage_name(stage)) + "; it was not compiled here");
}

std::shared_ptr<http::Content> PackageServiceImpl::bundle(const std::string& id,
                                                          const services::BundleOptions& options,
                                                          const services::CallContext& context) {
  const storage::PackageRow row = require_package(catalog_, id);
  catalog_.touch_package(row.id);
  return make_bundle_archive(children_, open_members(blobs_, row), options,
                             {.memory = options_.run_memory, .folder = options_.folder}, context.cancelled);
}

void PackageServiceImpl::remove(const std::string& id) {
  const storage::PackageRow row = require_package(catalog_, id);
  if (!catalog_.remove_package(row.id)) require_package(catalog_, id);
  std::vector<Digest> named = {row.id};
  for (const storage::MemberRow& member : row.members) named.push_back(member.digest);
  collector_.collect_released(named);
}

void PackageServiceImpl::require_room(const std::string& id) {
  require_package(catalog_, id);
  children_.require_room(options_.run_memory);
}

services::RunResult PackageServiceImpl::run(const std::string& id, services::NamedTensors inputs,
                                            const services::RunOptions& options,
                                            const services::CallContext& context) {
  const storage::PackageRow row = require_package(catalog_, id);
  catalog_.touch_package(row.id);
  if (!options.on.empty()) {
    if (options_.remote == nullptr)
      throw Error(ErrorCode::kNotSupported, "this server has no workers elsewhere");
    return options_.remote->run(row, inputs, options, context);
  }
  return run_apart(children_, open_members(blobs_, row), inputs, options,
                   {options_.run_timeout, options_.run_memory, options_.threads}, context.cancelled);
}

}  // namespace tensormill::server
