#include "runtime/host_ops/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/host_ops/recurrent_math.h"

namespace tensormill::host_ops {
namespace {

/// A step's operands and attributes, of which a test changes what it is about.
struct Call {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  Json attributes;

  void run() {
    std::vector<TensorView> views;
    std::vector<void*> targets;
    std::vector<size_t> bytes;
    for (const Tensor& input : inputs) views.push_back({input.dtype(), input.shape(), input.data()});
    for (Tensor& output : outputs) {
      targets.push_back(output.data());
      bytes.push_back(output.num_bytes());
    }
    const std::string text = attributes.dump();
    recurrent({views, targets, bytes, text});
  }
};

Tensor filled(DType dtype, const Shape& shape, double value) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element(i, value);
  return tensor;
}

Json attributes_of(const char* kind, const char* activations) {
  return {{"kind", kind},
          {"activations", activations},
          {"reverse", 0},
          {"lengths", 0},
          {"peepholes", 0},
          {"input_forget", 0},
          {"linear_before_reset", 0},
          {"alpha0", 1.},
          {"beta0", 1.},
          {"alpha1", 1.},
          {"beta1", 1.},
          {"alpha2", 1.},
          {"beta2", 1.}};
}

/// Three steps, two rows, a hidden size of 3: all weights are `weight`, what the inputs give is 1.
Call lstm(DType dtype = DType::kFloat32, double weight = 0.5) {
  return {{filled(dtype, {3, 2, 12}, 1), filled(dtype, {4, 1, 3, 16}, weight), filled(dtype, {1, 2, 3}, 0),
           filled(dtype, {1, 2, 3}, 0)},
          {Tensor(dtype, {3, 2, 3}), Tensor(dtype, {1, 2, 3}), Tensor(dtype, {1, 2, 3})},
          attributes_of("lstm", "Sigmoid,Tanh,Tanh")};
}

Call gru() {
  return {{filled(DType::kFloat32, {3, 2, 9}, 1), filled(DType::kFloat32, {3, 1, 3, 16}, 0.5),
           filled(DType::kFloat32, {1, 2, 3}, 0)},
          {Tensor(DType::kFloat32, {3, 2, 3}), Tensor(DType::kFloat32, {1, 2, 3})},
          attributes_of("gru", "Sigmoid,Tanh")};
}

/// A sum of 1, 2, 3 ...: h + 1 a step.
Call counter(int64_t steps, int64_t batch) {
  Call call{{filled(DType::kFloat64, {steps, batch, 1}, 1), filled(DType::kFloat64, {1, 1, 1, 16}, 1),
             filled(DType::kFloat64, {1, batch, 1}, 0)},
            {Tensor(DType::kFloat64, {steps, batch, 1}), Tensor(DType::kFloat64, {1, batch, 1})},
            attributes_of("rnn", "Affine")};
  call.attributes["beta0"] = 0.;
  return call;
}

std::vector<double> listed(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_double(i));
  return values;
}

using Doubles = std::vector<double>;

TEST(RecurrentTest, GoesFromStepToStep) {
  Call forward = counter(3, 1), reverse = counter(3, 1);
  forward.run();
  EXPECT_EQ(listed(forward.outputs[0]), (Doubles{1, 2, 3}));
  EXPECT_EQ(listed(forward.outputs[1]), (Doubles{3}));
  reverse.attributes["reverse"] = 1;
  reverse.run();
  EXPECT_EQ(listed(reverse.outputs[0]), (Doubles{3, 2, 1}));
}

TEST(RecurrentTest, StopsAtTheLengthOfEachRow) {
  for (const int reverse : {0, 1}) {
    Call call = counter(3, 4);
    call.attributes["lengths"] = 1;
    call.attributes["reverse"] = reverse;
    call.inputs.push_back(Tensor::from<int64_t>({4}, std::vector<int64_t>{2, 0, -5, INT64_MAX}));
    call.run();
    const Doubles wanted = reverse == 0 ? Doubles{1, 0, 0, 1, 2, 0, 0, 2, 0, 0, 0, 3}
                                        : Doubles{2, 0, 0, 3, 1, 0, 0, 2, 0, 0, 0, 1};
    EXPECT_EQ(listed(call.outputs[0]), wanted);
    EXPECT_EQ(listed(call.outputs[1]), (Doubles{2, 0, 0, 3}));
  }
}

TEST(RecurrentTest, RowsAreAloneHoweverManyThereAre) {
  Call call = counter(2, 70);
  for (int64_t row = 0; row < 70; ++row) call.inputs[2].set_element(row, static_cast<double>(row));
  call.run();
  for (int64_t row = 0; row < 70; ++row)
    EXPECT_EQ(call.outputs[1].element_as_double(row), static_cast<double>(row + 2));
}

