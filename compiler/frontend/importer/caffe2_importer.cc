#include "compiler/frontend/importer/caffe2_importer.h"

#include <algorithm>
#include <filesystem>

#include "compiler/frontend/caffe2/import.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/formats/protobuf_format.h"
#include "compiler/frontend/importer/bind_inputs.h"
#include "compiler/frontend/importer/import_at.h"
#include "compiler/frontend/importer/model_facts.h"
#include "compiler/frontend/importer/source_files.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

namespace {

caffe2::LoadedModel load_caffe2(const ModelSource& source) {
  const SourceFiles files = files_of(source, caffe2::kPredictNet);
  return {files.owner, caffe2::read_model(files.files)};
}

class Caffe2Importer final : public Importer {
public:
  explicit Caffe2Importer(ModelSource source)
      : Importer(std::move(source)), loaded_(load_caffe2(this->source())) {
    facts_ = model_facts("Caffe2 ", caffe2::facts_of(model()));
    for (const caffe2::Input& input : model().inputs)
      facts_.inputs.push_back(
          signature_value(input.name, input.dtype, input.dims ? dim_shape(*input.dims) : any_shape()));
    for (const std::string& name : caffe2::output_names(model()))
      facts_.outputs.push_back(signature_value(name, DType::kFloat32, any_shape()));
    add_output_types();
  }

  std::string format() const override { return "caffe2"; }
  std::vector<ErrorDetail> unsupported() const override {
    return caffe2::missing_operators(model()).details();
  }
  FileGraph file_graph() const override { return caffe2::file_graph(model()); }

  ir::Graph import(const ImportOptions& options, const ir::OpRegistry& ops) const override {
    return with_facts(facts_, [&] {
      // What is not there is told before any shape is asked for.
      caffe2::missing_operators(model()).check();
      return caffe2::import_graph(loaded_, graph_request(facts_at(options), options), ops);
    });
  }

  ModelFacts facts_at(const ImportOptions& options) const override {
    ModelFacts facts = facts_;
    std::string without;
    for (size_t i = 0; i < facts.inputs.size(); ++i) {
      SignatureValue& input = facts.inputs[i];
      if (model().inputs[i].dims) continue;
      const auto given = options.input_shapes.find(input.name);
      const auto value = options.input_values.find(input.name);
      if (given != options.input_shapes.end()) {
        input.shape = given->second;
      } else if (value != options.input_values.end()) {
        input.shape.assign(value->second.shape().begin(), value->second.shape().end());
      } else {
        without += (without.empty() ? "\"" : ", \"") + input.name + "\"";
      }
    }
    if (without.empty()) return facts;
    with_facts(facts_, [&] { caffe2::missing_operators(model()).check(); });
    throw Error(ErrorCode::kShapeRequired,
                std::string("a Caffe2 network does not say the shapes of its inputs: give input_shapes of ") +
                    without + ", or " + caffe2::kValueInfo + " beside it");
  }

private:
  const caffe2::Model& model() const { return loaded_.model(); }

  /// How the extents of outputs follow from those of the inputs, where these are known and the operators can
  /// be imported.
  void add_output_types() {
    const auto has_dims = [](const caffe2::Input& input) { return input.dims.has_value(); };
    if (std::all_of(model().inputs.begin(), model().inputs.end(), has_dims)) set_output_types(facts_, *this);
  }

  const caffe2::LoadedModel loaded_;
};

}  // namespace

bool is_caffe2(std::string_view bytes) {
  return wire::is_archive(bytes) ? detect_format(bytes) == FileFormat::kCaffe2 : is_caffe2_net(bytes);
}

bool is_caffe2_net(std::string_view bytes) {
  return !wire::is_archive(bytes) && protobuf_format(bytes) == FileFormat::kCaffe2;
}

ModelSource open_caffe2(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path given(path);
  const bool is_folder = fs::is_directory(given);
  const fs::path folder = is_folder ? given : given.parent_path();
  const caffe2::NetNames names =
      is_folder ? caffe2::NetNames() : caffe2::net_names(given.filename().string());
  ModelSource source;
  source.model = MappedFile::open((folder / names.predict).string());
  std::error_code ignored;
  if (fs::is_regular_file(folder / names.init, ignored))
    source.external[caffe2::kInitNet] = MappedFile::open((folder / names.init).string());
  if (fs::is_regular_file(folder / caffe2::kValueInfo, ignored))
    source.external[caffe2::kValueInfo] = MappedFile::open((folder / caffe2::kValueInfo).string());
  source.digest = digest_of(source, "Caffe2");
  return source;
}

std::unique_ptr<Importer> make_caffe2_importer(ModelSource source) {
  return made_importer<Caffe2Importer>("Caffe2 network", std::move(source));
}

}  // namespace tensormill::frontend
