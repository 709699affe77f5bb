/// A package's archive put together from its member blobs while it is read: the bytes that `tensormill
/// compile` writes. Thread-safety: as http::Content; the blobs are verified and stay readable.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/body.h"
#include "runtime/package/archive_layout.h"
#include "runtime/package/package_reader.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/rows.h"

namespace tensormill::server {

/// Members with this prefix are texts of the compiler's stages ("code.relay"), not part of the archive.
inline constexpr std::string_view kCodePrefix = "code.";
/// Kept beside each package, for people: all that GET /v1/packages/{id}/code answers. ResNet-50's five texts
/// are 2 MB, 140 KB at rest.
inline constexpr std::array<const char*, 5> kCodeStages = {"relay", "te", "tir", "ll", "asm"};

/// The block behind the archive (package_signature.h), stored beside its members where somebody has signed
/// it.
inline constexpr std::string_view kSignatureName = "signature";
/// Whether a member of a package's row is one of the archive's.
inline bool is_archived(std::string_view name) {
  return name != kSignatureName && !name.starts_with(kCodePrefix);
}

using MemberBlobs = std::map<std::string, std::shared_ptr<const storage::Blob>, std::less<>>;

/// The blobs of the four members. Throws Error(kCorrupt) when one is damaged or absent; as the one below,
/// Error(kCancelled) when `stop` stops while they are hashed.
MemberBlobs open_members(storage::BlobStore& blobs, const storage::PackageRow& package,
                         const std::stop_token& stop = {});
/// The package behind these blobs. Throws Error(kInvalidPackage).
std::shared_ptr<const package::Package> open_package(const MemberBlobs& members,
                                                     const std::stop_token& stop = {});

/// What the catalog keeps of a package's metadata: canonical JSON.
std::string package_facts(const package::Metadata& metadata);

class PackageArchive final : public http::Content {
public:
  PackageArchive(storage::BlobStore& blobs, const storage::PackageRow& package);
  uint64_t size() const override { return size_; }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override;
  /// SHA-256 of the whole archive.
  Digest digest() const;

private:
  std::string_view bytes_of(const package::ArchivePiece& piece) const;

  MemberBlobs members_;
  std::vector<package::ArchivePiece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace tensormill::server
