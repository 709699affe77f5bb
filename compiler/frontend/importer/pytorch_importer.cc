#include "compiler/frontend/importer/pytorch_importer.h"

#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/model_facts.h"
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
    DimShape shape;
    for (const pytorch::SymDim& size : meta.sizes) shape.push_back(dim_of(size));
    values.push_back(signature_value(port.name, pytorch::dtype_of(meta.dtype), std::move(shape)));
  }
  return values;
}

class PytorchImporter final : public Importer {
public:
  explicit PytorchImporter(ModelSource source)
      : Importer(std::move(source)),
        loaded_(this->source().model),
        ports_(pytorch::ports_of(loaded_.program())) {
    facts_ = model_facts("PyTorch ", pytorch::facts_of(loaded_.program()));
    facts_.inputs = signature_of(loaded_.program(), ports_.inputs);
    facts_.outputs = signature_of(loaded_.program(), ports_.outputs);
  }

  std::string format() const override { return "pt2"; }
  std::vector<ErrorDetail> unsupported() const override {
    return pytorch::missing_operators(loaded_.program()).details();
  }
  FileGraph file_graph() const override { return pytorch::file_graph(loaded_.program(), ports_); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const pytorch::ImportRequest request{graph_request(facts_, options), ports_};
    return with_facts(facts_, [&] { return pytorch::import_graph(loaded_, request, ops); });
  }

private:
  const pytorch::LoadedProgram loaded_;
  const pytorch::Ports ports_;
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
