#include <zstd.h>

#include <utility>

#include "runtime/base/error.h"
#include "storage/blob/blob_commit.h"
#include "storage/blob/blob_store.h"

namespace tensormill::storage {
namespace {

constexpr int kCompressionLevel = 3;

}  // namespace

struct BlobWriter::Compressor {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), &ZSTD_freeCCtx};
  std::string buffer = std::string(ZSTD_CStreamOutSize(), '\0');
};

BlobWriter::BlobWriter(BlobStore& store, BlobOptions options) : store_(store), options_(options) {
  if (options_.form == BlobForm::kCompressed) {
    compressor_ = std::make_unique<Compressor>();
    ZSTD_CCtx* context = compressor_->context.get();
    TM_CHECK(context != nullptr, "zstd has no context");
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kCompressionLevel);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  }
}

BlobWriter::~BlobWriter() = default;

void BlobWriter::discard() {
  if (std::exchange(is_spent_, true)) return;
  store_.writing_bytes_ -= stored_;
  drop();
}

void BlobWriter::put_stored(std::string_view bytes) {
  if (!options_.always) store_.ask_room(bytes.size());
  append(bytes);
  stored_ += bytes.size();
  store_.writing_bytes_ += bytes.size();
}

void BlobWriter::compress(std::string_view bytes, bool last) {
  ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
  size_t left = 1;
  while (last ? left != 0 : input.pos < input.size) {
    ZSTD_outBuffer output{compressor_->buffer.data(), compressor_->buffer.size(), 0};
    left = ZSTD_compressStream2(compressor_->context.get(), &output, &input,
                                last ? ZSTD_e_end : ZSTD_e_continue);
    TM_CHECK(ZSTD_isError(left) == 0, std::string("zstd: ") + ZSTD_getErrorName(left));
    if (output.pos != 0) put_stored(std::string_view(compressor_->buffer.data(), output.pos));
  }
}

void BlobWriter::write(std::string_view bytes) {
  TM_CHECK(!is_spent_, "the blob writer is spent");
  if (options_.max_bytes != 0 && size_ + bytes.size() > options_.max_bytes) {
    throw Error(ErrorCode::kTooLarge, "more than " + std::to_string(options_.max_bytes) + " bytes");
  }
  hasher_.update(bytes);
  size_ += bytes.size();
  if (compressor_) {
    compress(bytes, false);
  } else if (!bytes.empty()) {
    put_stored(bytes);
  }
}

Digest BlobWriter::commit() {
  TM_CHECK(!is_spent_, "the blob writer is spent");
  const Digest digest = hasher_.finish();
  const BlobStore::Commit commit(store_, digest);
  try {
    if (options_.expected && *options_.expected != digest) {
      throw Error(ErrorCode::kDigestMismatch,
                  "the bytes have digest " + digest.text() + ", expected " + options_.expected->text());
    }
    if (store_.already_stored(digest, options_.form)) {
      discard();
      return digest;
    }
    if (compressor_) compress({}, true);
    publish({digest, options_.form, stored_});
  } catch (const std::exception&) {
    discard();
    throw;
  }
  is_spent_ = true;
  store_.writing_bytes_ -= stored_;
  return digest;
}

}  // namespace tensormill::storage
