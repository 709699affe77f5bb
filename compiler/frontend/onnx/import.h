/// From the bytes of an ONNX model to the graph IR. The wire format is read by field number from the mapped
/// file (no copy of the weights, no size limit of the generated protobuf classes, bounded depth); unknown
/// fields that change meaning are an error. Converters are rows of onnx_ops.def. Errors: kInvalidModel for a
/// broken or inconsistent file; kOperatorNotImplemented (or kOperatorAttributeNotImplemented) listing *all*
/// nodes that are not supported in details (pointer: node name, detail: "op Foo, opset 13, attribute bar:
/// …"), with the readable facts in extra_json. Thread-safety: pure functions.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/graph/value_kind.h"
#include "compiler/frontend/onnx/model/copied_tensors.h"
#include "compiler/ir/graph.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/quantization.h"
#include "runtime/base/shape.h"

namespace tensormill::frontend::onnx {

/// Bytes of the model and, for external data, of the files that it names.
struct ModelSource {
  std::shared_ptr<const MappedFile> model;
  /// Relative name in the model -> mapped bytes; only regular files inside the model's own folder or archive.
  std::map<std::string, std::shared_ptr<const MappedFile>> external;
  /// SHA-256 of the .onnx bytes, or, with external data, of the canonical list of names and digests of all
  /// files.
  Digest digest;
  /// Of the bytes above, which stay as long.
  std::shared_ptr<CopiedTensors> copies = std::make_shared<CopiedTensors>();
};

/// What happens to links among the files that a model names.
enum class Links : uint8_t {
  kRefused,
  /// Followed to files beneath the folder of the model, or beneath that of the file that the model is a link
  /// to: a download cache keeps all files in one folder, and links to them under their own names.
  kFollowed,
};
/// Opens MODEL.onnx and, when it names external data, the files beside it: regular files beneath its folder.
/// Throws kInvalidModel, kNotFound.
ModelSource open_model(const std::string& path, Links links = Links::kRefused);
/// Reads a tar or zip with one .onnx and the files that it names; members are unpacked into `folder`, which
/// is empty and belongs to the caller. Relative names without "..", regular files, together at most
/// `max_bytes` and what an archive of its size can plausibly hold. Throws kInvalidModel.
ModelSource open_archive(const std::string& path, const std::string& folder, int64_t max_bytes);
/// The same of an open regular file, whose offset moves.
ModelSource open_archive(int fd, const std::string& folder, int64_t max_bytes);

struct SignatureValue {
  std::string name;
  DType dtype = DType::kFloat32;
  DimShape shape;
  ValueKind kind = ValueKind::kTensor;
  std::optional<Quantization> quantization = {};
};

/// What can be said of a model without compiling it.
struct ModelFacts {
  std::string producer;
  int64_t ir_version = 0;
  std::map<std::string, int64_t> opsets;  ///< domain ("" is ai.onnx) -> version
  std::vector<SignatureValue> inputs;     ///< without initializers
  std::vector<SignatureValue> outputs;
  std::map<std::string, int64_t> ops;  ///< operator -> count, subgraphs included
  int64_t parameters = 0;              ///< elements of all initializers
  int64_t weight_bytes = 0;
};
/// Also checks the structure: names, cycles, dtypes, sizes of initializers against their data. Throws
/// kInvalidModel.
ModelFacts read_facts(const ModelSource& source);
/// The nodes that cannot be imported, all of them; empty when none. read_facts must have succeeded.
std::vector<ErrorDetail> unsupported_nodes(const ModelSource& source);

/// Of what form the graph is to be.
struct ImportForm {
  /// Also where their number is known, the elements along an axis are one tensor when they become a sequence,
  /// as they are where a run or a free dim decides about their number.
  bool stacks_elements = false;
  /// Names of the outputs that the graph is to have where it can: a sequence is one output, of its elements,
  /// though it is known how many there are, where its own name is among them; NAME.extents and NAME.present
  /// are there where these are, too.
  std::set<std::string> ports = {};
  /// Numbers that a run works out are symbols of the graph, also where no axis of an input is one.
  bool has_symbols = false;
};

struct ImportOptions {
  /// Shape per input name; -1 or a name as given; missing inputs keep the model's own shape. Free dims must
  /// be bound by one of them: else kShapeRequired naming input and dim. Strings may be given one extent more:
  /// the bytes that each may have, else kTextWidth.
  std::map<std::string, DimShape> input_shapes;
  /// Values of inputs that are fixed for good: such an input becomes a constant and leaves the signature. An
  /// input whose value decides about shapes or structure (a shape to reshape to, axes, a count) must be
  /// bound: else kShapeRequired, its details naming each such input.
  std::map<std::string, Tensor> input_values;
  /// Values that inputs have in the one run that the graph is made for: the graph computes with them as
  /// constants, and the inputs stay in its signature.
  std::map<std::string, Tensor> run_values = {};
  /// Types of the elements of an input that is a sequence, or of the one tensor that an optional input holds:
  /// each becomes an input "NAME/0", "NAME/1" ...; nothing: the optional value is empty. Of an input that is
  /// not listed, input_shapes say the elements under those names; where they don't, kShapeRequired. Sequences
  /// among the outputs become outputs of such names, or, where a run works out how many elements there are,
  /// one "NAME" of all and "NAME.extents"; optional values and sequences that data decides about have
  /// "NAME.present", too.
  std::map<std::string, std::optional<std::vector<ir::ValueType>>> input_elements;
  /// Axes that are symbols of the graph, by input and axis; their extents in input_shapes are the hints
  /// (ir/sym_int.h). Axes of one name are one symbol.
  std::map<std::string, std::map<size_t, std::string>> symbols = {};
  /// Names of values to return instead of the model's outputs; empty: the model's. kInvalidArgument for
  /// unknown names.
  std::vector<std::string> outputs;
  /// Integers that stand for real numbers are rounded as the format's reference kernels do, bit for bit; what
  /// has no such form is not implemented. Of TFLite files alone (Importer::set_quantized).
  bool is_exact = false;
  ImportForm form;
};
ir::Graph import_model(const ModelSource& source, const ImportOptions& options, const ir::OpRegistry& ops);
/// What an import has met.
struct ImportTally {
  bool has_switches = false;  ///< GraphBuilder::note_switch
};
struct ModelProto;
/// A model that is read and checked once, and imported at many shapes. The source outlives it.
class CheckedModel {
public:
  explicit CheckedModel(const ModelSource& source);
  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops,
                   ImportTally* tally = nullptr) const;
  /// How many imports there were, with those that threw.
  size_t imports() const { return imports_; }

private:
  mutable std::atomic<size_t> imports_ = 0;
  const ModelSource& source_;
  std::shared_ptr<const ModelProto> model_;
};
/// The model's inputs and outputs as import_model has them, with one node between them (ops/model_step.h):
/// for a model that cannot be imported before a run's values are known, which `reason` says. Of outputs it
/// has what the model declares: of a sequence NAME and NAME.extents, of an optional value NAME.present, too.
/// Throws kNotSupported for one of another kind, and what import_model throws of inputs and of nodes that are
/// not implemented.
ir::Graph import_as_step(const ModelSource& source, const ImportOptions& options, const ir::OpRegistry& ops,
                         const std::string& reason);

}  // namespace tensormill::frontend::onnx
