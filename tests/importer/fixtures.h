/// Fixtures that lie beside what their frameworks make of them: their names, and whether a model gives those
/// numbers. Thread-safety: pure functions.
#pragma once

#include <filesystem>
#include <functional>

#include "tests/importer/imported.h"

namespace tensormill::frontend {

/// "FOLDER/NAME" of the files in folders of tests/fixtures that have that extension, in order.
inline std::vector<std::string> fixtures_in(const std::vector<std::string>& folders,
                                            const std::string& extension = ".npz") {
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    for (const auto& each : std::filesystem::directory_iterator(fixture_path(folder)))
      if (each.path().extension() == extension) names.push_back(folder + "/" + each.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The name of a test of a fixture: without the folder.
inline std::string label_of(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}

/// How far the numbers of an output may be from the wanted ones, of the largest of them.
using Tolerance = std::function<double(const Tensor& want)>;

/// The outputs are the wanted ones, by their names.
inline void expect_outputs(const Tensors& got, const Tensors& want, const Tolerance& tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [output, tensor] : want) {
    SCOPED_TRACE(output);
    ASSERT_EQ(got.count(output), 1u);
    expect_same(got.at(output), tensor, tolerance(tensor));
  }
}

/// FIXTURE.zip, or of another extension, is a model of that format which, at the extents of the inputs in
/// FIXTURE.npz, gives its outputs.
inline void expect_numbers_of(const std::string& fixture, const std::string& format,
                              const Tolerance& tolerance, const std::string& extension = ".zip") {
  const auto model = importer_of(fixture + extension);
  EXPECT_EQ(model->format(), format);
  const Tensors inputs = arrays_of(fixture + ".npz", "in.");
  ImportOptions options;
  for (const SignatureValue& input : model->facts().inputs) {
    DimShape& shape = options.input_shapes[input.name];
    ASSERT_EQ(inputs.count(input.name), 1u) << input.name;
    for (const int64_t extent : inputs.at(input.name).shape()) shape.emplace_back(extent);
  }
  const ir::Graph graph = model->import(options, ops::standard_ops());
  ir::verify(graph);
  expect_outputs(evaluated(graph, inputs), arrays_of(fixture + ".npz", "out."), tolerance);
}

}  // namespace tensormill::frontend
