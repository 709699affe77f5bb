// JPEG 2000 (ISO/IEC 15444-1) by OpenJPEG: a bare codestream, or one in the boxes of a JP2 file. OpenJPEG
// sees the codestream alone, whose first marker is checked here: it would make room for whatever the marker
// says.
#include <openjpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/image/image.h"
#include "runtime/image/reader.h"

namespace tensormill::image {

namespace {

constexpr uint64_t kStart = 0xff4fff51;  // the markers SOC and SIZ
constexpr uint64_t kHeaderBox = 0x6a703268, kColourBox = 0x636f6c72, kPaletteBox = 0x70636c72;
constexpr uint64_t kMappingBox = 0x636d6170, kCodestreamBox = 0x6a703263;
constexpr uint64_t kYccColours = 18;  // sYCC among the enumerated colour spaces
// OpenJPEG keeps some 10 KB for each.
constexpr uint64_t kMaxTiles = 16384;

/// Colours by number, of which components hold the numbers.
struct Palette {
  struct Channel {
    uint64_t component, column;
    bool is_direct;  ///< the component's own samples
  };
  uint64_t entries = 0, columns = 0;
  std::vector<uint8_t> levels;  ///< entries x columns, in 0 ... 255
  std::vector<Channel> channels;
};

struct Codestream {
  std::span<const std::byte> bytes;
  bool is_ycc = false;
  Palette palette;  ///< without channels where there is none
};

/// A box of numbers of up to 16 bits, the bits of each column in front.
void read_palette(const Reader& box, Palette& palette) {
  palette.entries = box.number(0, 2, true);
  palette.columns = box.number(2, 1);
  uint64_t at = 3 + palette.columns;
  for (uint64_t i = 0; i < palette.entries * palette.columns; ++i) {
    const uint64_t bits = box.number(3 + i % palette.columns, 1) + 1;
    if (bits > 16) box.not_implemented("palettes of signed numbers or of more than 16 bits");
    const int bytes = bits > 8 ? 2 : 1;
    const uint64_t largest = (uint64_t{1} << bits) - 1,
                   value = std::min(box.number(at, bytes, true), largest);
    palette.levels.push_back(static_cast<uint8_t>((value * 255 + largest / 2) / largest));
    at += static_cast<uint64_t>(bytes);
  }
}

/// Which component and which column of the palette each channel is.
void read_mapping(const Reader& box, Palette& palette) {
  for (uint64_t at = 0; at + 4 <= box.size(); at += 4)
    palette.channels.push_back({box.number(at, 2, true), box.number(at + 3, 1), box.number(at + 2, 1) == 0});
}

/// Of the file's boxes; those of the header follow one another as others do.
Codestream find_codestream(const Reader& reader) {
  if (reader.number(0, 4, true) == kStart) return {reader.range(0, reader.size()), false, {}};
  Codestream found;
  for (uint64_t at = 0;;) {
    uint64_t length = reader.number(at, 4, true), header = 8;
    const uint64_t type = reader.number(at + 4, 4, true);
    if (length == 1) {
      length = reader.number(at + 8, 8, true);
      header = 16;
    }
    if (length == 0) length = reader.size() - at;
    if (length < header) reader.refuse("a box is shorter than its head");
    const std::span<const std::byte> content = reader.range(at, length).subspan(header);
    if (type == kCodestreamBox) {
      found.bytes = content;
      return found;
    }
    if (type == kPaletteBox) read_palette(Reader(content, "JPEG 2000"), found.palette);
    if (type == kMappingBox) read_mapping(Reader(content, "JPEG 2000"), found.palette);
    if (type == kColourBox && reader.number(at + header, 1) == 1)
      found.is_ycc = reader.number(at + header + 3, 4, true) == kYccColours;
    at += type == kHeaderBox ? header : length;
  }
}

/// The marker SIZ: extents, tiles and components.
void check_start(const Reader& reader, int64_t max_pixels) {
  if (reader.number(0, 4, true) != kStart) reader.refuse("its codestream has no start");
  const auto field = [&](uint64_t index) { return reader.number(8 + 4 * index, 4, true); };
  const uint64_t right = field(0), bottom = field(1), left = field(2), top = field(3);
  const uint64_t tile_width = field(4), tile_height = field(5), tile_left = field(6), tile_top = field(7);
  if (right < left || bottom < top || tile_width == 0 || tile_height == 0 || tile_left > left ||
      tile_top > top)
    reader.refuse("its extents are broken");
  check_size(static_cast<int64_t>(right - left), static_cast<int64_t>(bottom - top), max_pixels);
  const uint64_t columns = (right - tile_left - 1) / tile_width + 1;
  const uint64_t rows = (bottom - tile_top - 1) / tile_height + 1;
  if (columns > kMaxTiles || rows > kMaxTiles || columns * rows > kMaxTiles)
    reader.not_implemented("more than " + std::to_string(kMaxTiles) + " tiles");
  const uint64_t components = reader.number(40, 2, true);
  if (components < 1 || components > 4) reader.not_implemented(std::to_string(components) + " components");
}

/// Bytes in memory, as OpenJPEG asks for them. It knows no exceptions.
struct Source {
  std::span<const std::byte> bytes;
  size_t at = 0;

