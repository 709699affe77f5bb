#include "server/detect/picture.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tensormill::detect {

namespace {

/// The gray that detectors are trained with.
constexpr uint8_t kBars = 114;

constexpr std::array<std::array<uint8_t, 3>, 8> kColours = {{{230, 60, 60},
                                                             {60, 160, 240},
                                                             {70, 190, 80},
                                                             {240, 170, 40},
                                                             {170, 90, 220},
                                                             {40, 200, 190},
                                                             {240, 110, 180},
                                                             {150, 150, 60}}};

/// A rectangle of one colour, as far as it lies in the picture.
void fill(image::Image& picture, int64_t left, int64_t top, int64_t right, int64_t bottom,
          const std::array<uint8_t, 3>& colour) {
  for (int64_t y = std::max<int64_t>(0, top); y < std::min(bottom, picture.height); ++y) {
    for (int64_t x = std::max<int64_t>(0, left); x < std::min(right, picture.width); ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        picture.pixels[static_cast<size_t>((y * picture.width + x) * 3 + c)] = colour[static_cast<size_t>(c)];
      }
    }
  }
}

}  // namespace

Fitted fit_into(const image::Image& picture, int64_t width, int64_t height, Fit fit) {
  Fitted fitted;
  fitted.scale_x = static_cast<double>(width) / static_cast<double>(picture.width);
  fitted.scale_y = static_cast<double>(height) / static_cast<double>(picture.height);
  if (fit == Fit::kStretch) {
    fitted.image = image::resize(picture, width, height);
    return fitted;
  }
  const double scale = std::min(fitted.scale_x, fitted.scale_y);
  const auto side = [&](int64_t from, int64_t most) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(from) * scale), 1, most);
  };
  const int64_t inner_width = side(picture.width, width), inner_height = side(picture.height, height);
  const image::Image inner = image::resize(picture, inner_width, inner_height);
  const int64_t left = (width - inner_width) / 2, top = (height - inner_height) / 2;
  fitted.image = {width, height, inner.channels,
                  std::vector<uint8_t>(static_cast<size_t>(width * height * inner.channels), kBars)};
  const int64_t row = inner_width * inner.channels;
  for (int64_t y = 0; y < inner_height; ++y) {
    std::copy_n(inner.pixels.begin() + y * row, row,
                fitted.image.pixels.begin() + ((top + y) * width + left) * inner.channels);
  }
  fitted.scale_x = static_cast<double>(inner_width) / static_cast<double>(picture.width);
  fitted.scale_y = static_cast<double>(inner_height) / static_cast<double>(picture.height);
  fitted.left = static_cast<double>(left);
  fitted.top = static_cast<double>(top);
  return fitted;
}

std::vector<Box> to_picture(const std::vector<Box>& boxes, const Fitted& fitted, int64_t width,
                            int64_t height) {
  std::vector<Box> moved;
  for (Box box : boxes) {
    const auto x = [&](double value) {
      return std::clamp((value - fitted.left) / fitted.scale_x, 0.0, static_cast<double>(width));
    };
    const auto y = [&](double value) {
      return std::clamp((value - fitted.top) / fitted.scale_y, 0.0, static_cast<double>(height));
    };
    box.left = x(box.left);
    box.right = x(box.right);
    box.top = y(box.top);
    box.bottom = y(box.bottom);
    if (box.right > box.left && box.bottom > box.top) moved.push_back(box);
  }
  return moved;
}

void draw(const std::vector<Box>& boxes, image::Image& picture) {
  picture = image::convert_channels(std::move(picture), 3);
  const int64_t line = std::max<int64_t>(1, std::max(picture.width, picture.height) / 300);
  // The best last, so that it lies above the others.
  for (auto box = boxes.rbegin(); box != boxes.rend(); ++box) {
    const auto& colour = kColours[static_cast<size_t>(box->kind) % kColours.size()];
    const auto left = static_cast<int64_t>(box->left), top = static_cast<int64_t>(box->top);
    const auto right = std::max(left + 1, static_cast<int64_t>(std::ceil(box->right)));
    const auto bottom = std::max(top + 1, static_cast<int64_t>(std::ceil(box->bottom)));
    fill(picture, left, top, right, top + line, colour);
    fill(picture, left, bottom - line, right, bottom, colour);
    fill(picture, left, top, left + line, bottom, colour);
    fill(picture, right - line, top, right, bottom, colour);
  }
}

}  // namespace tensormill::detect
