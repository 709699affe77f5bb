// What the headers of JPEG and PNG files say, read before anything is decoded.
#include <algorithm>
#include <string_view>

#include "runtime/image/image.h"
#include "runtime/image/reader.h"

namespace tensormill::image {

namespace {

/// Usual progressive files have ten scans.
constexpr int64_t kMaxScans = 16;

PictureHead png_head(std::span<const std::byte> file) {
  const Reader reader(file, "PNG");
  PictureHead head;
  head.width = static_cast<int64_t>(reader.number(16, 4, true));
  head.height = static_cast<int64_t>(reader.number(20, 4, true));
  // Bits of the type: palette, colour, alpha.
  const uint64_t type = reader.number(25, 1);
  head.channels = (type & 2) != 0 ? 3 : 1;
  return head;
}

/// A JPEG's segments up to its end.
class Segments {
public:
  explicit Segments(std::span<const std::byte> file) : file_(file), reader_(file, "JPEG") {}

  void read() {
    for (uint64_t at = 2; !ended_; at = next(at)) {
      const auto from = file_.begin() + static_cast<int64_t>(std::min<uint64_t>(at, file_.size()));
      at = static_cast<uint64_t>(std::find(from, file_.end(), std::byte{0xff}) - file_.begin());
      if (at + 4 > file_.size()) break;
    }
    if (frame_at_ == 0) reader_.refuse("there is no frame");
  }
  int64_t height() const { return static_cast<int64_t>(reader_.number(frame_at_ + 5, 2, true)); }
  int64_t width() const { return static_cast<int64_t>(reader_.number(frame_at_ + 7, 2, true)); }
  int64_t components() const { return static_cast<int64_t>(reader_.number(frame_at_ + 9, 1)); }
  int64_t scans() const { return scans_; }
  /// Whether coefficients of the whole picture are kept until the last scan.
  bool is_kept() const { return is_progressive_ || scans_ > 1; }

private:
  /// Where the marker after the 0xff at `at` is looked for. Between segments, and in the coded data of a
  /// scan, a byte above 0 follows where there is a marker.
  uint64_t next(uint64_t at) {
    const uint64_t code = reader_.number(at + 1, 1);
    if (code == 0 || code == 0xff) return at + 1;
    if (code == 0x01 || (code >= 0xd0 && code <= 0xd8)) return at + 2;
    if (code == 0xd9) {
      ended_ = true;
      return at;
    }
    const bool is_frame = code >= 0xc0 && code <= 0xcf && code != 0xc4 && code != 0xc8 && code != 0xcc;
    if (is_frame && frame_at_ == 0) {
      frame_at_ = at;
      is_progressive_ = code == 0xc2 || code == 0xca || code == 0xc6 || code == 0xce;
    }
    if (code == 0xda) ++scans_;
    return at + 2 + std::max<uint64_t>(reader_.number(at + 2, 2, true), 2);
  }

  const std::span<const std::byte> file_;
  const Reader reader_;
  uint64_t frame_at_ = 0;
  bool is_progressive_ = false;
  int64_t scans_ = 0;
  bool ended_ = false;
};

}  // namespace

PictureHead read_head(std::span<const std::byte> file, int64_t max_pixels) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 8));
  PictureHead head;
  int64_t kept = 0;
  if (start.starts_with("\xff\xd8\xff")) {
    Segments segments(file);
    segments.read();
    head.width = segments.width();
    head.height = segments.height();
    check_size(head.width, head.height, max_pixels);
    head.channels = segments.components() == 1 ? 1 : 3;
    if (head.width * head.height * segments.scans() > kMaxScans * max_pixels) {
      throw RefusedPicture(ErrorCode::kInvalidImage, "JPEG: " + std::to_string(segments.scans()) +
                                                         " scans of " + std::to_string(head.width) + "×" +
                                                         std::to_string(head.height) + " pixels, at most " +
                                                         std::to_string(kMaxScans * max_pixels) +
                                                         " pixels in all scans are allowed");
    }
    // Coefficients of 16 bits, in blocks whose edges pass the picture's.
    if (segments.is_kept()) kept = 2 * segments.components() * (head.width + 32) * (head.height + 32);
  } else if (start == std::string_view("\x89PNG\r\n\x1a\n", 8)) {
    head = png_head(file);
    check_size(head.width, head.height, max_pixels);
  } else {
    throw Error(ErrorCode::kUnsupportedMediaType, "the picture is neither JPEG nor PNG");
  }
  head.bytes = head.width * head.height * head.channels + kept;
  return head;
}

}  // namespace tensormill::image
