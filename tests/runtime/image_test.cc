#include "runtime/image/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/base/error.h"

namespace tensormill::image {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string png_file(uint32_t format, uint32_t width, uint32_t height, const void* pixels) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = width;
  png.height = height;
  png.format = format;
  std::string out(1 << 20, '\0');
  png_alloc_size_t size = out.size();
  EXPECT_NE(png_image_write_to_memory(&png, out.data(), &size, 0, pixels, 0, nullptr), 0) << png.message;
  out.resize(size);
  return out;
}

std::string jpeg_file(int width, int height, const std::vector<uint8_t>& pixels, int format,
                      int subsampling) {
  tjhandle handle = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, format, &out, &size, subsampling, 95, 0), 0);
  std::string result(reinterpret_cast<char*>(out), size);
  tjFree(out);
  tjDestroy(handle);
  return result;
}

TEST(Decode, PngKindsComeOutAsEightBits) {
  const uint8_t rgba[] = {10, 20, 30, 255, 200, 100, 50, 0};
  const Image color = decode(as_bytes(png_file(PNG_FORMAT_RGBA, 2, 1, rgba)));
  EXPECT_THAT(color.pixels, testing::ElementsAre(10, 20, 30, 255, 255, 255)) << "transparent is white";
  const uint8_t gray[] = {1, 2, 3, 4};
  const Image plain = decode(as_bytes(png_file(PNG_FORMAT_GRAY, 2, 2, gray)));
  EXPECT_EQ(plain.channels, 1);
  EXPECT_THAT(plain.pixels, testing::ElementsAre(1, 2, 3, 4));
  const uint16_t linear[] = {0, 65535};
  const Image deep = decode(as_bytes(png_file(PNG_FORMAT_LINEAR_Y, 2, 1, linear)));
  EXPECT_THAT(deep.pixels, testing::ElementsAre(0, 255));
}

TEST(Decode, HeadersTellWhatDecodingTakes) {
  std::vector<uint8_t> pixels(40 * 30 * 3, 100);
  const std::string files[] = {
      jpeg_file(40, 30, pixels, TJPF_RGB, TJSAMP_420), jpeg_file(40, 30, pixels, TJPF_GRAY, TJSAMP_GRAY),
      png_file(PNG_FORMAT_RGB, 40, 30, pixels.data()), png_file(PNG_FORMAT_GRAY, 40, 30, pixels.data()),
      png_file(PNG_FORMAT_RGBA, 30, 30, pixels.data())};
  for (const std::string& file : files) {
    const PictureHead head = read_head(as_bytes(file));
    const Image image = decode(as_bytes(file));
    EXPECT_EQ(head.width, image.width);
    EXPECT_EQ(head.height, image.height);
    EXPECT_EQ(head.channels, image.channels);
    EXPECT_EQ(head.bytes, static_cast<int64_t>(image.pixels.size()));
    EXPECT_THROW(read_head(as_bytes(file), image.width * image.height - 1), RefusedPicture);
    for (size_t size = 0; size < file.size(); size += 7) {
      try {
        read_head(as_bytes(file.substr(0, size)));
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::kInternal);
      }
    }
  }
  EXPECT_THROW(read_head(as_bytes("GIF89a, whatever")), Error);
}

TEST(Decode, AJpegWhoseScansNeverEndIsRefused) {
  const std::string file = jpeg_file(16, 16, std::vector<uint8_t>(16 * 16, 9), TJPF_GRAY, TJSAMP_GRAY);
  const size_t scan = file.find("\xff\xda");
  ASSERT_NE(scan, std::string::npos);
  // The same scan again and again, as a progressive file might have it.
  std::string many = file.substr(0, file.size() - 2);
  for (int i = 0; i < 20; ++i) many += file.substr(scan, file.size() - 2 - scan);
  many += "\xff\xd9";
  EXPECT_NO_THROW(read_head(as_bytes(many)));
  EXPECT_GE(read_head(as_bytes(many)).bytes, 3 * 16 * 16) << "coefficients are kept until the last scan";
  EXPECT_THROW(read_head(as_bytes(many), 16 * 16), RefusedPicture);
}

TEST(Decode, JpegColorAndGray) {
  std::vector<uint8_t> red;
  for (int i = 0; i < 16 * 16; ++i) red.insert(red.end(), {200, 30, 40});
  const Image color = decode(as_bytes(jpeg_file(16, 16, red, TJPF_RGB, TJSAMP_444)));
  ASSERT_EQ(color.pixels.size(), 768u);
  EXPECT_NEAR(color.pixels[0], 200, 3);
  EXPECT_NEAR(color.pixels[2], 40, 3);
  const Image gray = decode(as_bytes(jpeg_file(8, 8, std::vector<uint8_t>(64, 77), TJPF_GRAY, TJSAMP_GRAY)));
  EXPECT_EQ(gray.channels, 1);
  EXPECT_NEAR(gray.pixels[5], 77, 1);
  EXPECT_THROW(decode(as_bytes(jpeg_file(8, 8, std::vector<uint8_t>(256, 9), TJPF_CMYK, TJSAMP_444))), Error);
}

