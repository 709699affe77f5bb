#include "api/http/coding.h"

#include <zlib.h>
#include <zstd.h>

#include <array>
#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"identity", "gzip", "deflate", "zstd"};
/// Best first.
constexpr std::array<Coding, 3> kOffered = {Coding::kZstd, Coding::kGzip, Coding::kDeflate};
constexpr int kMaxZstdWindowLog = 23;
constexpr int kGzipWindowBits = 15 + 16;
constexpr int kZlibWindowBits = 15;
constexpr size_t kWorthEncoding = 512;
/// What a body may unfold to: any that is small, and so many times its coded size. Weights do not shrink so.
constexpr uint64_t kUnfoldedAlways = uint64_t{256} << 20;
constexpr uint64_t kUnfoldedTimes = 256;

[[noreturn]] void broken(Coding coding, const std::string& why) {
  throw Error(ErrorCode::kInvalidRequest,
              "the body is no " + std::string(coding_name(coding)) + " data: " + why);
}

/// One step of a decoder.
class Decoder {
public:
  virtual ~Decoder() = default;
  /// Takes from the front of `in` and fills the front of `out`; returns the number of bytes made.
  virtual size_t step(std::span<const std::byte>& in, std::span<std::byte> out) = 0;
  /// Whether the coded data may end here.
  virtual bool is_complete() const = 0;
};

class Inflater final : public Decoder {
public:
  explicit Inflater(Coding coding) : coding_(coding) {
    // Each coding is its own format alone: zlib's detection would take either under both names.
    const int bits = coding == Coding::kGzip ? kGzipWindowBits : kZlibWindowBits;
    TM_CHECK(inflateInit2(&stream_, bits) == Z_OK, "zlib has no memory");
  }
  ~Inflater() override { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  size_t step(std::span<const std::byte>& in, std::span<std::byte> out) override {
    if (complete_ && !in.empty()) {
      // A gzip file may have several members.
      if (coding_ != Coding::kGzip) broken(coding_, "bytes follow its end");
      inflateReset(&stream_);
      complete_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int code = inflate(&stream_, Z_NO_FLUSH);
    in = in.subspan(in.size() - stream_.avail_in);
    if (code == Z_STREAM_END) complete_ = true;
    // Z_BUF_ERROR: nothing could be done without more input.
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      broken(coding_, stream_.msg == nullptr ? "error " + std::to_string(code) : stream_.msg);
    }
    return out.size() - stream_.avail_out;
  }
  bool is_complete() const override { return complete_; }

private:
  Coding coding_;
  z_stream stream_{};
  bool complete_ = false;
};

class ZstdDecoder final : public Decoder {
public:
  ZstdDecoder() : context_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    TM_CHECK(context_ != nullptr, "zstd has no context");
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxZstdWindowLog);
  }

  size_t step(std::span<const std::byte>& in, std::span<std::byte> out) override {
    // A frame that has ended is flushed; without bytes of a next one there is nothing to do.
    if (complete_ && in.empty()) return 0;
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const size_t left = ZSTD_decompressStream(context_.get(), &output, &input);
    if (ZSTD_isError(left) != 0) broken(Coding::kZstd, ZSTD_getErrorName(left));
    complete_ = left == 0;
    in = in.subspan(input.pos);
    return output.pos;
  }
  bool is_complete() const override { return complete_; }

private:
  std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context_;
  bool complete_ = false;
};

class DecodedBody final : public BodySource {
public:
  DecodedBody(std::shared_ptr<BodySource> coded, Coding coding) : coded_(std::move(coded)), coding_(coding) {
    if (coding == Coding::kZstd) {
      decoder_ = std::make_unique<ZstdDecoder>();
    } else {
      decoder_ = std::make_unique<Inflater>(coding);
    }
  }

  size_t read(std::span<std::byte> buffer) override {
    while (!buffer.empty()) {
      // What the decoder holds back comes out before more is read.
      const size_t made = decoder_->step(left_, buffer);
      if (made > 0) {
        count_made(made);
        return made;
      }
      if (!left_.empty()) continue;
      const size_t count = coded_->read(coded_bytes_);
      if (count == 0) {
        if (!decoder_->is_complete()) broken(coding_, "it is cut off");
        return 0;
      }
      left_ = std::span(coded_bytes_).first(count);
      came_ += count;
    }
    return 0;
  }
  std::optional<uint64_t> length() const override { return std::nullopt; }

private:
  void count_made(size_t made) {
    made_ += made;
    if (made_ <= kUnfoldedAlways || made_ / kUnfoldedTimes <= came_) return;
    throw Error(ErrorCode::kTooLarge, "the body unfolds to more than " + std::to_string(kUnfoldedTimes) +
                                          " times its " + std::to_string(came_) + " bytes of " +
                                          std::string(coding_name(coding_)));
  }

