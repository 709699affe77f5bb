// What is right beside a reference, and how what is wrong is told.
#include "server/services/jobs/output_check.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::server {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <typename T>
npz::NamedTensor tensor(const std::string& name, const std::vector<T>& values) {
  return {name, Tensor::from<T>({static_cast<int64_t>(values.size())}, values)};
}

/// "" where it is right.
std::string mistake(const npz::NamedTensor& expected, const npz::NamedTensor& got,
                    const Tolerance& tolerance = {}) {
  try {
    check_outputs({expected}, {got}, tolerance);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kWrongAnswer);
    return error.message();
  }
}

TEST(OutputCheck, FloatsAreHeldAgainstTheLargestOfTheirTensor) {
  const auto reference = tensor<float>("y", {1000, 0.001F, -4});
  const Json told = check_outputs({reference}, {tensor<float>("y", {1000.5F, 0.25F, -4})}, {});
  EXPECT_EQ(told[0]["name"], "y");
  EXPECT_EQ(told[0]["elements"], 3);
  EXPECT_EQ(told[0]["max_abs_error"], 0.5);
  EXPECT_EQ(told[0]["largest"], 1000);
  EXPECT_EQ(mistake(reference, tensor<float>("y", {1000, 2, -6})),
            "output y: 2 of 3 elements are wrong, most of all element 2: -6, the reference gives -4");
  EXPECT_EQ(mistake(reference, tensor<float>("y", {1000, 2, -6}), {0, 2}), "");
  EXPECT_NE(mistake(reference, tensor<float>("y", {1000, 2, -6}), {0, 1.9}), "");
}

TEST(OutputCheck, WhatIsNoNumberIsRightWhereTheReferenceHasIt) {
  const auto reference = tensor<float>("y", {kNan, kInf, -kInf, 1});
  EXPECT_EQ(mistake(reference, reference), "");
  for (const std::vector<float>& wrong : {std::vector<float>{0, kInf, -kInf, 1},
                                          {kNan, 1, -kInf, 1},
                                          {kNan, kInf, kInf, 1},
                                          {kNan, kInf, -kInf, kNan}})
    EXPECT_NE(mistake(reference, tensor<float>("y", wrong), {1e300, 1e300}), "");
}

TEST(OutputCheck, WholeNumbersAreExactUnlessItIsSaid) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  EXPECT_NE(mistake(tensor<int64_t>("n", {kLarge}), tensor<int64_t>("n", {kLarge + 1})), "")
      << "doubles are the same";
  EXPECT_EQ(mistake(tensor<int8_t>("n", {5, 7}), tensor<int8_t>("n", {6, 7}), {0, 1}), "");
  EXPECT_NE(mistake(tensor<int8_t>("n", {5, 7}), tensor<int8_t>("n", {7, 7}), {1, 1}), "");
}

TEST(OutputCheck, NamesShapesAndTypesAreTheReferences) {
  const auto reference = tensor<float>("y", {1, 2});
  EXPECT_EQ(mistake(reference, tensor<float>("z", {1, 2})), "output y is missing");
  EXPECT_EQ(mistake(reference, tensor<float>("y", {1})), "output y is f32[1], the reference gives f32[2]");
  EXPECT_EQ(mistake(reference, tensor<int32_t>("y", {1, 2})),
            "output y is i32[2], the reference gives f32[2]");
}

TEST(OutputCheck, StringsMayBeWiderHereThanThere) {
  const auto texts = [](const std::vector<std::string>& of) {
    return npz::NamedTensor{"t", text_tensor({2}, of)};
  };
  const auto wider = npz::NamedTensor{
      "t", fitted_text({kString, {2, 3}, text_tensor({2}, std::vector<std::string>{"abc", "d"}).data()}, 9)};
  EXPECT_EQ(mistake(texts({"abc", "d"}), wider), "");
  EXPECT_EQ(mistake(texts({"abc", "d"}), texts({"abc", "e"})),
            "output t: 1 of 2 elements are wrong, most of all element 1: \"e\", the reference gives \"d\"");
}

}  // namespace
}  // namespace tensormill::server
