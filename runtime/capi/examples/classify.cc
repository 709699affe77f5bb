// classify PACKAGE PICTURE.pgm|PICTURE.ppm LABELS [MEAN STD]: the five most probable labels of a picture.
//
// The classic deployment of a classifier: the shorter side is resized to the model's, the middle is cut out,
// bytes become (byte / 255 - MEAN) / STD, channels come first. Pictures are Netpbm's (P5 gray, P6 colour):
// any tool writes them.
#include <tensormill.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>

namespace {

struct Picture {
  int width = 0, height = 0, channels = 0;
  std::vector<unsigned char> bytes;

  float at(int x, int y, int channel) const {
    const int color = channels == 1 ? 0 : channel;
    return bytes[(static_cast<std::size_t>(y) * width + x) * channels + color];
  }
};

Picture read_picture(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  int most = 0;
  Picture picture;
  file >> magic >> picture.width >> picture.height >> most;
  file.get();
  if (!file || (magic != "P5" && magic != "P6") || most != 255 || picture.width < 1 || picture.height < 1 ||
      picture.width > 20000 || picture.height > 20000)
    throw std::runtime_error(std::string(path) + " is no P5 or P6 of 8 bits");
  picture.channels = magic == "P5" ? 1 : 3;
  picture.bytes.resize(static_cast<std::size_t>(picture.width) * picture.height * picture.channels);
  file.read(reinterpret_cast<char*>(picture.bytes.data()),
            static_cast<std::streamsize>(picture.bytes.size()));
  if (!file) throw std::runtime_error(std::string(path) + " ends early");
  return picture;
}

/// Between the four nearest points, pixels having their middle at a half.
float sample(const Picture& picture, float x, float y, int channel) {
  x = std::clamp(x, 0.0f, static_cast<float>(picture.width - 1));
  y = std::clamp(y, 0.0f, static_cast<float>(picture.height - 1));
  const int left = static_cast<int>(x), top = static_cast<int>(y);
  const int right = std::min(left + 1, picture.width - 1), bottom = std::min(top + 1, picture.height - 1);
  const float across = x - static_cast<float>(left), down = y - static_cast<float>(top);
  const float above =
      picture.at(left, top, channel) * (1 - across) + picture.at(right, top, channel) * across;
  const float below =
      picture.at(left, bottom, channel) * (1 - across) + picture.at(right, bottom, channel) * across;
  return above * (1 - down) + below * down;
}

/// Writes the planes into the executor's own storage: nothing is copied afterwards.
void preprocess(const Picture& picture, const tensormill::View<float>& planes, float mean, float std) {
  const int channels = static_cast<int>(planes.shape()[1]);
  const int height = static_cast<int>(planes.shape()[2]), width = static_cast<int>(planes.shape()[3]);
  const float scale = std::min(static_cast<float>(picture.width) / static_cast<float>(width),
                               static_cast<float>(picture.height) / static_cast<float>(height));
  const float left = (static_cast<float>(picture.width) - scale * static_cast<float>(width)) / 2;
  const float top = (static_cast<float>(picture.height) - scale * static_cast<float>(height)) / 2;
  float* next = planes.data();
  for (int channel = 0; channel < channels; ++channel) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const float value = sample(picture, left + scale * (static_cast<float>(x) + 0.5f) - 0.5f,
                                   top + scale * (static_cast<float>(y) + 0.5f) - 0.5f, channel);
        *next++ = (value / 255 - mean) / std;
      }
    }
  }
}

int classify(int count, char** words) {
  const tensormill::Package package(words[1]);
  const tensormill::Runtime runtime;
  tensormill::Executor executor(runtime, package);
  const tensormill::View<float> planes = executor.input<float>(0);
  if (planes.shape().size() != 4) throw std::runtime_error("the model's input is no batch of pictures, NCHW");
  preprocess(read_picture(words[2]), planes, count > 4 ? std::strtof(words[4], nullptr) : 0,
             count > 5 ? std::strtof(words[5], nullptr) : 1);
  executor.run();
  const tensormill::View<const float> scores = executor.output<float>(0);

  std::vector<std::string> labels;
  std::ifstream file(words[3]);
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t top = std::min<std::size_t>(5, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                    [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score) - scores[order[0]]);
  for (std::size_t i = 0; i < top; ++i) {
    const std::string label = order[i] < labels.size() ? labels[order[i]] : std::to_string(order[i]);
    std::printf("%.4f %s\n", std::exp(static_cast<double>(scores[order[i]]) - scores[order[0]]) / sum,
                label.c_str());
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::cerr << "usage: classify PACKAGE PICTURE LABELS [MEAN STD]\n";
    return 2;
  }
  try {
    return classify(count, words);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 3;
  }
}
