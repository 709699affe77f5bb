/// Pictures for a detector, and boxes drawn upon them.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/image/image.h"
#include "server/detect/boxes.h"

namespace tensormill::detect {

enum class Fit {
  kLetterbox,  ///< whole, in the middle, with gray bars
  kStretch,
};

/// How a place in the model's input is one in the picture.
struct Fitted {
  image::Image image;
  double scale_x = 1, scale_y = 1;  ///< input pixels a pixel of the picture
  double left = 0, top = 0;         ///< of the picture, in the input
};
/// `picture` in an input of this size.
Fitted fit_into(const image::Image& picture, int64_t width, int64_t height, Fit fit);
/// Boxes of the input as boxes of the picture, cut at its edges; what is outside it is left out.
std::vector<Box> to_picture(const std::vector<Box>& boxes, const Fitted& fitted, int64_t width,
                            int64_t height);

/// Outlines, a colour a class.
void draw(const std::vector<Box>& boxes, image::Image& picture);

}  // namespace tensormill::detect
