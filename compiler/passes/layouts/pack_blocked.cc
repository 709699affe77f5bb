#include "compiler/passes/layouts/pack_blocked.h"

#include <algorithm>

namespace tensormill::passes {

namespace {

/// lane -> channel, -1 where a lane has none.
std::vector<int64_t> channels_of_lanes(const std::vector<int64_t>& place, int64_t lanes) {
  std::vector<int64_t> channels(static_cast<size_t>(lanes), -1);
  for (size_t c = 0; c < place.size(); ++c) channels[static_cast<size_t>(place[c])] = static_cast<int64_t>(c);
  return channels;
}

int64_t blocks_of(int64_t channels, int64_t block) { return (channels + block - 1) / block; }

/// Elements of an image or taps of a window: of the dimensions from the third on.
int64_t points_of(const Shape& shape) { return num_elements(Shape(shape.begin() + 2, shape.end())); }

/// first, the dimensions of `shape` from the third on, last.
Shape shape_around(Shape first, const Shape& shape, const Shape& last) {
  first.insert(first.end(), shape.begin() + 2, shape.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

}  // namespace

Tensor pack_conv_weights(const Tensor& w, const std::vector<int64_t>& place, int64_t in_blocks,
                         int64_t block) {
  const int64_t outputs = w.shape()[0], inputs = w.shape()[1], taps = points_of(w.shape());
  const int64_t out_blocks = blocks_of(outputs, block);
  Tensor packed(w.dtype(), shape_around({out_blocks, in_blocks}, w.shape(), {block, block}));
  const std::vector<int64_t> channels = channels_of_lanes(place, in_blocks * block);
  const float* from = w.values<float>().data();
  float* to = packed.values<float>().data();
  for (int64_t ob = 0; ob < out_blocks; ++ob) {
    for (int64_t ib = 0; ib < in_blocks; ++ib) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t i = 0; i < block; ++i) {
          const int64_t input = channels[static_cast<size_t>(ib * block + i)];
          for (int64_t o = 0; o < block; ++o) {
            const int64_t output = ob * block + o;
            const bool given = input >= 0 && output < outputs;
            *to++ = given ? from[(output * inputs + input) * taps + tap] : 0.0f;
          }
        }
      }
    }
  }
  return packed;
}

Tensor pack_conv_words(const Tensor& w, const std::vector<int64_t>& place, int64_t in_blocks, int64_t block) {
  const int64_t outputs = w.shape()[0], inputs = w.shape()[1], taps = points_of(w.shape());
  const int64_t out_blocks = blocks_of(outputs, block), words = block / 4;
  Tensor packed =
      Tensor::zeros(DType::kInt32, shape_around({out_blocks, in_blocks}, w.shape(), {words, block}));
  const int8_t* from = w.values<int8_t>().data();
  int8_t* to = static_cast<int8_t*>(packed.data());
  for (int64_t output = 0; output < outputs; ++output) {
    for (int64_t input = 0; input < inputs; ++input) {
      const int64_t lane = place[static_cast<size_t>(input)];
      const int64_t first = output / block * in_blocks + lane / block;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t word = ((first * taps + tap) * words + lane % block / 4) * block + output % block;
        to[word * 4 + lane % 4] = from[(output * inputs + input) * taps + tap];
      }
    }
  }
  return packed;
}

Tensor pack_matrix_words(const Tensor& w, bool transposed, int64_t block) {
  const int64_t depth = w.shape()[transposed ? 1 : 0], columns = w.shape()[transposed ? 0 : 1];
  const int64_t blocks = blocks_of(columns, block), words = depth / 4;
  Tensor packed = Tensor::zeros(DType::kInt32, {blocks, words, block});
  const int8_t* from = w.values<int8_t>().data();
  int8_t* to = static_cast<int8_t*>(packed.data());
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t word = (j / block * words + k / 4) * block + j % block;
      to[word * 4 + k % 4] = from[transposed ? j * depth + k : k * columns + j];
    }
  }
  return packed;
}

Tensor pack_first_weights(const Tensor& w, int64_t block) {
  const int64_t outputs = w.shape()[0];
  const int64_t reduced = w.shape()[1] * points_of(w.shape());
  const int64_t out_blocks = blocks_of(outputs, block);
  Tensor packed(w.dtype(), shape_around({out_blocks, w.shape()[1]}, w.shape(), {block}));
  const float* from = w.values<float>().data();
  float* to = packed.values<float>().data();
  for (int64_t ob = 0; ob < out_blocks; ++ob) {
    for (int64_t k = 0; k < reduced; ++k) {
      for (int64_t o = 0; o < block; ++o) {
        const int64_t output = ob * block + o;
        *to++ = output < outputs ? from[output * reduced + k] : 0.0f;
      }
    }
  }
  return packed;
}

Tensor pack_depthwise_weights(const Tensor& w, const std::vector<int64_t>& place, int64_t blocks,
                              int64_t block) {
  const int64_t taps = points_of(w.shape());
  Tensor packed(w.dtype(), shape_around({blocks}, w.shape(), {block}));
  const std::vector<int64_t> channels = channels_of_lanes(place, blocks * block);
  const float* from = w.values<float>().data();
  float* to = packed.values<float>().data();
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t lane = 0; lane < block; ++lane) {
        const int64_t channel = channels[static_cast<size_t>(b * block + lane)];
        *to++ = channel >= 0 ? from[channel * taps + tap] : 0.0f;
      }
    }
  }
  return packed;
}

Tensor pack_channels(const Tensor& x, const std::vector<int64_t>& place, int64_t blocks, int64_t block,
                     double pad) {
  const Shape& shape = x.shape();
  const int64_t count = static_cast<int64_t>(place.size()), points = points_of(shape);
  Tensor packed(x.dtype(), shape_around({shape[0], blocks}, shape, {block}));
  const std::vector<int64_t> channels = channels_of_lanes(place, blocks * block);
  int64_t to = 0;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t point = 0; point < points; ++point) {
        for (int64_t lane = 0; lane < block; ++lane) {
          const int64_t channel = channels[static_cast<size_t>(b * block + lane)];
          const int64_t from = (n * count + channel) * points + point;
          packed.set_element(to++, channel >= 0 ? x.element_as_double(from) : pad);
        }
      }
    }
  }
  return packed;
}

Tensor join_groups(const Tensor& w, int64_t groups, int64_t joined) {
  const int64_t inputs = w.shape()[1], outputs = w.shape()[0] / groups, taps = points_of(w.shape());
  Shape shape = w.shape();
  shape[1] = inputs * joined;
  Tensor made = Tensor::zeros(w.dtype(), shape);
  const std::span<const float> from = w.values<float>();
  const std::span<float> to = made.values<float>();
  for (int64_t output = 0; output < w.shape()[0]; ++output) {
    const int64_t member = output / outputs % joined;
    const int64_t source = output * inputs * taps, target = (output * joined + member) * inputs * taps;
    std::copy_n(from.begin() + source, inputs * taps, to.begin() + target);
  }
  return made;
}

Tensor pack_vector(const Tensor& x, const std::vector<int64_t>& place, int64_t blocks, int64_t block) {
  const Tensor image = x.reshaped({1, x.num_elements(), 1, 1});
  return pack_channels(image, place, blocks, block, 0.0).reshaped({blocks * block});
}

}  // namespace tensormill::passes
