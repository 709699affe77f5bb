#include "runtime/host_ops/roi_align.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

/// A point between two pixels of an axis; the weights add up to 1.
template <typename T>
struct Point {
  size_t low = 0, high = 0;
  T low_weight = 0, high_weight = 0;
};

/// The sampling points of one axis of a box.
template <typename T>
class AxisPoints {
public:
  /// `size` pixels from `start` on in `bins` parts, of an axis of `extent` pixels.
  AxisPoints(T start, T size, size_t bins, size_t extent) : first_(bins + 1, 0) {
    const T bin = size / static_cast<T>(bins);
    if (!std::isfinite(start) || !std::isfinite(bin) || bin <= 0) return;
    samples_ = std::ceil(bin);
    for (size_t i = 0; i < bins; ++i) {
      add_bin(start + static_cast<T>(i) * bin, bin, extent);
      first_[i + 1] = points_.size();
    }
  }

  /// Points of a bin, those included that lie outside of the picture and weigh nothing.
  T samples() const { return samples_; }
  /// Those inside.
  std::span<const Point<T>> bin(size_t index) const {
    return std::span(points_).subspan(first_[index], first_[index + 1] - first_[index]);
  }

private:
  void add_bin(T start, T bin, size_t extent) {
    const T end = static_cast<T>(extent), last = end - 1;
    // Only the points from one pixel before the picture to one behind it are looked at, rounding aside.
    const auto number_at = [&](T at) { return (at - start) / bin * samples_ - T{0.5}; };
    const T from = std::clamp<T>(std::floor(number_at(-1)) - 1, 0, samples_);
    const T to = std::clamp<T>(std::ceil(number_at(end)) + 2, from, samples_);
    // Numbers that the type cannot tell apart would be points without end.
    for (T i = from; i < to && i + 1 > i; i += 1) {
      const T at = start + (i + T{0.5}) * bin / samples_;
      if (at < -1 || at > end) continue;
      const T inside = std::clamp<T>(at, 0, last), low = std::floor(inside);
      points_.push_back({static_cast<size_t>(low), static_cast<size_t>(std::min(low + 1, last)),
                         1 - (inside - low), inside - low});
    }
  }

  T samples_ = 0;
  std::vector<Point<T>> points_;
  std::vector<size_t> first_;  ///< by bin, and their end
};

/// The pixels of an axis, from the first one to behind the last one.
struct Span {
  size_t begin = 0, end = 0;
};

/// Those of each of `bins` parts of a box, of an axis of `extent` pixels.
template <typename T>
std::vector<Span> pixel_bins(T from, T to, size_t bins, size_t extent) {
  const T first = std::round(from), size = std::max<T>(std::round(to) - first + 1, 1) / static_cast<T>(bins);
  std::vector<Span> spans(bins);
  if (!std::isfinite(first) || !std::isfinite(size)) return spans;
  const auto within = [&](T at) {
    return static_cast<size_t>(std::clamp<T>(at + first, 0, static_cast<T>(extent)));
  };
  for (size_t i = 0; i < bins; ++i)
    spans[i] = {within(std::floor(static_cast<T>(i) * size)),
                within(std::ceil(static_cast<T>(i + 1) * size))};
  return spans;
}

struct Options {
  size_t height = 0, width = 0;
  double scale = 1;
  bool is_max = false, half_pixel = false;
};

Options options_of(const Attributes& attributes) {
  const int64_t height = attributes.integer("height"), width = attributes.integer("width");
  if (height < 1 || width < 1)
    throw Error(ErrorCode::kInvalidPackage, "a host step pools boxes to " + std::to_string(height) + " by " +
                                                std::to_string(width) + " bins");
  return {static_cast<size_t>(height), static_cast<size_t>(width), attributes.real("spatial_scale")};
}

/// One bin of one channel, `plane`.
template <typename T>
T pooled(const T* plane, size_t width, std::span<const Point<T>> rows, std::span<const Point<T>> columns,
         T samples, bool is_max) {
  T sum = 0, largest = -std::numeric_limits<T>::infinity();
  for (const Point<T>& y : rows) {
    const T *low = plane + y.low * width, *high = plane + y.high * width;
    for (const Point<T>& x : columns) {
      const T parts[] = {y.low_weight * x.low_weight * low[x.low], y.low_weight * x.high_weight * low[x.high],
                         y.high_weight * x.low_weight * high[x.low],
                         y.high_weight * x.high_weight * high[x.high]};
      if (is_max) {
        largest = std::max(largest, *std::max_element(std::begin(parts), std::end(parts)));
      } else {
        sum += parts[0] + parts[1] + parts[2] + parts[3];
      }
    }
  }
  if (!is_max) return sum / std::max<T>(samples, 1);
  const bool all_inside = static_cast<T>(rows.size() * columns.size()) == samples && samples > 0;
  return all_inside ? largest : std::max<T>(largest, 0);
}

/// The largest of the pixels; 0 of none.
template <typename T>
T largest(const T* plane, size_t width, const Span& rows, const Span& columns) {
  if (rows.begin >= rows.end || columns.begin >= columns.end) return 0;
  T most = -std::numeric_limits<T>::infinity();
  for (size_t y = rows.begin; y < rows.end; ++y) {
    const T* row = plane + y * width;
    most = std::max(most, *std::max_element(row + columns.begin, row + columns.end));
  }
  return most;
}

