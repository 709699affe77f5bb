/// Pictures to tensors: decoding, resize, centre crop, normalize; and scores to top-k.
/// The input is untrusted: the size is read from the header and checked before anything is allocated.
/// Errors: Error(kInvalidImage) for what cannot be decoded or is too large, Error(kUnsupportedMediaType) for
/// other formats, Error(kInvalidTensor) when the model's input is not a picture.
/// Thread-safety: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/quantization.h"
#include "runtime/base/tensor.h"
#include "runtime/base/value_notes.h"

namespace tensormill::image {

inline constexpr int64_t kDefaultMaxPixels = 50'000'000;

/// Interleaved 8-bit samples, rows top to bottom without padding: 1 channel (gray) or 3 (red, green, blue).
struct Image {
  int64_t width = 0;
  int64_t height = 0;
  int channels = 3;
  std::vector<uint8_t> pixels;
};

/// A picture that is larger than allowed, or of a form that is not implemented: its file may be good.
class RefusedPicture : public Error {
public:
  using Error::Error;
};

/// JPEG (gray, YCbCr, RGB; CMYK is refused) or PNG (all types; alpha is laid over white;
/// 16 bits are cut to 8; palettes are expanded), recognised by the first bytes.
Image decode(std::span<const std::byte> file, int64_t max_pixels = kDefaultMaxPixels);
/// What a file's header says of the picture, and what decode() takes for it.
struct PictureHead {
  int64_t width = 0;
  int64_t height = 0;
  int channels = 3;   ///< of the result
  int64_t bytes = 0;  ///< the most that decode() allocates, with the result
};
/// Throws as decode(), also for a JPEG whose scans together have more pixels than any picture of the allowed
/// size would have in a usual file: they would keep the decoder busy.
PictureHead read_head(std::span<const std::byte> file, int64_t max_pixels = kDefaultMaxPixels);
Image decode_jpeg(std::span<const std::byte> file, int64_t max_pixels);
Image decode_png(std::span<const std::byte> file, int64_t max_pixels);
/// One picture, no animation; how much of a pixel there is is not looked at.
Image decode_webp(std::span<const std::byte> file, int64_t max_pixels);
/// A codestream or a JP2 file of up to 4 components of up to 16 bits (gray, RGB, sYCC, palettes). Takes 8
/// bytes a sample beside the result.
Image decode_jpeg2000(std::span<const std::byte> file, int64_t max_pixels);
/// The first picture of a file, as its rows are stored: gray, colour, a palette, CMYK, YCbCr, samples of 1 to
/// 16 bits, in strips or tiles, as they are or by PackBits, LZW, Deflate, the facsimile's codes or JPEG. How
/// much of a pixel there is is not looked at. Takes 4 bytes a pixel and the samples of a strip beside the
/// result.
Image decode_tiff(std::span<const std::byte> file, int64_t max_pixels);
/// JPEG, PNG, WebP, JPEG 2000, BMP (8 bits with a palette, 24 and 32), Netpbm's formats (P1 to P6) and TIFF.
/// For the import process and for models that decode pictures: the decoders read strangers' bytes.
Image decode_any(std::span<const std::byte> file, int64_t max_pixels = kDefaultMaxPixels);
/// Whether it is none of the last three.
bool is_common(std::span<const std::byte> file);
enum class PictureFiles { kAny, kCommon };
/// What the operator that decodes pictures makes of a file: decode_any's picture of 1 or 3 channels, in the
/// order of the file's colours or, `reversed`, the last one first; one of 0 by 0 where the file is no picture
/// that could be decoded. Throws RefusedPicture, also for WebP, JPEG 2000 and TIFF where `files` are common.
Image decode_or_empty(std::span<const std::byte> file, int channels, bool reversed,
                      PictureFiles files = PictureFiles::kAny);
/// RefusedPicture for a size that a picture may not have, Error(kInvalidImage) for one that none has.
void check_size(int64_t width, int64_t height, int64_t max_pixels);

/// Gray to colour by repetition, colour to gray with ITU-R 601 weights as Pillow's convert("L") does.
Image convert_channels(Image image, int channels);
/// Bilinear; when shrinking the filter widens with the scale (antialias), as Pillow's resize does: within one
/// level of it. Separable, in 22-bit fixed point.
Image resize(const Image& image, int64_t width, int64_t height);
/// The middle of the image, an odd rest split as torchvision does (half to even); Error(kInvalidImage) when
/// it is smaller.
Image center_crop(const Image& image, int64_t width, int64_t height);

/// A deployment's "preprocess" object. Sample s of channel c becomes (s × scale − mean[c]) / std[c]. An empty
/// mean is zeros, an empty std ones; one value serves every channel.
struct Preprocess {
  int64_t resize = 0;      ///< of the shorter side; 0: none
  int64_t crop_width = 0;  ///< of the middle; 0: none. What is left is resized to the model's input
  int64_t crop_height = 0;
  std::vector<double> mean;
  std::vector<double> std;
  double scale = 1.0 / 255.0;
  bool nhwc = false;  ///< layout of the model's input
  bool bgr = false;   ///< colour order
};

/// What the model's file says of the samples of its input, unless the options say any of it themselves.
void set_noted(Preprocess& options, bool says_scale, const ValueNotes& notes);
/// Whether an input's shape is that of pictures with their channels last, and of no others.
bool looks_nhwc(const Shape& shape);
/// The most that to_tensor() allocates for such a picture, with the result.
int64_t tensor_bytes(const PictureHead& head, const Preprocess& options, const Shape& shape);
/// The tensor [1,C,H,W] or [1,H,W,C] of `dtype` (f32, or u8 without scale, mean and std) for a model's input
/// of `shape` with C of 1 or 3. With a quantization `dtype` is of integers, which stand for the numbers that
/// a model of floats would have.
Tensor to_tensor(Image image, const Preprocess& options, DType dtype, const Shape& shape,
                 const std::optional<Quantization>& quantization = {});

struct Score {
  int64_t index = 0;
  double probability = 0.0;
};

/// Softmax in double, with the maximum subtracted; NaN stays NaN.
std::vector<double> softmax(const TensorView& scores);
/// The `k` largest, ties and NaN (last) by index. `apply_softmax` for logits, else the scores are
/// probabilities.
std::vector<Score> top_k(const TensorView& scores, int64_t k, bool apply_softmax);

}  // namespace tensormill::image
