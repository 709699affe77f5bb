// POST /v1/packages: an archive that a trusted store signed becomes a package of this one.
#include "server/services/store/package_import.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/package/metadata.h"
#include "runtime/package/tar_reader.h"
#include "server/services/store/package_service.h"

namespace tensormill::server {

namespace {

constexpr size_t kPart = size_t{1} << 20;

/// Writes all bytes to `file`; what comes last is the signature, of the bytes before it.
class SignedStream {
public:
  explicit SignedStream(int file) : file_(file) {}

  void take(http::BodySource& bytes) {
    std::string part(kPart, '\0');
    for (size_t count = 1; count != 0;) {
      count = bytes.read(std::as_writable_bytes(std::span(part)));
      write_all(file_, std::string_view(part).substr(0, count), "package archive");
      last_ += std::string_view(part).substr(0, count);
      if (last_.size() <= kSignatureBytes) continue;
      const size_t done = last_.size() - kSignatureBytes;
      hasher_.update(std::string_view(last_).substr(0, done));
      size_ += done;
      last_.erase(0, done);
    }
    digest_ = hasher_.finish();
  }
  /// Of the archive without its signature.
  const Digest& digest() const { return digest_; }
  uint64_t size() const { return size_; }
  const std::string& block() const { return last_; }

private:
  int file_;
  Hasher hasher_;
  std::string last_;
  uint64_t size_ = 0;
  Digest digest_;
};

}  // namespace

storage::PackageRow store_archive(storage::BlobStore& blobs, std::span<const std::byte> archive) {
  storage::PackageRow row;
  for (const package::TarMember& member : package::read_tar(archive)) {
    const auto bytes = archive.subspan(member.offset, member.size);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    row.members.push_back({member.name, blobs.put(text), bytes.size()});
    if (member.name != package::kMetadataMember) continue;
    row.id = package::package_id(text);
    row.metadata = text;
  }
  // Reads all of it, and throws for what is absent or does not fit.
  const auto opened = open_package(open_members(blobs, row));
  const PackageArchive again(blobs, row);
  row.archive = again.digest();
  row.archive_bytes = again.size();
  row.facts = package_facts(opened->metadata());
  row.model = opened->metadata().model_digest;
  row.target = opened->metadata().target;
  return row;
}

storage::PackageRow store_signed_archive(storage::BlobStore& blobs, const TrustedKeys& trusted,
                                         StoreQuota& quota, http::BodySource& bytes,
                                         const std::string& folder) {
  quota.check(bytes.length().value_or(1));
  QuotaBody bounded(bytes, quota);
  const FileDescriptor file = blobs.env().scratch_file(folder);
  SignedStream stream(file.get());
  stream.take(bounded);
  trusted.check(stream.block(), stream.digest());
  const auto mapped = MappedFile::map(file.get(), "package archive");
  storage::PackageRow row = store_archive(blobs, mapped->bytes().first(stream.size()));
  if (row.archive != stream.digest()) {
    throw Error(ErrorCode::kInvalidPackage,
                "the archive is not laid out as this program lays out archives: export it again");
  }
  row.members.push_back({std::string(kSignatureName), blobs.put(stream.block()), stream.block().size()});
  return row;
}

bool requires_signatures(const config::Settings& settings, bool is_replica) {
  const std::string& required = settings.require_signature;
  if (!required.empty() && required != "true" && required != "false")
    throw Error(ErrorCode::kUsage, "packages.require_signature: " + required + " is neither true nor false");
  if (!required.empty()) return required == "true";
  if (is_replica && settings.signing_key.empty() && settings.trusted_keys.empty())
    throw Error(
        ErrorCode::kUsage,
        "replicas load signed packages alone: packages.signing_key names the key that signs what they "
        "compile (openssl genpkey -algorithm ed25519); or set packages.require_signature=false");
  return is_replica;
}

void check_stored_signature(storage::BlobStore& blobs, const TrustedKeys& trusted,
                            const storage::PackageRow& package) {
  const auto member = std::find_if(package.members.begin(), package.members.end(),
                                   [](const storage::MemberRow& one) { return one.name == kSignatureName; });
  if (member == package.members.end())
    throw Error(
        ErrorCode::kForeignCode,
        "package " + package.id.text() +
            " is not signed, which the setting packages.require_signature asks for: compile it again, "
            "with packages.signing_key");
  trusted.check(blobs.open(member->digest)->text(), PackageArchive(blobs, package).digest());
}

std::string PackageServiceImpl::add_archive(const std::string& path) {
  const storage::BlobHold hold(blobs_);
  const storage::PackageRow row = store_archive(blobs_, MappedFile::open(path)->bytes());
  catalog_.put_package(row);
  return row.id.text();
}

services::ImportedPackage PackageServiceImpl::import_package(http::BodySource& bytes,
                                                             const services::CallContext& context) {
  ChargedBody charged(bytes, callers_, context.submitter);
  CollectOnFailure cleanup(collector_);
  const storage::BlobHold hold(blobs_);
  storage::PackageRow row = store_signed_archive(blobs_, trusted_, quota_, charged, options_.folder);
  row.owner = context.submitter;
  const bool created = catalog_.put_package(row);
  cleanup.succeeded();
  return {get(row.id.text()), created};
}

}  // namespace tensormill::server