TEST(RecurrentTest, CellsOfBothTypes) {
  Call narrow = lstm(), wide = lstm(DType::kFloat64);
  narrow.run();
  wide.run();
  double h = 0, c = 0;
  for (int64_t t = 0; t < 3; ++t) {
    const double sum = 1 + 0.5 * 3 * h, gate = 1 / (1 + std::exp(-sum));
    c = gate * c + gate * std::tanh(sum);
    h = gate * std::tanh(c);
    EXPECT_NEAR(narrow.outputs[0].element_as_double(t * 6 + 4), h, 1e-6);
    EXPECT_NEAR(wide.outputs[0].element_as_double(t * 6 + 4), h, 1e-14);
  }
  EXPECT_NEAR(narrow.outputs[2].element_as_double(5), c, 1e-6);
}

TEST(RecurrentTest, ExtentsOfNothing) {
  Call no_steps = counter(0, 2), no_rows = counter(2, 0);
  no_steps.inputs[2] = filled(DType::kFloat64, {1, 2, 1}, 7);
  no_steps.run();
  EXPECT_EQ(listed(no_steps.outputs[1]), (Doubles{7, 7}));
  no_rows.run();
}

TEST(RecurrentTest, WhatStandsBehindTheColumnsIsNotRead) {
  Call call = lstm(), clean = lstm();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t i = 0; i < call.inputs[1].num_elements(); ++i) {
    if (i % 16 >= 3) call.inputs[1].set_element(i, nan);
  }
  call.run();
  clean.run();
  EXPECT_EQ(listed(call.outputs[0]), listed(clean.outputs[0]));
}

void expect_refused(Call call, const std::string& what) {
  try {
    call.run();
    FAIL() << what << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage) << what << ": " << error.what();
  }
}

TEST(RecurrentTest, OperandsThatDoNotFitAreRefused) {
  for (size_t i = 0; i < 4; ++i) {
    for (const Shape& shape :
         {Shape{}, Shape{2}, Shape{1, 2, 4}, Shape{3, 2, 13}, Shape{3, 3, 12}, Shape{4, 1, 3, 15},
          Shape{4, 1, 4, 16}, Shape{4, 2, 3, 16}, Shape{1, 0, 3}, Shape{0, 0, 0}}) {
      Call call = lstm();
      call.inputs[i] = filled(DType::kFloat32, shape, 1);
      if (i != 0 || shape != Shape{3, 2, 12})
        expect_refused(call, std::to_string(i) + " " + to_string(shape));
    }
    Call call = lstm();
    call.inputs[i] = filled(i == 0 ? DType::kInt32 : DType::kFloat64, call.inputs[i].shape(), 1);
    expect_refused(call, "the type of input " + std::to_string(i));
  }
  for (size_t i = 0; i < 3; ++i) {
    Call call = lstm();
    call.outputs[i] = Tensor(DType::kFloat32, {3, 2, 4});
    expect_refused(call, "output " + std::to_string(i));
  }
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{5}}) {
    Call call = lstm();
    call.inputs.resize(count, filled(DType::kFloat32, {1, 2, 3}, 0));
    expect_refused(call, std::to_string(count) + " inputs");
  }
  Call call = lstm();
  call.outputs.pop_back();
  expect_refused(call, "two outputs");
  // An extent that no sum of 16 holds, of a tensor that has no element.
  Call large = counter(0, 0);
  large.inputs[0] = Tensor(DType::kFloat64, {0, 0, INT64_MAX / 8});
  large.inputs[2] = Tensor(DType::kFloat64, {1, 0, INT64_MAX / 8});
  expect_refused(large, "a large hidden size");
}

TEST(RecurrentTest, OptionalOperandsAreCounted) {
  const auto with = [](Call call, const char* flag, DType dtype, const Shape& shape) {
    call.attributes[flag] = 1;
    call.inputs.push_back(filled(dtype, shape, 0));
    return call;
  };
  with(lstm(), "peepholes", DType::kFloat32, {9}).run();
  with(gru(), "linear_before_reset", DType::kFloat32, {3}).run();
  with(gru(), "lengths", DType::kInt64, {2}).run();
  expect_refused(with(lstm(), "peepholes", DType::kFloat32, {3}), "short peepholes");
  expect_refused(with(lstm(), "linear_before_reset", DType::kFloat32, {3}), "a reset of an lstm");
  expect_refused(with(gru(), "peepholes", DType::kFloat32, {9}), "peepholes of a gru");
  expect_refused(with(gru(), "linear_before_reset", DType::kFloat32, {4}), "a long bias");
  expect_refused(with(gru(), "lengths", DType::kInt64, {3}), "three lengths");
  expect_refused(with(gru(), "lengths", DType::kInt32, {2}), "lengths of int32");
}

