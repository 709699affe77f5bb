/// What a blob is: immutable bytes named by the SHA-256 of their (uncompressed) content.
/// Thread-safety: values; a Blob is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "storage/env/env.h"

namespace tensormill::storage {

enum class BlobForm {
  kPlain,       ///< stored as it is: code and weights, which are mapped
  kCompressed,  ///< zstd at rest: models, logs, dumps, records
};

struct BlobInfo {
  Digest digest;
  BlobForm form = BlobForm::kPlain;
  uint64_t stored_bytes = 0;
};

/// Sums over all blobs.
struct BlobUsage {
  uint64_t blobs = 0;
  uint64_t compressed = 0;  ///< of these, in the compressed form
  uint64_t stored_bytes = 0;
};

struct BlobOptions {
  BlobForm form = BlobForm::kPlain;
  /// commit throws Error(kDigestMismatch) when the bytes have another digest.
  std::optional<Digest> expected = std::nullopt;
  /// write throws Error(kTooLarge) past this many bytes; 0: no limit.
  uint64_t max_bytes = 0;
  /// Not held to bound_by(): small, and what tells why something larger was refused.
  bool always = false;
};

/// Verified bytes of one blob; they stay readable when the blob is removed.
class Blob {
public:
  Blob(Digest digest, FileDescriptor fd, std::shared_ptr<const MappedFile> mapping)
      : digest_(digest), fd_(std::move(fd)), mapping_(std::move(mapping)) {}
  const Digest& digest() const { return digest_; }
  uint64_t size() const { return mapping_->bytes().size(); }
  std::span<const std::byte> bytes() const { return mapping_->bytes(); }
  std::string_view text() const { return mapping_->text(); }
  /// Read-only descriptor of the uncompressed bytes, owned by the blob (dup it to keep it).
  int fd() const { return fd_.get(); }
  std::shared_ptr<const MappedFile> mapping() const { return mapping_; }

private:
  Digest digest_;
  FileDescriptor fd_;
  std::shared_ptr<const MappedFile> mapping_;
};

/// "<hex>" or, in the compressed form, "<hex>.zst": the name of a blob's file or object.
std::string blob_name(const Digest& digest, BlobForm form);
/// The digest and form of such a name; nothing where it is none.
std::optional<std::pair<Digest, BlobForm>> parse_blob_name(std::string_view name);
/// "ab/<name>", where ab is the first byte of the digest.
std::string blob_path(const Digest& digest, BlobForm form);

/// Maps the file at `path`, unpacked to a nameless file in `scratch` where it is compressed. With `check`,
/// throws Error(kCorrupt) where the bytes have another digest; Error(kCancelled) when `stop`
/// stops meanwhile; Error(kNotFound) where there is no such file.
std::shared_ptr<const Blob> load_blob(Env& env, const std::string& path, const std::string& scratch,
                                      const Digest& digest, BlobForm form, bool check,
                                      const std::stop_token& stop = {});

}  // namespace tensormill::storage
