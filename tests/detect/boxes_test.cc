// Boxes out of every form of outputs, and their way back to the picture.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/image/encode.h"
#include "server/detect/boxes.h"
#include "server/detect/picture.h"

namespace tensormill::detect {
namespace {

/// Outputs by name, whose tensors live as long as this.
class Outputs {
public:
  template <typename T>
  Outputs& add(const std::string& name, Shape shape, std::vector<T> values) {
    tensors_.push_back(Tensor::from<T>(std::move(shape), std::span<const T>(values)));
    names_.push_back(name);
    return *this;
  }
  std::vector<Box> find(BoxOptions options = {}) const {
    options.width = 100;
    options.height = 50;
    std::vector<NamedOutput> outputs;
    for (size_t i = 0; i < tensors_.size(); ++i)
      outputs.push_back({names_[i], {tensors_[i].dtype(), tensors_[i].shape(), tensors_[i].data()}});
    return find_boxes(outputs, options);
  }

private:
  std::vector<Tensor> tensors_;
  std::vector<std::string> names_;
};

void expect_box(const Box& box, const std::array<double, 4>& corners, double score, int64_t kind) {
  EXPECT_NEAR(box.left, corners[0], 1e-4);
  EXPECT_NEAR(box.top, corners[1], 1e-4);
  EXPECT_NEAR(box.right, corners[2], 1e-4);
  EXPECT_NEAR(box.bottom, corners[3], 1e-4);
  EXPECT_NEAR(box.score, score, 1e-6);
  EXPECT_EQ(box.kind, kind);
}

TEST(Boxes, RowsInTheirOrders) {
  const std::array<double, 4> corners = {10, 20, 30, 40};
  for (const Shape& shape : {Shape{2, 6}, Shape{1, 2, 6}}) {
    const auto rows = Outputs().add<float>("o", shape, {0, 0, 0, 0, 0, -1, 10, 20, 30, 40, 0.75F, 3}).find();
    ASSERT_EQ(rows.size(), 1u);
    expect_box(rows[0], corners, 0.75, 3);
    const auto first = Outputs().add<float>("o", shape, {3, 0.75F, 10, 20, 30, 40, -1, 0, 0, 0, 0, 0}).find();
    ASSERT_EQ(first.size(), 1u);
    expect_box(first[0], corners, 0.75, 3);
  }
  const auto batch = Outputs().add<float>("o", {1, 7}, {0, 10, 20, 30, 40, 3, 0.75F}).find();
  ASSERT_EQ(batch.size(), 1u);
  expect_box(batch[0], corners, 0.75, 3);
}

TEST(Boxes, CandidatesThatOverlapBecomeOne) {
  // Columns: two of class 1 at nearly the same place, one of class 0 there, one elsewhere, one too weak.
  const std::vector<float> values = {20, 21, 20, 60, 80, 30, 30, 30,   30, 20, 20,   20,   20, 10,   10,
                                     20, 20, 20, 10, 10, 0,  0,  0.6F, 0,  0,  0.9F, 0.8F, 0,  0.5F, 0.1F};
  const auto boxes = Outputs().add<float>("o", {1, 6, 5}, values).find({.form = Form::kYolo});
  ASSERT_EQ(boxes.size(), 3u);
  expect_box(boxes[0], {10, 20, 30, 40}, 0.9, 1);
  expect_box(boxes[1], {10, 20, 30, 40}, 0.6, 0);
  expect_box(boxes[2], {55, 25, 65, 35}, 0.5, 1);
  const BoxOptions all{.form = Form::kYolo, .overlap = 1};
  EXPECT_EQ(Outputs().add<float>("o", {1, 6, 5}, values).find(all).size(), 4u);
  const BoxOptions one{.form = Form::kYolo, .most = 1};
  EXPECT_EQ(Outputs().add<float>("o", {1, 6, 5}, values).find(one).size(), 1u);
}

TEST(Boxes, ShapesTellCandidatesApart) {
  std::vector<float> wide(6 * 20, 0), tall(20 * 7, 0);
  for (const auto& [row, value] : {std::pair{size_t{0}, 20.F}, {1, 30.F}, {2, 20.F}, {3, 20.F}, {5, 0.9F}})
    wide[row * 20 + 4] = value;
  const auto yolo = Outputs().add<float>("o", {1, 6, 20}, wide).find();
  ASSERT_EQ(yolo.size(), 1u);
  expect_box(yolo[0], {10, 20, 30, 40}, 0.9, 1);
  // Sums of columns past 1 are no scores, so that these are no rows of 7 with a picture's number.
  const std::vector<float> row = {20, 30, 20, 20, 0.5F, 0.25F, 1};
  std::copy(row.begin(), row.end(), tall.begin() + 3 * 7);
  tall[6] = 2;
  const auto objects = Outputs().add<float>("o", {1, 20, 7}, tall).find();
  ASSERT_EQ(objects.size(), 1u);
  expect_box(objects[0], {10, 20, 30, 40}, 0.5, 1);
}

TEST(Boxes, ThreeTensors) {
  const std::vector<float> boxes = {10, 20, 30, 40, 0, 0, 5, 5};
  const auto torch = Outputs()
                         .add<float>("boxes", {2, 4}, boxes)
                         .add<int64_t>("labels", {2}, {7, 1})
                         .add<float>("scores", {2}, {0.5F, 0.9F})
                         .find();
  ASSERT_EQ(torch.size(), 2u);
  expect_box(torch[0], {0, 0, 5, 5}, 0.9, 1);
  expect_box(torch[1], {10, 20, 30, 40}, 0.5, 7);
  // Parts of the sides, top first, classes as floats that a name tells.
  const auto tf = Outputs()
                      .add<float>("detection_boxes", {1, 1, 4}, {0.4F, 0.1F, 0.8F, 0.3F})
                      .add<float>("detection_classes", {1, 1}, {7})
                      .add<float>("detection_scores", {1, 1}, {0.5F})
                      .add<float>("num_detections", {1}, {1})
                      .find({.corners = Corners::kYxyx});
  ASSERT_EQ(tf.size(), 1u);
  expect_box(tf[0], {10, 20, 30, 40}, 0.5, 7);
}

TEST(Boxes, FourOutputsOfTensorFlowsDetectors) {
  const std::vector<float> places = {0.2F, 0.1F, 0.8F, 0.3F, 0, 0, 1, 1, 0, 0, 1, 1};
  const std::vector<float> kinds = {3, 1, 0}, scores = {0.75F, 0.5F, 0.9F};
  // The third row stands behind the count.
  const auto ordered = Outputs()
                           .add<float>("d", {1, 3, 4}, places)
                           .add<float>("d:1", {1, 3}, kinds)
                           .add<float>("d:2", {1, 3}, scores)
                           .add<float>("d:3", {1}, {2});
  const auto shuffled = Outputs()
                            .add<float>("call:1", {1, 3}, scores)
                            .add<float>("call:3", {1, 3, 4}, places)
                            .add<float>("call:0", {1}, {2})
                            .add<float>("call:2", {1, 3}, kinds);
  for (const Outputs& outputs : {ordered, shuffled}) {
    for (const Form form : {Form::kAuto, Form::kCounted}) {
      const auto boxes = outputs.find({.form = form});
      ASSERT_EQ(boxes.size(), 2U);
      expect_box(boxes[0], {10, 10, 30, 40}, 0.75, 3);
      expect_box(boxes[1], {0, 0, 100, 50}, 0.5, 1);
    }
  }
  EXPECT_TRUE(Outputs()
                  .add<float>("d", {1, 3, 4}, places)
                  .add<float>("d:1", {1, 3}, kinds)
                  .add<float>("d:2", {1, 3}, scores)
                  .add<float>("d:3", {1}, {0})
                  .find()
                  .empty());
}

TEST(Boxes, NumbersThatAreNoBoxes) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), large = std::numeric_limits<float>::infinity();
  const BoxOptions rows{.form = Form::kRows};
  EXPECT_TRUE(
      Outputs()
          .add<float>("o", {6, 6}, {nan, 0, 1, 1, 0.9F, 1, 0, 0, large, 1, 0.9F, 1,   5, 5, 1, 9, 0.9F, 1,
                                    0,   0, 1, 1, nan,  1, 0, 0, 1,     1, 0.9F, nan, 0, 0, 1, 1, 0.9F, -1})
          .find(rows)
          .empty());
  EXPECT_TRUE(Outputs().add<float>("o", {0, 6}, {}).find().empty());
}