TEST(RecurrentTest, AttributesThatAreMissingOrWrongAreRefused) {
  const Json all = lstm().attributes;
  for (const auto& [name, value] : all.items()) {
    Call call = lstm();
    call.attributes.erase(name);
    expect_refused(call, "no " + name);
    call.attributes[name] = value.is_string() ? Json(3) : Json("Tanh");
    expect_refused(call, "another kind of " + name);
  }
  for (const char* names :
       {"", "Sigmoid,Tanh", "Sigmoid,Tanh,Tanh,Tanh", "Sigmoid,Tanh,Tanh,", ",,", "sigmoid,Tanh,Tanh"}) {
    Call call = lstm();
    call.attributes["activations"] = names;
    expect_refused(call, names);
  }
  Call clip = lstm(), no_object = lstm(), kind = lstm();
  clip.attributes["clip"] = "1";
  expect_refused(clip, "a clip of text");
  no_object.attributes = Json::array();
  expect_refused(no_object, "an array");
  kind.attributes["kind"] = "qrnn";
  expect_refused(kind, "an unknown kind");
  const Call call = lstm();
  EXPECT_THROW(recurrent({{}, {}, {}, "{"}), Error);
}

TEST(RecurrentMathTest, SigmoidAndTanhAreNear) {
  std::vector<float> points;
  for (float x = -30; x < 30; x += 0.0137F) points.push_back(x);
  for (const float x : {0.0F, -0.0F, 1e-40F, 1e-30F, 87.0F, -87.0F, -88.0F, 3e38F, -3e38F, 0.625F, -0.625F})
    points.push_back(x);
  points.resize((points.size() + kPanelColumns - 1) / kPanelColumns * kPanelColumns, 1);
  std::vector<float> sigmoids = points, tanhs = points;
  recurrent_math<float>().sigmoid(sigmoids.data(), sigmoids.size());
  recurrent_math<float>().tanh(tanhs.data(), tanhs.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const double x = static_cast<double>(points[i]), sigmoid = 1 / (1 + std::exp(-x)), tanh = std::tanh(x);
    EXPECT_NEAR(static_cast<double>(sigmoids[i]), sigmoid, 4e-7 * sigmoid + 1e-37) << x;
    EXPECT_NEAR(static_cast<double>(tanhs[i]), tanh, 4e-7 * std::fabs(tanh) + 1e-44) << x;
  }
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> ends(kPanelColumns, std::numeric_limits<float>::quiet_NaN());
  ends[0] = inf;
  ends[1] = -inf;
  std::vector<float> other = ends;
  recurrent_math<float>().sigmoid(ends.data(), ends.size());
  recurrent_math<float>().tanh(other.data(), other.size());
  EXPECT_EQ(ends[0], 1);
  EXPECT_EQ(ends[1], 0);
  EXPECT_EQ(other[0], 1);
  EXPECT_EQ(other[1], -1);
  EXPECT_TRUE(std::isnan(ends[2]) && std::isnan(other[2]));
}

/// Whole numbers: every order of summing gives the same.
template <typename T>
void check_products(bool backwards) {
  for (const size_t rows : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 23U}) {
    for (const size_t panels : {1U, 2U, 3U, 4U, 7U, 8U, 13U}) {
      const size_t depth = 5, columns = panels * kPanelColumns;
      std::vector<T> x(rows * 6), weights(panels * depth * kPanelColumns), sums(rows * columns, 1);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<int>(i * 7 % 11) - 5);
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<T>(static_cast<int>(i * 5 % 13) - 6);
      recurrent_math<T>().multiply_add(
          {x.data(), 6, rows, weights.data(), depth, panels, sums.data(), columns, backwards});
      for (size_t row = 0; row < rows; ++row) {
        for (size_t column = 0; column < columns; ++column) {
          T sum = 1;
          for (size_t k = 0; k < depth; ++k)
            sum += x[row * 6 + k] *
                   weights[(column / kPanelColumns * depth + k) * kPanelColumns + column % kPanelColumns];
          ASSERT_EQ(sums[row * columns + column], sum)
              << rows << " " << panels << " " << row << " " << column;
        }
      }
    }
  }
}

TEST(RecurrentMathTest, ProductsOfAnyNumberOfRowsAndPanels) {
  for (const bool backwards : {false, true}) {
    check_products<float>(backwards);
    check_products<double>(backwards);
  }
}

}  // namespace
}  // namespace tensormill::host_ops