/// Calls `pool(corner, plane, to)` for each box: its scaled coordinates by their index, the channels of its
/// picture, and where its bins go.
template <typename T, typename Pool>
void for_each_box(const HostCall& call, const Options& options, const Pool& pool) {
  const Shape& shape = call.inputs[0].shape;
  const size_t picture_size = static_cast<size_t>(shape[1] * shape[2] * shape[3]),
               box_size = static_cast<size_t>(shape[1]) * options.height * options.width,
               count = static_cast<size_t>(call.inputs[1].shape[0]);
  const Tensor boxes = copied(call.inputs[1]), pictures = copied(call.inputs[2]);
  const auto* x = static_cast<const T*>(call.inputs[0].data);
  auto* target = static_cast<T*>(storage(call, 0, count * box_size, sizeof(T)));
  const T scale = static_cast<T>(options.scale);
  for (size_t box = 0; box < count; ++box) {
    const int64_t picture = pictures.element_as_int(static_cast<int64_t>(box));
    if (picture < 0 || picture >= shape[0])
      throw Error(ErrorCode::kTensorData, "box " + std::to_string(box) + " is in picture " +
                                              std::to_string(picture) + " of " + std::to_string(shape[0]));
    const auto corner = [&](size_t index) {
      return static_cast<T>(boxes.element_as_double(static_cast<int64_t>(box * 4 + index))) * scale;
    };
    pool(corner, x + static_cast<size_t>(picture) * picture_size, target + box * box_size);
  }
}

/// Each bin of each channel of a box, by its place.
template <typename T, typename Bin>
void for_each_bin(const Shape& shape, const Options& options, const T* plane, T* target, const Bin& bin) {
  const size_t pixels = static_cast<size_t>(shape[2] * shape[3]);
  for (int64_t channel = 0; channel < shape[1]; ++channel, plane += pixels) {
    for (size_t i = 0; i < options.height; ++i) {
      for (size_t j = 0; j < options.width; ++j) *target++ = bin(plane, i, j);
    }
  }
}

template <typename T>
void align(const HostCall& call, const Options& options) {
  const Shape& shape = call.inputs[0].shape;
  const auto height = static_cast<size_t>(shape[2]), width = static_cast<size_t>(shape[3]);
  const T moved = options.half_pixel ? T{0.5} : T{0};
  for_each_box<T>(call, options, [&](const auto& corner, const T* picture, T* target) {
    const auto axis = [&](size_t index, size_t bins, size_t extent) {
      const T start = corner(index) - moved, size = corner(index + 2) - moved - start;
      return AxisPoints<T>(start, options.half_pixel ? size : std::max<T>(size, 1), bins, extent);
    };
    const AxisPoints<T> rows = axis(1, options.height, height), columns = axis(0, options.width, width);
    const T samples = rows.samples() * columns.samples();
    for_each_bin(shape, options, picture, target, [&](const T* plane, size_t i, size_t j) {
      return pooled(plane, width, rows.bin(i), columns.bin(j), samples, options.is_max);
    });
  });
}

template <typename T>
void pool_pixels(const HostCall& call, const Options& options) {
  const Shape& shape = call.inputs[0].shape;
  const auto height = static_cast<size_t>(shape[2]), width = static_cast<size_t>(shape[3]);
  for_each_box<T>(call, options, [&](const auto& corner, const T* picture, T* target) {
    const std::vector<Span> rows = pixel_bins<T>(corner(1), corner(3), options.height, height),
                            columns = pixel_bins<T>(corner(0), corner(2), options.width, width);
    for_each_bin(shape, options, picture, target, [&](const T* plane, size_t i, size_t j) {
      return largest(plane, width, rows[i], columns[j]);
    });
  });
}

void check_operands(const HostCall& call) {
  expect(call, 3, 1);
  const TensorView &x = call.inputs[0], &boxes = call.inputs[1], &pictures = call.inputs[2];
  const bool fits = (x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64) && boxes.dtype == x.dtype &&
                    pictures.dtype == DType::kInt64 && x.shape.size() == 4 && x.shape[2] > 0 &&
                    x.shape[3] > 0 && boxes.shape.size() == 2 && boxes.shape[1] == 4 &&
                    pictures.shape == Shape{boxes.shape[0]};
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "a host step pools operands that do not fit");
}

}  // namespace

void roi_align(const HostCall& call) {
  check_operands(call);
  const Attributes attributes(call);
  Options options = options_of(attributes);
  options.is_max = attributes.flag("is_max");
  options.half_pixel = attributes.flag("half_pixel");
  if (call.inputs[0].dtype == DType::kFloat32) {
    align<float>(call, options);
  } else {
    align<double>(call, options);
  }
}

void roi_pool(const HostCall& call) {
  check_operands(call);
  const Options options = options_of(Attributes(call));
  if (call.inputs[0].dtype == DType::kFloat32) {
    pool_pixels<float>(call, options);
  } else {
    pool_pixels<double>(call, options);
  }
}

}  // namespace tensormill::host_ops
