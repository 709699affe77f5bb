#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "compiler/frontend/caffe2/loaded_model.h"
#include "compiler/frontend/cntk/loaded_model.h"
#include "compiler/frontend/coreml/loaded_model.h"
#include "compiler/frontend/formats/detect.h"
#include "compiler/frontend/keras/model.h"
#include "compiler/frontend/mxnet/import.h"
#include "compiler/frontend/pytorch/graph_json.h"
#include "compiler/frontend/pytorch/script/parser.h"
#include "compiler/frontend/pytorch/unpickle.h"
#include "compiler/frontend/tensorflow/model.h"
#include "compiler/frontend/tensorflow/tfjs.h"
#include "compiler/frontend/tflite/facts.h"
#include "compiler/frontend/tflite/model.h"
#include "compiler/frontend/tflite/notes.h"
#include "compiler/frontend/wire/checkpoint/crc32c.h"
#include "compiler/frontend/wire/checkpoint/sstable.h"
#include "compiler/frontend/wire/flexbuffer.h"
#include "compiler/frontend/wire/pickle.h"
#include "compiler/frontend/wire/tfjs_weights.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/file.h"
#include "runtime/base/memory_file.h"
#include "tests/fuzz/targets.h"
#include "tests/zip_bytes.h"

namespace tensormill::fuzz {

namespace {

/// Aligned as a file is.
std::shared_ptr<const MappedFile> mapping_of(std::string_view bytes) {
  const FileDescriptor fd(::memfd_create("input", MFD_CLOEXEC));
  write_all(fd.get(), bytes, "input");
  return MappedFile::map(fd.get(), "input");
}

}  // namespace

void fuzz_tflite(std::string_view bytes) {
  namespace tflite = frontend::tflite;
  const auto file = mapping_of(bytes);
  const tflite::Model model = tflite::read_model(file->text());
  for (const tflite::Subgraph& graph : model.subgraphs) {
    for (const tflite::Tensor& tensor : graph.tensors) {
      if (tensor.sparsity && tensor.is_constant) attempt([&] { tflite::densify(tensor, uint64_t{1} << 20); });
      if (tensor.type == tflite::TensorType::kString && tensor.is_constant)
        attempt([&] { tflite::read_strings(tensor.data, 10'000); });
    }
  }
  attempt([&] { tflite::read_notes(model); });
  attempt([&] { tflite::associated_files(file->text()); });
  const frontend::FileFacts facts = tflite::read_facts(file->text());
  TM_CHECK(!frontend::to_json(facts).dump().empty() && !frontend::to_text(facts).empty(),
           "facts without words");
}

void fuzz_flexbuffer(std::string_view bytes) {
  frontend::wire::flexbuffer_to_json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void fuzz_pickle(std::string_view bytes) {
  for (const std::string& name : frontend::wire::pickle_imports(bytes))
    TM_CHECK(name.find('.') != std::string::npos, "an import without a module");
}

void fuzz_torch_save(std::string_view bytes) {
  namespace pytorch = frontend::pytorch;
  // In an archive whose checksums are right.
  const std::string archive = frontend::stored_zip({{"net/data.pkl", std::string(bytes)},
                                                    {"net/data/0", std::string(24, '\1')},
                                                    {"net/data/1", std::string(8, '\1')}});
  frontend::wire::ZipFile zip(archive);
  for (const auto& [name, tensor] : pytorch::read_saved_tensors(zip)) {
    pytorch::check_stored(tensor, name);
    attempt([&stored = tensor] { pytorch::contiguous_bytes(stored, uint64_t{1} << 16); });
  }
}

void fuzz_keras_config(std::string_view bytes) {
  namespace keras = frontend::keras;
  keras::Model model;
  model.network = keras::read_network(parse_json(bytes));
  keras::facts_of(model, "keras");
}

void fuzz_pt2_graph(std::string_view bytes) {
  namespace pytorch = frontend::pytorch;
  const Json module = parse_json(bytes);
  pytorch::Program program;
  frontend::wire::WorkBudget values("values", 100'000);
  program.graph = pytorch::read_graph(pytorch::json_member(module, "graph", "the module"), values);
  pytorch::read_signature(pytorch::json_member(module, "signature", "the module"), program);
  for (const auto& [name, meta] : program.graph.tensors) {
    for (const pytorch::SymDim& dim : meta.sizes) {
      if (!dim.expr) continue;
      const std::string text = pytorch::to_string(*dim.expr);
      if (text.size() > 10'000) continue;
      TM_CHECK(pytorch::to_string(pytorch::parse_sym_expr(text)) == text, "the expression changed: " + text);
    }
  }
  pytorch::facts_of(program);
}

void fuzz_torchscript(std::string_view bytes) {
  namespace script = frontend::pytorch::script;
  script::Code code;
  script::parse_code(bytes, "code/__torch__/net.py", "__torch__.net", code);
  for (const auto& [name, made] : code.classes) {
    TM_CHECK(name.starts_with("__torch__.net.") && name == made.name, "class " + name);
    for (const auto& [method, function] : made.methods) TM_CHECK(method == function.name, "method " + method);
  }
  for (const auto& [name, function] : code.functions)
    for (const script::Parameter& parameter : function.parameters)
      if (parameter.type) script::type_text(*parameter.type);
}

void fuzz_graph_def(std::string_view bytes) {
  namespace tensorflow = frontend::tensorflow;
  attempt([&] { tensorflow::facts_of(tensorflow::read_graph(bytes)); });
  const tensorflow::ModelFiles files = [&](const std::string& name) -> std::optional<std::string_view> {
    if (name == "saved_model.pb") return bytes;
    return std::nullopt;
  };
  tensorflow::facts_of(tensorflow::read_saved_model(files));
}

/// model.json up to the first NUL; behind it the files of weights: those whose names begin with "a" are the
/// first half, "none" is not there, others are the second half.
void fuzz_tfjs(std::string_view bytes) {
  namespace keras = frontend::keras;
  namespace tensorflow = frontend::tensorflow;
  namespace wire = frontend::wire;
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view text = bytes.substr(0, end), data = bytes.substr(std::min(end + 1, bytes.size()));
  attempt([&] {
    for (const std::string& name : wire::tfjs_weight_files(wire::read_tfjs_json(text)))
      TM_CHECK(!name.empty() && name.find('/') == std::string::npos, "a file that does not lie beside");
  });
  const wire::ModelFiles files = [&](const std::string& name) -> std::optional<std::string_view> {
    if (name == wire::kTfjsFile) return text;
    if (name == "none") return std::nullopt;
    return name.starts_with("a") ? data.substr(0, data.size() / 2) : data.substr(data.size() / 2);
  };
  attempt([&] {
    const keras::Model layers = keras::read_layers_model(files);
    for (const keras::Layer& layer : layers.network.layers) {
      for (const keras::Weight& weight : layer.weights)
        TM_CHECK(weight.data.size() == static_cast<size_t>(num_bytes(weight.shape, weight.dtype)),
                 "a weight of another size");
    }
  });
  const tensorflow::TfjsModel model = tensorflow::read_tfjs_model(files);
  const frontend::FileFacts facts = tensorflow::facts_of(model);
  TM_CHECK(!frontend::to_json(facts).dump().empty() && !frontend::to_text(facts).empty(),
           "facts without words");
}

void fuzz_sstable(std::string_view bytes) { frontend::wire::read_sstable(bytes); }

namespace {

/// What the constants of a block say, and those of blocks within.
void read_constants(const frontend::coreml::LoadedModel& model, const frontend::coreml::Block& block) {
  for (const frontend::coreml::Operation& node : block.operations) {
    for (const auto& attribute : node.attributes) {
      // Sizes that a few bytes can say are bounded by what tensors may have.
      attempt([&] {
        TM_CHECK(model.constant(attribute.second).num_elements() >= 0, "a negative number of elements");
      });
    }
    for (const frontend::coreml::Block& inner : node.blocks) read_constants(model, inner);
  }
}

}  // namespace

/// Four bytes, the size of a weight file, which follows; behind it model.mlmodel. All of it as a manifest.
void fuzz_coreml(std::string_view bytes) {
  namespace coreml = frontend::coreml;
  attempt([&] {
    const std::string path = coreml::model_path(bytes);
    TM_CHECK(path.starts_with("Data/") && path.find("/../") == std::string::npos, "a path outside");
  });
  uint32_t size = 0;
  if (bytes.size() < sizeof(size)) return;
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  const auto weights = mapping_of(bytes.substr(0, size));
  const auto file = mapping_of(bytes.substr(std::min<size_t>(size, bytes.size())));
  const frontend::FileFacts facts = coreml::facts_of(coreml::read_model(file->text()), "coreml");
  TM_CHECK(!frontend::to_json(facts).dump().empty() && !frontend::to_text(facts).empty(),
           "facts without words");
  const coreml::LoadedModel model(weights, coreml::read_model(file->text()),
                                  [&](const std::string&) { return std::optional(weights->text()); });
  attempt([&] {
    for (const std::string& name : coreml::weight_files(model.model()))
      TM_CHECK(!name.empty() && name.front() != '/' && ("/" + name + "/").find("/../") == std::string::npos,
               "a path outside");
  });
  for (const coreml::Function& function : model.model().functions) read_constants(model, function.block);
}

/// A symbol, a NUL, and the file of its parameters.
void fuzz_mxnet(std::string_view bytes) {
  namespace mxnet = frontend::mxnet;
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const auto file = mapping_of(bytes.substr(std::min(end + 1, bytes.size())));
  attempt([&] {
    const mxnet::LoadedModel alone(file, {{}, mxnet::read_parameters(file->text())});
    for (const auto& [name, parameter] : alone.model().parameters)
      TM_CHECK(alone.tensor(parameter).num_bytes() == parameter.bytes.size(), "a parameter of another size");
  });
  const mxnet::Model model{mxnet::read_symbol(bytes.substr(0, end)), mxnet::read_parameters(file->text())};
  const mxnet::Interface interface = mxnet::interface_of(model);
  const frontend::FileFacts facts = mxnet::facts_of(model);
  TM_CHECK(!frontend::to_json(facts).dump().empty() && !frontend::to_text(facts).empty(),
           "facts without words");
  static_cast<void>(mxnet::file_graph(model, interface).json({}));
}

/// Four bytes, the size of the net that fills, which follows; behind it the net that computes. All of it as
/// value_info.json.
void fuzz_caffe2(std::string_view bytes) {
  namespace caffe2 = frontend::caffe2;
  attempt([&] { caffe2::read_value_info(bytes); });
  uint32_t size = 0;
  if (bytes.size() < sizeof(size)) return;
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  const auto init = mapping_of(bytes.substr(0, size));
  const auto predict = mapping_of(bytes.substr(std::min<size_t>(size, bytes.size())));
  const auto files = [&](const std::string& name) -> std::optional<std::string_view> {
    if (name == caffe2::kValueInfo) return std::nullopt;
    return name == caffe2::kInitNet ? init->text() : predict->text();
  };
  const caffe2::LoadedModel model(init, caffe2::read_model(files));
  const frontend::FileFacts facts = caffe2::facts_of(model.model());
  TM_CHECK(!frontend::to_json(facts).dump().empty() && !frontend::to_text(facts).empty(),
           "facts without words");
  for (const caffe2::Operator& fill : model.model().init.operators) {
    const std::optional<int64_t> elements = caffe2::filled_elements(fill);
    const bool is_small = fill.type != "ConstantFill" || !elements || *elements <= caffe2::kMostEqual;
    if (!caffe2::is_fill(fill.type) || !is_small) continue;
    attempt([&] {
      const Tensor made = model.filled(fill);
      // What there is, is read to its end.
      if (made.num_elements() > 0) static_cast<void>(made.element_as_double(made.num_elements() - 1));
    });
  }
}

void fuzz_cntk(std::string_view bytes) {
  namespace cntk = frontend::cntk;
  const auto file = mapping_of(bytes);
  const cntk::LoadedModel model(file, cntk::read_model(file->text()));
  const frontend::FileFacts facts = cntk::facts_of(model.model());
  TM_CHECK(!frontend::to_json(facts).dump().empty() && !frontend::to_text(facts).empty(),
           "facts without words");
  static_cast<void>(cntk::file_graph(model.model(), model.walk()).json({}));
  for (const cntk::Variable& variable : model.model().variables) {
    if (!variable.value) continue;
    attempt([&] {
      const Tensor made = model.tensor(variable);
      // What there is, is read to its end.
      if (made.num_elements() > 0) static_cast<void>(made.element_as_double(made.num_elements() - 1));
    });
  }
}

void fuzz_model_format(std::string_view bytes) {
  const auto file = mapping_of(bytes);
  const frontend::FileFormat format = frontend::detect_format(file->text());
  // libhdf5 is no part of what is tried here.
  if (format == frontend::FileFormat::kKeras || format == frontend::FileFormat::kKerasH5) return;
  attempt([&] {
    const std::optional<frontend::FileFacts> facts = frontend::read_file_facts(file->text(), format);
    TM_CHECK(!facts || !frontend::to_text(*facts).empty(), "facts without words");
  });
  // Beside the file of a model in JSON lie others, which here would be any.
  const bool is_alone =
      format != frontend::FileFormat::kTfjsGraph && format != frontend::FileFormat::kTfjsLayers;
  const FileDescriptor open = memory_file("model", bytes);
  const std::string path = "/proc/self/fd/" + std::to_string(open.get());
  TM_CHECK(frontend::detect_path(path) == format, "another format by its path");
  if (is_alone) attempt([&] { frontend::read_path_facts(path, format); });
  if (format == frontend::FileFormat::kUnknown || frontend::format_row(format).is_importable) {
    frontend::check_importable(file->text());
    return;
  }
  check_error(frontend::not_importable(format));
}

}  // namespace tensormill::fuzz