  static OPJ_SIZE_T read(void* to, OPJ_SIZE_T count, void* self) noexcept {
    Source& source = *static_cast<Source*>(self);
    const size_t given = std::min(count, source.bytes.size() - source.at);
    if (given == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(to, source.bytes.data() + source.at, given);
    source.at += given;
    return given;
  }
  static OPJ_BOOL seek(OPJ_OFF_T place, void* self) noexcept {
    Source& source = *static_cast<Source*>(self);
    if (place < 0 || static_cast<size_t>(place) > source.bytes.size()) return OPJ_FALSE;
    source.at = static_cast<size_t>(place);
    return OPJ_TRUE;
  }
  static OPJ_OFF_T skip(OPJ_OFF_T count, void* self) noexcept {
    const auto place = static_cast<OPJ_OFF_T>(static_cast<Source*>(self)->at);
    return count <= 0 || seek(place + count, self) == OPJ_FALSE ? -1 : count;
  }
};

/// The first line that OpenJPEG complains with.
struct Complaint {
  std::array<char, 160> text{};

  static void take(const char* message, void* self) noexcept {
    auto& text = static_cast<Complaint*>(self)->text;
    if (text[0] == '\0')
      std::strncpy(text.data(), message, std::min(std::strcspn(message, "\n"), text.size() - 1));
  }
};

template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    kDestroy(object);
  }
};
using Picture = std::unique_ptr<opj_image_t, Destroy<&::opj_image_destroy>>;

Picture decompress(std::span<const std::byte> bytes) {
  const std::unique_ptr<opj_codec_t, Destroy<&::opj_destroy_codec>> codec(
      ::opj_create_decompress(OPJ_CODEC_J2K));
  const std::unique_ptr<opj_stream_t, Destroy<&::opj_stream_destroy>> stream(
      ::opj_stream_default_create(OPJ_TRUE));
  if (codec == nullptr || stream == nullptr)
    throw Error(ErrorCode::kMemoryBudget, "cannot set up the JPEG 2000 decoder");
  Complaint complaint;
  ::opj_set_error_handler(codec.get(), &Complaint::take, &complaint);
  Source source{bytes};
  ::opj_stream_set_user_data(stream.get(), &source, nullptr);
  ::opj_stream_set_user_data_length(stream.get(), bytes.size());
  ::opj_stream_set_read_function(stream.get(), &Source::read);
  ::opj_stream_set_seek_function(stream.get(), &Source::seek);
  ::opj_stream_set_skip_function(stream.get(), &Source::skip);
  opj_dparameters_t parameters;
  ::opj_set_default_decoder_parameters(&parameters);
  opj_image_t* image = nullptr;
  bool good = ::opj_setup_decoder(codec.get(), &parameters) == OPJ_TRUE &&
              ::opj_read_header(stream.get(), codec.get(), &image) == OPJ_TRUE;
  Picture picture(image);
  good = good && ::opj_decode(codec.get(), stream.get(), image) == OPJ_TRUE &&
         ::opj_end_decompress(codec.get(), stream.get()) == OPJ_TRUE;
  if (!good) {
    const bool is_silent = complaint.text[0] == '\0';
    Reader(bytes, "JPEG 2000").refuse(is_silent ? "its data are broken" : complaint.text.data());
  }
  return picture;
}

/// The largest sample of a component.
int64_t largest_of(const opj_image_comp_t& component) { return (int64_t{1} << component.prec) - 1; }

/// A component's sample at a pixel, in 0 ... largest.
int64_t sample(const opj_image_comp_t& component, uint32_t x, uint32_t y) {
  const uint32_t column = std::min(x / component.dx, component.w - 1);
  const uint32_t row = std::min(y / component.dy, component.h - 1);
  const int64_t value = component.data[static_cast<size_t>(row) * component.w + column];
  const int64_t largest = largest_of(component);
  const int64_t lifted = value + (component.sgnd != 0 ? (largest + 1) / 2 : 0);
  return std::clamp<int64_t>(lifted, 0, largest);
}

/// ITU-R BT.601 over all of 0 ... 255, as JFIF has it.
void ycc_to_rgb(uint8_t* pixel) {
  const double luma = pixel[0], blue = pixel[1] - 128.0, red = pixel[2] - 128.0;
  const double rgb[] = {luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red, luma + 1.772 * blue};
  for (size_t c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(std::lround(std::clamp(rgb[c], 0.0, 255.0)));
}

/// The channels of a picture with a palette; without one they are the components.
std::vector<Palette::Channel> channels_of(const Reader& reader, const Palette& palette, uint32_t components) {
  std::vector<Palette::Channel> channels = palette.channels;
  if (palette.entries == 0 && channels.empty()) {
    for (uint32_t c = 0; c < components; ++c) channels.push_back({c, 0, true});
  }
  const auto is_broken = [&](const Palette::Channel& channel) {
    return channel.component >= components ||
           (!channel.is_direct && (palette.entries == 0 || channel.column >= palette.columns));
  };
  if (channels.empty() || std::any_of(channels.begin(), channels.end(), is_broken))
    reader.refuse("its palette has other columns than it says");
  return channels;
}

/// A channel's level at a pixel, in 0 ... 255.
uint8_t level(const opj_image_t& picture, const Palette& palette, const Palette::Channel& channel, uint32_t x,
              uint32_t y) {
  const opj_image_comp_t& component = picture.comps[channel.component];
  const int64_t value = sample(component, x, y), largest = largest_of(component);
  if (channel.is_direct) return static_cast<uint8_t>((value * 255 + largest / 2) / largest);
  const uint64_t entry = std::min(static_cast<uint64_t>(value), palette.entries - 1);
  return palette.levels[entry * palette.columns + channel.column];
}

}  // namespace

Image decode_jpeg2000(std::span<const std::byte> file, int64_t max_pixels) {
  const Codestream found = find_codestream(Reader(file, "JPEG 2000"));
  const Reader reader(found.bytes, "JPEG 2000");
  check_start(reader, max_pixels);
  const Picture picture = decompress(found.bytes);
  const uint32_t width = picture->x1 - picture->x0, height = picture->y1 - picture->y0;
  const std::vector<Palette::Channel> all = channels_of(reader, found.palette, picture->numcomps);
  // A second or a fourth channel says how much of the pixel there is.
  Image image{width, height, all.size() < 3 ? 1 : 3, {}};
  const auto channels = static_cast<size_t>(image.channels);
  for (size_t c = 0; c < channels; ++c) {
    const opj_image_comp_t& component = picture->comps[all[c].component];
    if (component.data == nullptr || component.w == 0 || component.h == 0 || component.prec > 16)
      reader.refuse("component " + std::to_string(all[c].component) + " has no samples of up to 16 bits");
  }
  image.pixels.resize(static_cast<size_t>(width) * height * channels);
  uint8_t* pixel = image.pixels.data();
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x, pixel += channels) {
      for (size_t c = 0; c < channels; ++c) pixel[c] = level(*picture, found.palette, all[c], x, y);
      if (found.is_ycc && channels == 3) ycc_to_rgb(pixel);
    }
  }
  return image;
}

}  // namespace tensormill::image
