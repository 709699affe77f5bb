/// Pictures into files. Thread-safety: pure functions.
#pragma once

#include <string>

#include "runtime/image/image.h"

namespace tensormill::image {

/// A PNG file of 8 bits a sample, gray or RGB. Throws Error(kInvalidArgument) for a picture without pixels.
std::string encode_png(const Image& image);

}  // namespace tensormill::image
