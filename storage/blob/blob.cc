#include "storage/blob/blob.h"

#include "runtime/base/error.h"
#include "runtime/base/stoppable_digest.h"
#include "storage/blob/zstd_stream.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kCompressedSuffix = ".zst";

}  // namespace

std::string blob_name(const Digest& digest, BlobForm form) {
  std::string name = digest.hex();
  if (form == BlobForm::kCompressed) name += kCompressedSuffix;
  return name;
}

std::optional<std::pair<Digest, BlobForm>> parse_blob_name(std::string_view name) {
  const bool compressed = name.ends_with(kCompressedSuffix);
  if (compressed) name.remove_suffix(kCompressedSuffix.size());
  const std::optional<Digest> digest = Digest::parse("sha256:" + std::string(name));
  if (!digest) return std::nullopt;
  return std::pair(*digest, compressed ? BlobForm::kCompressed : BlobForm::kPlain);
}

std::string blob_path(const Digest& digest, BlobForm form) {
  const std::string name = blob_name(digest, form);
  return name.substr(0, 2) + "/" + name;
}

std::shared_ptr<const Blob> load_blob(Env& env, const std::string& path, const std::string& scratch,
                                      const Digest& digest, BlobForm form, bool check,
                                      const std::stop_token& stop) {
  FileDescriptor fd = env.open_descriptor(path);
  std::shared_ptr<const MappedFile> mapping = MappedFile::map(fd.get(), path);
  if (form == BlobForm::kCompressed) {
    fd = env.scratch_file(scratch);
    decompress(mapping->text(), fd.get(), path);
    mapping = MappedFile::map(fd.get(), path);
  }
  if (check) {
    const Digest actual = digest_unless_stopped(mapping->bytes(), stop);
    if (actual != digest) {
      throw Error(ErrorCode::kCorrupt, "blob " + digest.text() + " has bytes of digest " + actual.text());
    }
  }
  return std::make_shared<const Blob>(digest, std::move(fd), std::move(mapping));
}

}  // namespace tensormill::storage
