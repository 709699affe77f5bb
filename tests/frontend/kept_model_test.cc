#include "compiler/frontend/onnx/free_dims/kept_model.h"

#include <gtest/gtest.h>

#include "compiler/frontend/importer/kept_import.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/frontend/model_bytes.h"

namespace tensormill::frontend::onnx {
namespace {

using frontend::KeptFiles;
using frontend::KeptImport;

/// y = Reshape(x, shape), of any number of rows.
ModelSource rows_model() {
  const std::string node = field(1, "x") + field(1, "shape") + field(2, "y") + field(4, "Reshape");
  return source_of(field(1, node) + field(2, "g") + field(11, tensor_value("x", 1, {"N", 3})) +
                   field(11, tensor_value("shape", 7, {1})) + field(12, field(1, "y")));
}

ImportOptions options() {
  ImportOptions options;
  options.input_values["shape"] = Tensor::from<int64_t>({1}, std::vector<int64_t>{-1});
  return options;
}

/// What a package holds of it.
KeptFiles files_of(const ir::KeptModel& model) {
  KeptFiles kept{{}, model.options, {"N"}, {"y"}};
  for (const auto& [name, tensor] : model.files)
    kept.files.emplace_back(
        name, MappedFile::part_of(std::make_shared<Tensor>(tensor),
                                  {static_cast<const std::byte*>(tensor.data()), tensor.num_bytes()}, name));
  return kept;
}

TEST(KeptModel, IsImportedAsItWas) {
  const ModelSource source = rows_model();
  const ir::KeptModel kept = keep_model(source, options(), false);
  EXPECT_EQ(kept.options, keep_model(source, options(), false).options);
  const KeptImport import(files_of(kept), ops::standard_ops());
  for (const int64_t n : {0, 1, 5}) {
    const ir::Graph graph = import.at({n});
    EXPECT_EQ(graph.output_names(), std::vector<std::string>{"y"});
    EXPECT_EQ(graph.value(graph.outputs()[0]).type.shape, (Shape{3 * n}));
  }
}

TEST(KeptModel, KeepsEveryOption) {
  ImportOptions all = options();
  all.input_shapes["x"] = {std::string("N"), int64_t{3}};
  all.input_values["half"] = Tensor::from<float>({2}, std::vector<float>{0.5f, -3});
  all.input_elements["none"] = std::nullopt;
  all.input_elements["list"] = {{DType::kFloat16, {2, 3}}, {DType::kInt64, {}}};
  all.outputs = {"y"};
  ModelSource source = rows_model();
  source.external["w.bin"] = MappedFile::part_of(nullptr, {}, "w.bin");
  const ir::KeptModel kept = keep_model(source, all, true);
  ASSERT_EQ(kept.files.size(), 2u);
  EXPECT_EQ(kept.files[1].first, "w.bin");
  const KeptImport import(files_of(kept), ops::standard_ops());
  EXPECT_EQ(keep_model(import.source(), import.options(), true).options, kept.options);
}

TEST(KeptModel, WhatIsNotThePackagesIsRefused) {
  const ir::KeptModel kept = keep_model(rows_model(), options(), false);
  const auto refuses = [&](const KeptFiles& files, const std::string& what) {
    expect_error(ErrorCode::kInvalidPackage, what, [&] { KeptImport(files, ops::standard_ops()); });
  };
  KeptFiles files = files_of(kept);
  files.free_dims = {"M"};
  refuses(files, "free dims are not the package's");
  files = files_of(kept);
  files.files.clear();
  refuses(files, "it has no files");
  for (const std::string text : {"{}", "[]", R"({"input_shapes":{"x":[[]]}})"}) {
    files = files_of(kept);
    files.options = text;
    refuses(files, "/model");
  }
}

}  // namespace
}  // namespace tensormill::frontend::onnx