TEST(Decode, PixelCapAndOtherFormats) {
  const std::vector<uint8_t> pixels(100 * 100, 3);
  const std::string png = png_file(PNG_FORMAT_GRAY, 100, 100, pixels.data());
  EXPECT_THROW(decode(as_bytes(png), 9999), Error);
  EXPECT_EQ(decode(as_bytes(png), 10000).width, 100);
  const std::string jpeg = jpeg_file(100, 100, pixels, TJPF_GRAY, TJSAMP_GRAY);
  EXPECT_THROW(decode(as_bytes(jpeg), 9999), Error);
  EXPECT_THROW(decode(as_bytes(jpeg.substr(0, jpeg.size() / 2))), Error) << "cut off";
  try {
    decode(as_bytes(std::string("GIF89a....")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupportedMediaType);
  }
}

TEST(Decode, MutationsAreErrorsOrPictures) {
  const std::vector<uint8_t> pixels(32 * 32 * 3, 120);
  const std::string files[] = {png_file(PNG_FORMAT_RGB, 32, 32, pixels.data()),
                               jpeg_file(32, 32, pixels, TJPF_RGB, TJSAMP_420)};
  std::mt19937 random(3);
  int rejected = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = files[i % 2];
    if (random() % 3 == 0) bytes.resize(random() % bytes.size());
    for (int n = 0; n < 3 && !bytes.empty(); ++n)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    try {
      const Image image = decode(as_bytes(bytes), 1 << 20);
      EXPECT_EQ(image.pixels.size(), static_cast<size_t>(image.width * image.height * image.channels));
    } catch (const Error& error) {
      ++rejected;
      EXPECT_THAT(error.code(), testing::AnyOf(ErrorCode::kInvalidImage, ErrorCode::kUnsupportedMediaType));
    }
  }
  EXPECT_GT(rejected, 1000);
}

TEST(Resize, MatchesPillow) {
  // Image.fromarray(uint8 [[0, 50, 100, 150, 200, 250]] * 2).resize((3, 1), BILINEAR) and to (9, 2).
  const Image source{6, 2, 1, {0, 50, 100, 150, 200, 250, 0, 50, 100, 150, 200, 250}};
  EXPECT_THAT(resize(source, 3, 1).pixels, testing::ElementsAre(36, 125, 214));
  const Image larger = resize(source, 12, 2);
  EXPECT_THAT(std::vector<uint8_t>(larger.pixels.begin(), larger.pixels.begin() + 5),
              testing::ElementsAre(0, 13, 38, 63, 88));
  EXPECT_EQ(resize(source, 6, 2).pixels, source.pixels);
}

TEST(CenterCrop, TakesTheMiddle) {
  const Image source{4, 3, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  EXPECT_THAT(center_crop(source, 2, 1).pixels, testing::ElementsAre(5, 6));
  EXPECT_THAT(center_crop(source, 1, 3).pixels, testing::ElementsAre(2, 6, 10)) << "1.5 rounds to 2";
  EXPECT_THROW(center_crop(source, 5, 1), Error);
}

TEST(ToTensor, LayoutsColorsAndNormalization) {
  const Image source{2, 1, 3, {255, 0, 51, 0, 255, 102}};
  Preprocess options;
  options.mean = options.std = {0.5, 0.5, 0.5};
  const Tensor nchw = to_tensor(source, options, DType::kFloat32, {1, 3, 1, 2});
  EXPECT_THAT(nchw.values<float>(),
              testing::Pointwise(testing::FloatNear(1e-6f), {1.0f, -1.0f, -1.0f, 1.0f, -0.6f, -0.2f}));
  options.nhwc = true;
  options.bgr = true;
  const Tensor nhwc = to_tensor(source, options, DType::kFloat32, {1, 1, 2, 3});
  EXPECT_THAT(nhwc.values<float>(),
              testing::Pointwise(testing::FloatNear(1e-6f), {-0.6f, -1.0f, 1.0f, -0.2f, 1.0f, -1.0f}));
  const Tensor gray = to_tensor(source, {}, DType::kFloat32, {1, 1, 1, 2});
  EXPECT_NEAR(gray.values<float>()[0], (255 * 0.299 + 51 * 0.114) / 255, 0.005);
  EXPECT_THROW(to_tensor(source, options, DType::kFloat32, {1, 2, 1, 2}), Error);
  EXPECT_THROW(to_tensor(source, options, DType::kInt64, {1, 1, 2, 3}), Error);
}

TEST(ToTensor, ResizesTheShorterSideThenCrops) {
  Image source{300, 200, 1, std::vector<uint8_t>(300 * 200, 51)};
  // A white frame of 40 at the left and right goes with the crop: 300x200 -> 150x100 -> the middle 100.
  for (size_t i = 0; i < source.pixels.size(); ++i) {
    if (i % 300 < 40 || i % 300 >= 260) source.pixels[i] = 255;
  }
  Preprocess options;
  options.resize = options.crop_width = options.crop_height = 100;
  const Tensor tensor = to_tensor(source, options, DType::kFloat32, {1, 3, 100, 100});
  EXPECT_THAT(tensor.values<float>(), testing::Each(testing::FloatNear(0.2f, 1e-6f)));
  options = {};
  options.resize = 8000;
  EXPECT_THROW(to_tensor({65000, 1, 1, std::vector<uint8_t>(65000)}, options, DType::kFloat32, {1, 1, 4, 4}),
               Error);
}

TEST(TopK, SortsWithTiesByIndexAndNanLast) {
  const float scores[] = {1.0f, 3.0f, std::numeric_limits<float>::quiet_NaN(), 3.0f};
  const std::vector<Score> top = top_k({DType::kFloat32, {1, 4}, scores}, 9, false);
  ASSERT_EQ(top.size(), 4u);
  EXPECT_EQ(top[0].index, 1);
  EXPECT_EQ(top[1].index, 3);
  EXPECT_EQ(top[3].index, 2);
  const float logits[] = {1000.0f, 1000.0f};
  EXPECT_EQ(top_k({DType::kFloat32, {2}, logits}, 1, true)[0].probability, 0.5);
}

}  // namespace
}  // namespace tensormill::image
