/// Models of the fixtures as graphs, and what the operators' references make of them. Thread-safety: pure
/// functions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "compiler/frontend/importer/importer.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "runtime/base/text.h"
#include "runtime/npz/npz.h"

namespace tensormill::frontend {

using Tensors = std::map<std::string, Tensor>;

inline std::string fixture_path(const std::string& name) {
  return std::string(TM_SOURCE_DIR) + "/tests/fixtures/" + name;
}

inline std::unique_ptr<Importer> importer_of(const std::string& fixture) {
  return open_importer(fixture_path(fixture), Links::kRefused);
}

/// The inputs of a model at their shapes, each free dim at that extent.
inline ImportOptions at_free_extent(const Importer& model, int64_t free) {
  ImportOptions options;
  for (const SignatureValue& input : model.facts().inputs) {
    DimShape& shape = options.input_shapes[input.name] = input.shape;
    for (Dim& dim : shape) {
      const auto* extent = std::get_if<int64_t>(&dim);
      if (extent == nullptr || *extent < 0) dim = free;
    }
  }
  return options;
}

/// Inputs at the shapes of arrays.
inline ImportOptions at_shapes_of(const Tensors& inputs) {
  ImportOptions options;
  for (const auto& [input, tensor] : inputs)
    options.input_shapes[input] = DimShape(tensor.shape().begin(), tensor.shape().end());
  return options;
}

/// The members of an NPZ file whose names begin with `prefix`, without it.
inline Tensors arrays_of(const std::string& fixture, const std::string& prefix) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(fixture_path(fixture));
  Tensors arrays;
  for (const auto& member : npz::read_npz(file->bytes())) {
    if (member.name.starts_with(prefix))
      arrays.insert_or_assign(member.name.substr(prefix.size()), member.tensor);
  }
  return arrays;
}

inline Tensors evaluated(const ir::Graph& graph, const Tensors& inputs) {
  std::vector<Tensor> given;
  for (const ir::ValueId id : graph.inputs()) {
    const ir::Value& input = graph.value(id);
    const Tensor& tensor = inputs.at(input.name);
    given.push_back(tensor.dtype() != kString ? tensor
                                              : fitted_text({tensor.dtype(), tensor.shape(), tensor.data()},
                                                            input.type.shape.back()));
  }
  const std::vector<Tensor> results = ir::evaluate_reference(graph, given);
  Tensors outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.insert_or_assign(graph.value(graph.outputs()[i]).name, results[i]);
  return outputs;
}

/// Integers and bools are equal up to `quanta`; floats up to `tolerance` of the largest number.
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance, double quanta = 0) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  double most = 0, apart = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    ASSERT_EQ(std::isnan(got.element_as_double(i)), std::isnan(want.element_as_double(i))) << "element " << i;
    most = std::max(most, std::fabs(want.element_as_double(i)));
    apart = std::max(apart, std::fabs(want.element_as_double(i) - got.element_as_double(i)));
  }
  EXPECT_LE(apart, is_float(want.dtype()) ? tolerance * std::max(most, 1e-6) : quanta) << "of " << most;
}

inline std::vector<std::string> texts_of(const Tensor& tensor) {
  const Texts texts({tensor.dtype(), tensor.shape(), tensor.data()});
  std::vector<std::string> all;
  for (int64_t i = 0; i < texts.count(); ++i) all.emplace_back(texts[i]);
  return all;
}

/// Finite numbers are close, of the largest one; integers, strings and what is no finite number are the same.
inline void expect_same(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.dtype(), want.dtype());
  if (want.dtype() == kString) {
    ASSERT_EQ(shown_shape(kString, got.shape()), shown_shape(kString, want.shape()));
    EXPECT_EQ(texts_of(got), texts_of(want));
    return;
  }
  ASSERT_EQ(got.shape(), want.shape());
  double most = 1e-6, apart = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double number = got.element_as_double(i), wanted = want.element_as_double(i);
    if (std::isfinite(number) && std::isfinite(wanted)) {
      most = std::max(most, std::fabs(wanted));
      apart = std::max(apart, std::fabs(number - wanted));
      continue;
    }
    EXPECT_TRUE(number == wanted || (std::isnan(number) && std::isnan(wanted)))
        << "element " << i << ": " << number << ", expected " << wanted;
  }
  EXPECT_LE(apart, is_float(want.dtype()) ? tolerance * most : 0) << "of " << most;
}

}  // namespace tensormill::frontend
