#include "compiler/frontend/importer/importer.h"

#include <filesystem>

#include "compiler/build/missing.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/graph_file/graph_file.h"
#include "compiler/frontend/importer/caffe2_importer.h"
#include "compiler/frontend/importer/cntk_importer.h"
#include "compiler/frontend/importer/coreml_importer.h"
#include "compiler/frontend/importer/graph_importer.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/keras_importer.h"
#include "compiler/frontend/importer/mxnet_importer.h"
#include "compiler/frontend/importer/pytorch_importer.h"
#include "compiler/frontend/importer/tensorflow_importer.h"
#include "compiler/frontend/importer/tflite_importer.h"
#include "compiler/frontend/importer/torchscript_importer.h"
#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/frontend/onnx/model/file_graph.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

class OnnxImporter final : public Importer {
public:
  explicit OnnxImporter(ModelSource source) : Importer(std::move(source)) {
    facts_ = onnx::read_facts(this->source());
  }

  std::string format() const override { return "onnx"; }
  std::vector<ErrorDetail> unsupported() const override { return onnx::unsupported_nodes(source()); }
  FileGraph file_graph() const override { return onnx::file_graph(source()); }
  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    return onnx::import_model(source(), options, ops);
  }
  ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                  const ir::OpRegistry& ops,
                                  const TakesSymbolic& takes_symbolic) const override {
    return onnx::import_for_package(source(), options, buckets, ops, takes_symbolic);
  }
};

}  // namespace

ir::Variants Importer::import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                          const ir::OpRegistry& ops,
                                          const TakesSymbolic& takes_symbolic) const {
  ir::Variants variants = import_at_shapes(*this, options, buckets, ops, takes_symbolic);
  keep_choices(variants, signature_, options);
  return variants;
}

std::unique_ptr<Importer> make_importer(ModelSource source, const std::string& signature) {
  const std::string_view bytes = source.model->text();
  if (is_tflite(bytes)) return make_tflite_importer(std::move(source), signature);
  if (is_tensorflow(bytes)) return make_tensorflow_importer(std::move(source), signature);
  if (is_coreml(bytes)) return make_coreml_importer(std::move(source), signature);
  if (!signature.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "signature \"" + signature + "\" was asked for; models of this format have none");
  if (is_mxnet(bytes)) return make_mxnet_importer(std::move(source));
  if (is_caffe2(bytes)) return make_caffe2_importer(std::move(source));
  if (is_cntk(bytes)) return make_cntk_importer(std::move(source));
  if (is_keras(bytes)) return make_keras_importer(std::move(source));
  if (is_pt2(bytes)) return make_pytorch_importer(std::move(source));
  if (is_torchscript(bytes)) return make_torchscript_importer(std::move(source));
  if (graph_file::is_graph_file(bytes)) return make_graph_importer(std::move(source));
  const bool is_known = detect_format(bytes) != FileFormat::kUnknown;
  try {
    return std::make_unique<OnnxImporter>(std::move(source));
  } catch (Error& error) {
    if (!is_known) error.add_context("the file is of no format that is known here; as an ONNX model");
    throw;
  }
}

std::unique_ptr<Importer> open_importer(const std::string& path, Links links, const std::string& signature) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const FileFormat format = detect_path(path);
    if (is_tfjs(format)) return make_importer(open_tfjs_model(path), signature);
    if (format == FileFormat::kMlPackage) return make_coreml_importer(open_mlpackage(path), signature);
    if (format == FileFormat::kMxnet) return make_importer(open_mxnet_model(path), signature);
    if (format == FileFormat::kCaffe2) return make_importer(open_caffe2(path), signature);
    return make_tensorflow_importer(open_saved_model(path), signature);
  }
  ModelSource source;
  source.model = MappedFile::open(path);
  const std::string_view bytes = source.model->text();
  if (is_saved_model_file(bytes)) return make_tensorflow_importer(open_saved_model(path), signature);
  if (is_tfjs_file(bytes)) return make_importer(open_tfjs_model(path), signature);
  if (is_mxnet_symbol(bytes)) return make_importer(open_mxnet_model(path), signature);
  if (is_mlmodel_file(bytes)) return make_coreml_importer(open_mlpackage(path), signature);
  if (is_caffe2_net(bytes)) return make_importer(open_caffe2(path), signature);
  const bool is_onnx = !is_tflite(bytes) && !is_keras(bytes) && !is_pt2(bytes) && !is_tensorflow(bytes) &&
                       !is_coreml(bytes) && !is_mxnet(bytes) && !is_caffe2(bytes) && !is_cntk(bytes) &&
                       !is_torchscript(bytes) && !graph_file::is_graph_file(bytes);
  if (is_onnx) return make_importer(onnx::open_model(path, links), signature);
  source.digest = Digest::of(source.model->bytes());
  return make_importer(std::move(source), signature);
}

std::string refused_graph(const Importer& model, const Error& error) {
  const bool is_of_operators = error.code() == ErrorCode::kOperatorNotImplemented ||
                               error.code() == ErrorCode::kOperatorAttributeNotImplemented;
  if (!is_of_operators || error.details().empty()) return {};
  const auto* missing = dynamic_cast<const build::MissingError*>(&error);
  return model.file_graph().json(missing == nullptr ? error.details() : missing->places());
}

void set_quantized(const Importer& model, const std::string& word, ImportOptions& options) {
  if (word.empty()) return;
  if (word != "exact")
    throw Error(ErrorCode::kInvalidArgument, "quantized: \"" + word + "\", expected \"exact\"");
  if (model.format() != "tflite")
    throw Error(ErrorCode::kNotSupported, "quantized: models of format \"" + model.format() +
                                              "\" have no reference kernels, TFLite files alone have");
  options.is_exact = true;
}

std::unique_ptr<Importer> open_archive_importer(int fd, const std::string& folder, int64_t max_bytes) {
  return make_importer(onnx::open_archive(fd, folder, max_bytes));
}

}  // namespace tensormill::frontend
