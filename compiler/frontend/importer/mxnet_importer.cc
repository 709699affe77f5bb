#include "compiler/frontend/importer/mxnet_importer.h"

#include <algorithm>
#include <filesystem>

#include "compiler/frontend/formats/archive_names.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/importer/source_files.h"
#include "compiler/frontend/mxnet/import.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

/// The names of the files in an archive, or of those beside a symbol, which has no name of its own.
mxnet::FileNames names_of(const ModelSource& source) {
  if (wire::is_archive(source.model->text())) return mxnet::file_names(archive_names(source.model->text()));
  for (const auto& [name, file] : source.external)
    if (mxnet::is_parameters(file->text())) return {"symbol.json", name};
  throw Error(ErrorCode::kInvalidModel,
              "a symbol without its parameters, NAME-0000.params: give a tar or zip of both files");
}

struct Loaded {
  explicit Loaded(const ModelSource& source) : Loaded(names_of(source), source) {}

  const SourceFiles files;
  const mxnet::LoadedModel model;
  const mxnet::Interface interface;

private:
  Loaded(const mxnet::FileNames& names, const ModelSource& source)
      : files(files_of(source, names.symbol)),
        model(files.owner, mxnet::read_model(names, files.files)),
        interface(mxnet::interface_of(model.model())) {}
};

class MxnetImporter final : public Importer {
public:
  explicit MxnetImporter(ModelSource source) : Importer(std::move(source)), loaded_(this->source()) {
    facts_ = model_facts("MXNet ", mxnet::facts_of(loaded_.model.model()));
    for (const mxnet::Input& input : loaded_.interface.inputs)
      facts_.inputs.push_back(signature_value(input.name, input.dtype, dim_shape(input.dims)));
    for (const mxnet::Output& output : loaded_.interface.outputs)
      facts_.outputs.push_back(signature_value(output.name, DType::kFloat32, {}));
    add_output_types();
  }

  std::string format() const override { return "mxnet"; }
  std::vector<ErrorDetail> unsupported() const override {
    return mxnet::missing_operators(loaded_.model.symbol(), loaded_.interface).details();
  }
  FileGraph file_graph() const override {
    return mxnet::file_graph(loaded_.model.model(), loaded_.interface);
  }

  ModelFacts facts_at(const ImportOptions& options) const override {
    ModelFacts facts = facts_;
    for (size_t i = 0; i < facts.inputs.size(); ++i) {
      const mxnet::Input& input = loaded_.interface.inputs[i];
      const auto given = options.input_shapes.find(input.name);
      if (given == options.input_shapes.end()) {
        if (input.has_rank) continue;
        throw Error(ErrorCode::kShapeRequired,
                    "input \"" + input.name + "\" has no shape in the model; give it with input_shapes");
      }
      const bool is_open = !input.has_rank || (input.is_guess && given->second.size() != input.dims.size());
      if (!is_open) continue;
      facts.inputs[i].shape = given->second;
      for (Dim& dim : facts.inputs[i].shape)
        if (const auto* extent = std::get_if<int64_t>(&dim); extent != nullptr && *extent < 0)
          dim = std::string();
    }
    return facts;
  }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    const build::GraphRequest request = graph_request(facts_at(options), options);
    return with_facts(facts_,
                      [&] { return mxnet::import_graph(loaded_.model, loaded_.interface, request, ops); });
  }

private:
  /// How the extents of outputs follow from those of the inputs, where the shapes of these are known and the
  /// operators can be imported.
  void add_output_types() {
    const bool is_known = std::all_of(loaded_.interface.inputs.begin(), loaded_.interface.inputs.end(),
                                      [](const mxnet::Input& input) { return input.has_rank; });
    if (is_known) set_output_types(facts_, *this);
  }

  const Loaded loaded_;
};

}  // namespace

bool is_mxnet(std::string_view bytes) {
  return (wire::is_archive(bytes) || is_mxnet_symbol(bytes)) && detect_format(bytes) == FileFormat::kMxnet;
}

bool is_mxnet_symbol(std::string_view bytes) {
  const size_t first = bytes.substr(0, 4096).find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] == '{' && detect_format(bytes) == FileFormat::kMxnet;
}

ModelSource open_mxnet_model(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  const mxnet::FileNames names = mxnet::file_names_at(path);
  ModelSource source;
  source.model = MappedFile::open((folder / names.symbol).string());
  source.external[names.parameters] = MappedFile::open((folder / names.parameters).string());
  source.digest = digest_of(source, "MXNet");
  return source;
}

std::unique_ptr<Importer> make_mxnet_importer(ModelSource source) {
  return made_importer<MxnetImporter>("MXNet model", std::move(source));
}

}  // namespace tensormill::frontend
