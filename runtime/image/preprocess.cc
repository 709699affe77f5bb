#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/error.h"
#include "runtime/image/image.h"

namespace tensormill::image {

namespace {

struct InputSize {
  int64_t channels;
  int64_t height;
  int64_t width;
};

InputSize input_size(const Shape& shape, bool nhwc) {
  if (shape.size() == 4 && shape[0] == 1) {
    const InputSize size =
        nhwc ? InputSize{shape[3], shape[1], shape[2]} : InputSize{shape[1], shape[2], shape[3]};
    if ((size.channels == 1 || size.channels == 3) && size.height > 0 && size.width > 0) return size;
  }
  throw Error(ErrorCode::kInvalidTensor, "input " + to_string(shape) + " is not a picture: expected " +
                                             (nhwc ? "[1,H,W,C]" : "[1,C,H,W]") + " with 1 or 3 channels");
}

struct Sides {
  int64_t width;
  int64_t height;
};

/// What the first step of fit() makes of a picture.
Sides resized(const Sides& from, const Preprocess& options) {
  if (options.resize == 0) return from;
  const int64_t shorter = std::min(from.width, from.height);
  const auto scaled = [&](int64_t side) { return options.resize * side / shorter; };
  const Sides to = from.width <= from.height ? Sides{options.resize, scaled(from.height)}
                                             : Sides{scaled(from.width), options.resize};
  // A picture 65,000 by 1 must not become a giant.
  if (to.width * to.height > kDefaultMaxPixels) {
    throw Error(ErrorCode::kInvalidImage, "picture of " + std::to_string(from.width) + "×" +
                                              std::to_string(from.height) +
                                              " is too long and thin to resize");
  }
  return to;
}

/// Resizes and crops to exactly the model's size.
Image fit(Image image, const Preprocess& options, const InputSize& size) {
  const Sides first = resized({image.width, image.height}, options);
  Image result = std::move(image);
  if (options.resize > 0) result = resize(result, first.width, first.height);
  if (options.crop_width > 0) {
    result = center_crop(result, options.crop_width, options.crop_height);
  }
  if (result.width != size.width || result.height != size.height)
    result = resize(result, size.width, size.height);
  return result;
}

double value_of(const std::vector<double>& values, int64_t channel, double fallback) {
  if (values.empty()) return fallback;
  return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

}  // namespace

void set_noted(Preprocess& options, bool says_scale, const ValueNotes& notes) {
  if (says_scale || !options.mean.empty() || !options.std.empty() || notes.mean.empty()) return;
  // The file's numbers are of samples as they are, 0 to 255.
  options.scale = 1;
  options.mean = notes.mean;
  options.std = notes.std;
}

bool looks_nhwc(const Shape& shape) {
  const auto is_channels = [](int64_t extent) { return extent == 1 || extent == 3; };
  return shape.size() == 4 && !is_channels(shape[1]) && is_channels(shape.back());
}

int64_t tensor_bytes(const PictureHead& head, const Preprocess& options, const Shape& shape) {
  const InputSize size = input_size(shape, options.nhwc);
  const Sides from{head.width, head.height};
  const Sides to = resized(from, options);
  // A resize makes the rows of the one with the columns of the other first. Crops are no larger than what
  // they are of.
  const auto steps = [&](const Sides& a, const Sides& b) { return b.width * a.height + b.width * b.height; };
  const Sides last{size.width, size.height};
  const int64_t converted = head.channels == size.channels ? 0 : from.width * from.height;
  const int64_t first = options.resize > 0 ? steps(from, to) : 0;
  return (converted + first + to.width * to.height + steps(to, last)) * size.channels +
         4 * size.channels * size.width * size.height;
}

Tensor to_tensor(Image image, const Preprocess& options, DType dtype, const Shape& shape,
                 const std::optional<Quantization>& quantization) {
  if (quantization)
    return quantize(to_tensor(std::move(image), options, DType::kFloat32, shape), *quantization, dtype);
  const InputSize size = input_size(shape, options.nhwc);
  if (dtype != DType::kFloat32 && dtype != DType::kUInt8) {
    throw Error(ErrorCode::kInvalidTensor,
                "input of " + std::string(dtype_long_name(dtype)) +
                    " cannot take a picture: expected float32, uint8 or quantized integers");
  }
  if ((size.channels == 1 && (options.mean.size() > 1 || options.std.size() > 1))) {
    throw Error(ErrorCode::kInvalidArgument,
                "preprocess: mean and std have 3 values, the input has 1 channel");
  }
  const Image fitted =
      fit(convert_channels(std::move(image), static_cast<int>(size.channels)), options, size);
  Tensor tensor(dtype, shape);
  const int64_t plane = size.height * size.width;
  for (int64_t c = 0; c < size.channels; ++c) {
    const double mean = value_of(options.mean, c, 0.0);
    const double std = value_of(options.std, c, 1.0);
    const int64_t source = options.bgr ? size.channels - 1 - c : c;
    for (int64_t i = 0; i < plane; ++i) {
      const uint8_t sample = fitted.pixels[static_cast<size_t>(i * size.channels + source)];
      const size_t at = static_cast<size_t>(options.nhwc ? i * size.channels + c : c * plane + i);
      if (dtype == DType::kUInt8) {
        static_cast<uint8_t*>(tensor.data())[at] = sample;
      } else {
        static_cast<float*>(tensor.data())[at] = static_cast<float>((sample * options.scale - mean) / std);
      }
    }
  }
  return tensor;
}

std::vector<double> softmax(const TensorView& scores) {
  const Tensor view(scores.dtype, scores.shape, nullptr, const_cast<void*>(scores.data));
  std::vector<double> values;
  for (int64_t i = 0; i < view.num_elements(); ++i) values.push_back(view.element_as_double(i));
  if (values.empty()) return values;
  const double largest = *std::max_element(values.begin(), values.end());
  double sum = 0.0;
  for (double& value : values) sum += value = std::exp(value - largest);
  for (double& value : values) value /= sum;
  return values;
}

std::vector<Score> top_k(const TensorView& scores, int64_t k, bool apply_softmax) {
  std::vector<double> values;
  if (apply_softmax) {
    values = softmax(scores);
  } else {
    const Tensor view(scores.dtype, scores.shape, nullptr, const_cast<void*>(scores.data));
    for (int64_t i = 0; i < view.num_elements(); ++i) values.push_back(view.element_as_double(i));
  }
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = std::min(order.size(), static_cast<size_t>(std::max<int64_t>(k, 0)));
  const auto before = [&](size_t a, size_t b) {
    const bool nan_a = std::isnan(values[a]);
    const bool nan_b = std::isnan(values[b]);
    if (nan_a != nan_b) return nan_b;
    if (!nan_a && values[a] != values[b]) return values[a] > values[b];
    return a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(count), order.end(), before);
  std::vector<Score> result;
  for (size_t i = 0; i < count; ++i) result.push_back({static_cast<int64_t>(order[i]), values[order[i]]});
  return result;
}

}  // namespace tensormill::image
