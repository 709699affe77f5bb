#include "server/services/store/package_archive.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/package/metadata.h"
#include "server/services/forms.h"

namespace tensormill::server {

MemberBlobs open_members(storage::BlobStore& blobs, const storage::PackageRow& package,
                         const std::stop_token& stop) {
  MemberBlobs members;
  for (const storage::MemberRow& member : package.members) {
    if (!is_archived(member.name)) continue;
    try {
      members[member.name] = blobs.open(member.digest, stop);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      throw Error(ErrorCode::kCorrupt, "package " + package.id.text() + ": " + member.name + " is lost");
    }
  }
  return members;
}

std::shared_ptr<const package::Package> open_package(const MemberBlobs& members,
                                                     const std::stop_token& stop) {
  std::map<std::string, std::shared_ptr<const MappedFile>> mappings;
  for (const auto& [name, blob] : members) mappings[name] = blob->mapping();
  return package::Package::open_members(mappings, stop);
}

std::string package_facts(const package::Metadata& metadata) {
  return canonical_json({{"model", metadata.model_digest},
                         {"target", metadata.target},
                         {"inputs", specs_to_json(specs_of(metadata.inputs))},
                         {"outputs", specs_to_json(specs_of(metadata.outputs))}});
}

PackageArchive::PackageArchive(storage::BlobStore& blobs, const storage::PackageRow& package)
    : members_(open_members(blobs, package)) {
  const auto size = [&](std::string_view name) {
    const auto member = members_.find(name);
    TM_CHECK(member != members_.end(), "a package without " + std::string(name));
    return static_cast<int64_t>(member->second->size());
  };
  pieces_ = package::archive_layout({size(package::kMetadataMember), size(package::kPlanMember),
                                     size(package::kCodeMember), size(package::kParamsMember)});
  for (const package::ArchivePiece& piece : pieces_) size_ += static_cast<uint64_t>(piece.size);
}

std::string_view PackageArchive::bytes_of(const package::ArchivePiece& piece) const {
  return piece.member.empty() ? std::string_view(piece.bytes) : members_.find(piece.member)->second->text();
}

size_t PackageArchive::read_at(uint64_t offset, std::span<std::byte> buffer) {
  size_t filled = 0;
  uint64_t start = 0;
  for (const package::ArchivePiece& piece : pieces_) {
    const auto size = static_cast<uint64_t>(piece.size);
    if (offset < start + size && filled < buffer.size()) {
      const std::string_view rest = bytes_of(piece).substr(offset - start);
      const size_t count = std::min(rest.size(), buffer.size() - filled);
      std::memcpy(buffer.data() + filled, rest.data(), count);
      filled += count;
      offset += count;
    }
    start += size;
  }
  return filled;
}

Digest PackageArchive::digest() const {
  Hasher hasher;
  for (const package::ArchivePiece& piece : pieces_) hasher.update(bytes_of(piece));
  return hasher.finish();
}

}  // namespace tensormill::server