  std::shared_ptr<BodySource> coded_;
  Coding coding_;
  uint64_t came_ = 0;
  uint64_t made_ = 0;
  std::unique_ptr<Decoder> decoder_;
  std::array<std::byte, 16384> coded_bytes_;
  std::span<const std::byte> left_;
};

std::string deflate_bytes(std::string_view bytes, int window_bits) {
  z_stream stream{};
  TM_CHECK(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK,
           "zlib has no memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, &deflateEnd);
  std::string coded(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(coded.data());
  stream.avail_out = static_cast<uInt>(coded.size());
  TM_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate did not end");
  coded.resize(coded.size() - stream.avail_out);
  return coded;
}

std::string zstd_bytes(std::string_view bytes) {
  std::string coded(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(coded.data(), coded.size(), bytes.data(), bytes.size(), 1);
  TM_CHECK(ZSTD_isError(size) == 0, "zstd did not compress");
  coded.resize(size);
  return coded;
}

/// The weight of a member of Accept-Encoding: "gzip;q=0.5".
double weight_of(std::string_view member) {
  const size_t q = member.find("q=");
  double weight = 1;
  if (q != std::string_view::npos) {
    std::from_chars(member.data() + q + 2, member.data() + member.size(), weight);
  }
  return weight;
}

bool is_worth_encoding(const Response& response) {
  const auto* bytes = std::get_if<std::string>(&response.body);
  // zlib counts in 32 bits.
  if (bytes == nullptr || bytes->size() < kWorthEncoding || bytes->size() > UINT32_MAX) return false;
  if (response.headers.has("ETag") || response.headers.has("Content-Encoding")) return false;
  const std::string type(response.headers.get("Content-Type").value_or(""));
  return type.starts_with("text/") || type.starts_with("application/json") ||
         type.starts_with("application/problem+json") ||
         response.headers.has("Inference-Header-Content-Length");
}

}  // namespace

std::string_view coding_name(Coding coding) { return kNames[static_cast<size_t>(coding)]; }

Coding content_coding(const Headers& headers) {
  const auto fields = headers.get_all("Content-Encoding");
  if (fields.empty()) return Coding::kIdentity;
  for (size_t i = 0; i < kNames.size() && fields.size() == 1; ++i) {
    if (equals_ignoring_case(trim(fields.front()), kNames[i])) return static_cast<Coding>(i);
  }
  throw Error(ErrorCode::kUnsupportedMediaType, "content encoding \"" + std::string(fields.front()) +
                                                    "\" is not accepted: one of gzip, deflate, zstd is");
}

Coding accepted_coding(const Headers& headers) {
  Coding best = Coding::kIdentity;
  double best_weight = 0;
  for (const Coding offered : kOffered) {
    double weight = -1;
    double any = -1;
    for (const std::string_view field : headers.get_all("Accept-Encoding")) {
      for (const std::string_view member : split_list(field)) {
        const std::string_view name = trim(member.substr(0, member.find(';')));
        if (equals_ignoring_case(name, coding_name(offered))) weight = weight_of(member);
        if (name == "*") any = weight_of(member);
      }
    }
    if (weight < 0) weight = any;
    if (weight <= best_weight) continue;
    best = offered;
    best_weight = weight;
  }
  return best;
}

std::shared_ptr<BodySource> decoded_body(std::shared_ptr<BodySource> coded, Coding coding) {
  if (coding == Coding::kIdentity || coded->length() == uint64_t{0}) return coded;
  return std::make_shared<DecodedBody>(std::move(coded), coding);
}

std::string encode(std::string_view bytes, Coding coding) {
  switch (coding) {
    case Coding::kIdentity:
      return std::string(bytes);
    case Coding::kGzip:
      return deflate_bytes(bytes, kGzipWindowBits);
    case Coding::kDeflate:
      return deflate_bytes(bytes, MAX_WBITS);
    case Coding::kZstd:
      return zstd_bytes(bytes);
  }
  return std::string(bytes);
}

void encode_response(const Headers& request, Response& response) {
  if (!is_worth_encoding(response)) return;
  const std::string_view vary = response.headers.get("Vary").value_or("");
  response.headers.set("Vary", vary.empty() ? "Accept-Encoding" : std::string(vary) + ", Accept-Encoding");
  const Coding coding = accepted_coding(request);
  if (coding == Coding::kIdentity) return;
  std::string& bytes = std::get<std::string>(response.body);
  bytes = encode(bytes, coding);
  response.headers.set("Content-Encoding", coding_name(coding));
}

}  // namespace tensormill::http
