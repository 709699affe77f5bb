#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/image/image.h"

namespace tensormill::image {

namespace {

constexpr int kFixedBits = 22;

/// For each target position: the first source position and its fixed-point weights, which sum to one.
struct Taps {
  int64_t first;
  std::vector<int32_t> weights;
};

/// The triangle filter, widened by the scale when shrinking.
std::vector<Taps> make_taps(int64_t source, int64_t target) {
  const double scale = static_cast<double>(source) / static_cast<double>(target);
  const double support = std::max(scale, 1.0);
  std::vector<Taps> result;
  for (int64_t i = 0; i < target; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(std::floor(center - support + 0.5)), 0);
    const int64_t last = std::min<int64_t>(static_cast<int64_t>(std::floor(center + support + 0.5)), source);
    std::vector<double> weights;
    double sum = 0.0;
    for (int64_t k = first; k < last; ++k) {
      const double distance = std::abs((static_cast<double>(k) - center + 0.5) / support);
      weights.push_back(distance < 1.0 ? 1.0 - distance : 0.0);
      sum += weights.back();
    }
    Taps taps{first, {}};
    for (double weight : weights) {
      taps.weights.push_back(static_cast<int32_t>(std::floor(weight / sum * (1 << kFixedBits) + 0.5)));
    }
    result.push_back(std::move(taps));
  }
  return result;
}

uint8_t clip8(int64_t fixed) {
  return static_cast<uint8_t>(std::clamp<int64_t>(fixed >> kFixedBits, 0, 255));
}

/// One axis: `lines` independent runs of source samples that are `stride` apart.
void resample(const uint8_t* source, uint8_t* target, const std::vector<Taps>& taps, int64_t lines,
              int64_t source_line, int64_t target_line, int64_t stride, int64_t inner) {
  for (int64_t line = 0; line < lines; ++line) {
    const uint8_t* from = source + line * source_line;
    uint8_t* to = target + line * target_line;
    for (size_t i = 0; i < taps.size(); ++i) {
      for (int64_t c = 0; c < inner; ++c) {
        int64_t sum = int64_t{1} << (kFixedBits - 1);
        const uint8_t* sample = from + taps[i].first * stride + c;
        for (size_t k = 0; k < taps[i].weights.size(); ++k) {
          sum += int64_t{taps[i].weights[k]} * sample[static_cast<int64_t>(k) * stride];
        }
        to[static_cast<int64_t>(i) * stride + c] = clip8(sum);
      }
    }
  }
}

}  // namespace

Image resize(const Image& image, int64_t width, int64_t height) {
  TM_CHECK(width > 0 && height > 0, "resize to " + std::to_string(width) + "×" + std::to_string(height));
  const int64_t channels = image.channels;
  Image wide{width, image.height, image.channels, {}};
  wide.pixels.resize(static_cast<size_t>(width * image.height * channels));
  resample(image.pixels.data(), wide.pixels.data(), make_taps(image.width, width), image.height,
           image.width * channels, width * channels, channels, channels);
  Image result{width, height, image.channels, {}};
  result.pixels.resize(static_cast<size_t>(width * height * channels));
  const int64_t row = width * channels;
  resample(wide.pixels.data(), result.pixels.data(), make_taps(image.height, height), 1, 0, 0, row, row);
  return result;
}

Image center_crop(const Image& image, int64_t width, int64_t height) {
  if (width > image.width || height > image.height) {
    throw Error(ErrorCode::kInvalidImage, "crop of " + std::to_string(width) + "×" + std::to_string(height) +
                                              " is larger than the picture, " + std::to_string(image.width) +
                                              "×" + std::to_string(image.height));
  }
  const auto half = [](int64_t rest) { return rest / 2 + (rest % 4 == 3 ? 1 : 0); };
  const int64_t left = half(image.width - width);
  const int64_t top = half(image.height - height);
  Image result{width, height, image.channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    const auto begin = image.pixels.begin() + ((top + y) * image.width + left) * image.channels;
    result.pixels.insert(result.pixels.end(), begin, begin + width * image.channels);
  }
  return result;
}

Image convert_channels(Image image, int channels) {
  if (image.channels == channels) return image;
  TM_CHECK(channels == 1 || channels == 3, std::to_string(channels) + " channels");
  Image result{image.width, image.height, channels, {}};
  const size_t count = static_cast<size_t>(image.width * image.height);
  result.pixels.reserve(count * static_cast<size_t>(channels));
  for (size_t i = 0; i < count; ++i) {
    if (channels == 3) {
      result.pixels.insert(result.pixels.end(), 3, image.pixels[i]);
    } else {
      const uint8_t* rgb = &image.pixels[i * 3];
      const uint32_t luma = rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u;
      result.pixels.push_back(static_cast<uint8_t>(luma >> 16));
    }
  }
  return result;
}

}  // namespace tensormill::image
