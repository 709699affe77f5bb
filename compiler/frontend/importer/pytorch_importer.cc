#include "compiler/frontend/importer/pytorch_importer.h"

#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/pytorch/file_graph.h"
#include "compiler/frontend/pytorch/import.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

Dim dim_of(const pytorch::SymDim& size) {
  if (size.value) return *size.value;
  const bool is_symbol = size.expr && size.expr->kind == pytorch::SymExpr::Kind::kSymbol;
  return is_symbol ? Dim(size.expr->name) : Dim(std::string());
}

std::vector<SignatureValue> signature_of(const pytorch::Program& program,
                                         const std::vector<pytorch::Port>& ports) {
  std::vector<SignatureValue> values;
  for (const pytorch::Port& port : ports) {
    const pytorch::TensorMeta& meta = program.graph.tensors.at(port.value);
    const std::optional<DType> dtype = pytorch::dtype_of(meta.dtype);
    SignatureValue value;
    value.name = port.name;
    value.kind = dtype ? ValueKind::kTensor : ValueKind::kOther;
    value.dtype = dtype.value_or(DType::kUInt8);
    for (const pytorch::SymDim& size : meta.sizes) value.shape.push_back(dim_of(size));
    values.push_back(std::move(value));
  }
  return values;
}

ModelFacts facts_of(const pytorch::Program& program, const pytorch::Ports& ports) {
  const FileFacts file = pytorch::facts_of(program);
  ModelFacts facts;
  facts.producer = "PyTorch " + file.version;
  facts.inputs = signature_of(program, ports.inputs);
  facts.outputs = signature_of(program, ports.outputs);
  facts.ops = file.ops;
  facts.parameters = file.parameters;
  facts.weight_bytes = file.weight_bytes;
  return facts;
}

class PytorchImporter final : public Importer {
public:
  explicit PytorchImporter(ModelSource source)
      : Importer(std::move(source)),
        loaded_(this->source().model),
        ports_(pytorch::ports_of(loaded_.program())),
        facts_(facts_of(loaded_.program(), ports_)) {}

  std::string format() const override { return "pt2"; }
  const ModelFacts& facts() const override { return facts_; }
  std::vector<ErrorDetail> unsupported() const override {
    return pytorch::unsupported_operators(loaded_.program());
  }
  FileGraph file_graph() const override { return pytorch::file_graph(loaded_.program(), ports_); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const pytorch::ImportRequest request{graph_request(facts_, options), ports_};
    return with_facts(facts_, [&] { return pytorch::import_graph(loaded_, request, ops); });
  }

  ir::Variants import_for_package(const ImportOptions& options, const ShapeBuckets& buckets,
                                  const ir::OpRegistry& ops,
                                  const TakesSymbolic& takes_symbolic) const override {
    return import_at_shapes(*this, options, buckets, ops, takes_symbolic);
  }

private:
  const pytorch::LoadedProgram loaded_;
  const pytorch::Ports ports_;
  const ModelFacts facts_;
};

}  // namespace

bool is_pt2(std::string_view bytes) {
  if (!wire::begins_as_zip(bytes)) return false;
  try {
    const wire::ZipFile zip(bytes);
    bool has_format = false, has_program = false;
    for (const npz::ZipMember& member : zip.members()) {
      const std::string& name = member.name;
      if (name.ends_with("serialized_exported_program.json")) return true;
      has_format = has_format || name.ends_with("archive_format");
      has_program = has_program || name.find("models/") != std::string::npos;
    }
    return has_format && has_program;
  } catch (const Error&) {
    // The reader of archives says what is broken.
    return false;
  }
}

std::unique_ptr<Importer> make_pytorch_importer(ModelSource source) {
  return made_importer<PytorchImporter>("PyTorch exported program", std::move(source));
}

}  // namespace tensormill::frontend
