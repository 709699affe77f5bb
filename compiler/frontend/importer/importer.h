/// A model of any format that can be imported: all that the driver, the interpreter, the server and the
/// command line see of the frontends. Formats are recognised by content. Thread-safety: const functions may
/// be called at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/frontend/onnx/free_dims/symbols.h"
#include "compiler/frontend/onnx/import.h"
#include "compiler/ir/variants.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::frontend {

using onnx::ImportOptions;
using onnx::Links;
using onnx::ModelFacts;
using onnx::ModelSource;
using onnx::SignatureValue;
using onnx::TakesSymbolic;
using onnx::ValueKind;
using onnx::with_symbols;

/// What can be called in a model, by its name.
struct NamedSignature {
  std::string name;
  std::vector<SignatureValue> inputs, outputs;
};

class Importer {
public:
  virtual ~Importer() = default;
  /// A row of formats.def: "onnx", "tflite", "tmg", "keras", "keras-h5", "pt2",
  /// "torchscript", "saved-model", "frozen-graph", "coreml", "mlpackage", "mxnet", "caffe2",
  /// "cntk".
  virtual std::string format() const = 0;
  /// The model's files and their digest.
  const ModelSource& source() const { return source_; }
  /// What a package holds of it, which may have another form that the format's importer reads, too.
  virtual const ModelSource& kept_source() const { return source_; }
  const Digest& digest() const { return source_.digest; }
  /// What can be said without importing.
  const ModelFacts& facts() const { return facts_; }
  /// The facts, and of inputs of which the model does not say how many dims they have what the options say.
  /// Throws kShapeRequired where these say nothing.
  virtual ModelFacts facts_at(const ImportOptions& /*options*/) const { return facts_; }
  /// The model's named signatures, in its order; empty where its format has none, or the model.
  virtual std::vector<NamedSignature> signatures() const { return {}; }
  /// The operators that cannot be imported, all of them; empty when none.
  virtual std::vector<ErrorDetail> unsupported() const = 0;
  /// The nodes as they stand in the file, with what a refused place is known by. No nodes where the format is
  /// the project's own: all that such a file may say can be imported. Throws where the file is broken.
  virtual FileGraph file_graph() const { return {}; }
  /// The graph for the options' shapes. Throws kInvalidModel; kOperatorNotImplemented with all of them;
  /// kShapeRequired where a free dim is bound by nothing.
  virtual ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const = 0;
  /// Graphs for each combination of the buckets, and of the dims that stay free the model with symbols, where
  /// `takes_symbolic` is given and takes it.
  virtual ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                          const ir::OpRegistry& ops,
                                          const TakesSymbolic& takes_symbolic) const;

protected:
  /// `signature`: as it was requested.
  explicit Importer(ModelSource source, std::string signature = {})
      : source_(std::move(source)), signature_(std::move(signature)) {}

  ModelFacts facts_;

private:
  const ModelSource source_;
  const std::string signature_;
};

/// The file's graph for who looks at why `error`, thrown by an import of `model`, refuses it: JSON of the
/// form Graph (api/schema), whose nodes say why each is refused. "" of an error that is not about operators,
/// and of a graph that is larger than anybody looks at.
std::string refused_graph(const Importer& model, const Error& error);

/// The importer of files by the content of the model itself: what is of no other format is an ONNX
/// model. `signature`: what of the model is imported; "": its first signature, or all that it is. Throws
/// Error(kInvalidModel) for one that is broken, Error(kInvalidArgument) naming the signatures that there are.
std::unique_ptr<Importer> make_importer(ModelSource source, const std::string& signature = "");
/// A model's file and what it names beside it, or the folder of a SavedModel, of an .mlpackage, of an
/// MXNet model or of a Caffe2 network. Throws kInvalidModel, kNotFound.
std::unique_ptr<Importer> open_importer(const std::string& path, Links links,
                                        const std::string& signature = "");
/// How integers that stand for real numbers are rounded: "": as fast kernels do; "exact": as the reference
/// kernels of the model's format do, bit for bit. Throws Error(kInvalidArgument) for another word,
/// Error(kNotSupported) for a format that has no such kernels.
void set_quantized(const Importer& model, const std::string& word, ImportOptions& options);
/// A tar or zip of an ONNX model and the files that it names, as onnx::open_archive.
std::unique_ptr<Importer> open_archive_importer(int fd, const std::string& folder, int64_t max_bytes);

}  // namespace tensormill::frontend