TEST(Boxes, OutputsOfNoForm) {
  EXPECT_THROW(Outputs().add<float>("logits", {1, 3}, {1, 2, 3}).find(), Error);
  EXPECT_THROW(Outputs().add<float>("o", {1, 6}, {1, 2, 3, 4, 0.5F, 1}).find({.form = Form::kTensors}),
               Error);
  EXPECT_THROW(parse_form("circles"), Error);
}

TEST(Picture, BoxesComeBackToWhereTheyAre) {
  image::Image picture{200, 50, 3, std::vector<uint8_t>(200 * 50 * 3, 0)};
  const Fitted fitted = fit_into(picture, 100, 100, Fit::kLetterbox);
  EXPECT_EQ(fitted.image.pixels.size(), 100u * 100 * 3);
  EXPECT_EQ(fitted.image.pixels.front(), 114);
  EXPECT_EQ(fitted.image.pixels[(50 * 100 + 50) * 3], 0);
  // The picture is 100 by 25 there, 37 below the top.
  const std::vector<Box> back =
      to_picture({{10, 47, 20, 200, 0.5, 1}, {0, 0, 100, 30, 0.5, 1}}, fitted, 200, 50);
  ASSERT_EQ(back.size(), 1u);
  expect_box(back[0], {20, 20, 40, 50}, 0.5, 1);
  const Fitted stretched = fit_into(picture, 100, 100, Fit::kStretch);
  expect_box(to_picture({{10, 40, 20, 60, 0.5, 1}}, stretched, 200, 50)[0], {20, 20, 40, 30}, 0.5, 1);
  // A line of pixels stays one.
  image::Image thin{1000, 1, 1, std::vector<uint8_t>(1000, 9)};
  EXPECT_EQ(fit_into(thin, 10, 10, Fit::kLetterbox).image.pixels.size(), 100u);
}

TEST(Picture, DrawnBoxesAreInTheFile) {
  image::Image picture{40, 30, 1, std::vector<uint8_t>(40 * 30, 200)};
  draw({{5, 6, 15, 16, 0.5, 0}, {-1e9, -1e9, 1e9, 1e9, 0.4, 1}}, picture);
  const std::string file = image::encode_png(picture);
  const image::Image read = image::decode(std::as_bytes(std::span(file.data(), file.size())));
  EXPECT_EQ(read.pixels, picture.pixels);
  const auto red = [&](int64_t x, int64_t y) { return read.pixels[static_cast<size_t>((y * 40 + x) * 3)]; };
  EXPECT_EQ(red(5, 6), 230);
  EXPECT_EQ(red(14, 15), 230);
  EXPECT_EQ(red(10, 10), 200);
  EXPECT_THROW(image::encode_png({}), Error);
}

}  // namespace
}  // namespace tensormill::detect
