#include "compiler/frontend/formats/detect.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "compiler/frontend/caffe2/model.h"
#include "compiler/frontend/cntk/model.h"
#include "compiler/frontend/coreml/model.h"
#include "compiler/frontend/formats/archive_names.h"
#include "compiler/frontend/formats/protobuf_format.h"
#include "compiler/frontend/keras/model.h"
#include "compiler/frontend/mxnet/model.h"
#include "compiler/frontend/pytorch/model.h"
#include "compiler/frontend/pytorch/script/module.h"
#include "compiler/frontend/tensorflow/model.h"
#include "compiler/frontend/tensorflow/tfjs.h"
#include "compiler/frontend/tflite/facts.h"
#include "compiler/frontend/wire/archive_files.h"
#include "compiler/frontend/wire/pickle.h"
#include "compiler/frontend/wire/tfjs_weights.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/file.h"
#include "runtime/base/json_reader.h"

namespace tensormill::frontend {

namespace {

constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n";
/// "BCN" and an end, in wide characters of two bytes or of four.
constexpr std::string_view kCntkV1Mark("B\0C\0N\0\0\0", 8);
constexpr std::string_view kCntkV1WideMark("B\0\0\0C\0\0\0N\0\0\0\0\0\0\0", 16);
/// The number that torch.save wrote first, before it wrote zips.
constexpr std::string_view kOldTorchMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);

using Names = std::set<std::string>;

bool ends_in(const Names& names, std::string_view suffix) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.ends_with(suffix); });
}

/// Whether a member of this name is there, in the archive's top or in a folder.
bool has_file(const Names& names, const std::string& file) {
  return names.contains(file) || ends_in(names, "/" + file);
}

bool has_folder(const Names& names, const std::string& folder) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const size_t at = name.find(folder + "/");
    return at == 0 || (at != std::string::npos && name[at - 1] == '/');
  });
}

/// What a state dict imports; anything else is code of its own.
bool is_tensor_import(const std::string& name) {
  return name.starts_with("torch._utils._rebuild") || name == "collections.OrderedDict" ||
         name == "torch.Size" ||
         (name.starts_with("torch.") && (name.ends_with("Storage") || name.ends_with("dtype"))) ||
         name == "torch.device" || name.starts_with("torch.serialization.") || name == "_codecs.encode" ||
         name.starts_with("numpy.") || name.starts_with("torch.storage.");
}

FileFormat pickled_format(std::string_view pickle) {
  try {
    const std::vector<std::string> imports = wire::pickle_imports(pickle);
    return std::all_of(imports.begin(), imports.end(), is_tensor_import) ? FileFormat::kStateDict
                                                                         : FileFormat::kPickledModule;
  } catch (const Error&) {
    // What is broken in it is nothing that a reader here would say.
    return FileFormat::kStateDict;
  }
}

FileFormat format_of_names(const Names& names) {
  // Beside an ONNX model may lie anything.
  if (ends_in(names, ".onnx")) return FileFormat::kOnnxArchive;
  if (has_file(names, "archive_format") && has_folder(names, "models")) return FileFormat::kPt2;
  if (has_file(names, "serialized_exported_program.json")) return FileFormat::kPt2;
  if (has_file(names, "data.pkl") && (has_folder(names, "code") || has_file(names, "constants.pkl")))
    return FileFormat::kTorchScript;
  if (has_file(names, "data.pkl")) return FileFormat::kStateDict;
  if (names.contains("config.json") && names.contains("metadata.json")) return FileFormat::kKeras;
  if (has_file(names, "Manifest.json") && has_folder(names, "com.apple.CoreML"))
    return FileFormat::kMlPackage;
  if (has_file(names, caffe2::kPredictNet) && has_file(names, caffe2::kInitNet)) return FileFormat::kCaffe2;
  if (has_file(names, "saved_model.pb") || has_file(names, "saved_model.pbtxt"))
    return FileFormat::kSavedModel;
  if (ends_in(names, ".params") && std::any_of(names.begin(), names.end(), mxnet::is_symbol_name))
    return FileFormat::kMxnet;
  if (ends_in(names, ".tflite")) return FileFormat::kTfliteBundle;
  if (!names.empty() &&
      std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".npy"); }))
    return FileFormat::kNpz;
  return FileFormat::kUnknown;
}

FileFormat json_format(std::string_view bytes);

/// What model.json says that lies in an archive.
FileFormat archived_json_format(std::string_view bytes) {
  wire::ArchiveFiles archive(bytes, wire::kTfjsFile);
  return json_format(archive.find(wire::kTfjsFile).value_or(std::string_view()));
}

FileFormat zip_format(std::string_view bytes) {
  try {
    wire::ZipFile zip(bytes, {.members = 100'000, .inflated_bytes = uint64_t{64} << 20});
    Names names;
    std::string pickle;
    for (const npz::ZipMember& member : zip.members()) {
      names.insert(member.name);
      if (member.name.ends_with("data.pkl")) pickle = member.name;
    }
    const FileFormat format = format_of_names(names);
    if (format == FileFormat::kUnknown && has_file(names, wire::kTfjsFile))
      return archived_json_format(bytes);
    return format == FileFormat::kStateDict ? pickled_format(zip.read(pickle)) : format;
  } catch (const Error&) {
    // The reader of archives says what is broken.
    return FileFormat::kUnknown;
  }
}

FileFormat tar_format(std::string_view bytes) {
  const std::vector<std::string> names = tar_names(bytes);
  const Names set(names.begin(), names.end());
  const FileFormat format = format_of_names(set);
  if (format == FileFormat::kUnknown && has_file(set, wire::kTfjsFile)) {
    try {
      return archived_json_format(bytes);
    } catch (const Error&) {
      // The reader of archives says what is broken.
      return FileFormat::kUnknown;
    }
  }
  const bool is_package =
      !names.empty() && names.front() == "metadata.json" && format == FileFormat::kUnknown;
  return is_package ? FileFormat::kPackage : format;
}

/// The members of the outermost object, and a text that one of them has.
class TopMembers : public JsonEvents {
public:
  void null() override {}
  void boolean(bool) override {}
  void number(std::string_view) override {}
  void string(std::string_view text) override {
    if (depth_ == 1 && last_ == "format") format = text;
  }
  void begin_object() override { ++depth_; }
  void key(std::string_view name) override {
    if (depth_ != 1) return;
    last_ = name;
    if (names.size() < 64) names.insert(last_);
  }
  void end_object() override { --depth_; }
  void begin_array() override { ++depth_; }
  void end_array() override { --depth_; }

  Names names;
  std::string format;

private:
  int depth_ = 0;
  std::string last_;
};

FileFormat json_format(std::string_view bytes) {
  TopMembers members;
  WholeJson text(bytes);
  try {
    JsonReader(text, members, {.depth = 512}).read();
  } catch (const Error&) {
    // As far as it could be read.
  }
  if (members.names.contains("modelTopology"))
    return members.format == "graph-model" ? FileFormat::kTfjsGraph : FileFormat::kTfjsLayers;
  if (members.names.contains("arg_nodes") && members.names.contains("heads")) return FileFormat::kMxnet;
  return FileFormat::kUnknown;
}

bool is_safetensors(std::string_view bytes) {
  uint64_t header = 0;
  if (bytes.size() < 10) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header >= 2 && header <= bytes.size() - 8 && bytes.substr(8, 2) == "{\"";
}

std::string_view without_blanks(std::string_view bytes) {
  const size_t first = bytes.substr(0, 4096).find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : bytes.substr(first);
}

bool is_json(std::string_view bytes) { return without_blanks(bytes).starts_with("{"); }

/// Marks that stand at a fixed place.
FileFormat marked_format(std::string_view bytes) {
  if (bytes.substr(std::min<size_t>(4, bytes.size()), 4) == "TFL3") return FileFormat::kTflite;
  if (bytes.starts_with("tensormill graph file ") || bytes.starts_with("graph \""))
    return FileFormat::kGraphFile;
  if (bytes.starts_with(kHdf5Magic))
    return bytes.find("model_config") != std::string_view::npos ? FileFormat::kKerasH5 : FileFormat::kHdf5;
  if (bytes.starts_with("GGUF")) return FileFormat::kGguf;
  if (bytes.starts_with(cntk::kLargeFileMark)) return FileFormat::kCntk;
  if (bytes.starts_with(kCntkV1Mark) || bytes.starts_with(kCntkV1WideMark)) return FileFormat::kCntkV1;
  if (mxnet::is_parameters(bytes)) return FileFormat::kMxnetParameters;
  if (bytes.starts_with(kOldTorchMagic)) {
    // Behind the number lie the protocol's version, a dictionary of sizes, and then what was saved.
    const FileFormat format = pickled_format(bytes.substr(kOldTorchMagic.size()));
    return format == FileFormat::kPickledModule ? format : FileFormat::kStateDict;
  }
  if (is_safetensors(bytes)) return FileFormat::kSafetensors;
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) {
    try {
      wire::pickle_imports(bytes);
      return FileFormat::kPickle;
    } catch (const Error&) {
      return FileFormat::kUnknown;
    }
  }
  return FileFormat::kUnknown;
}

/// The files of a folder that may be parts of an MXNet model, whose names are not fixed.
Names mxnet_names(const std::string& folder) {
  std::error_code ignored;
  Names names;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (mxnet::is_symbol_name(name) || name.ends_with(".params")) names.insert(name);
  }
  return names;
}

/// Whether a model of that format is several files, of which one says where the others are.
bool has_files(FileFormat format) {
  return is_tfjs(format) || format == FileFormat::kSavedModel || format == FileFormat::kMlPackage ||
         format == FileFormat::kCaffe2;
}

const char* main_file_of(FileFormat format) {
  if (format == FileFormat::kMlPackage) return coreml::kManifest;
  if (format == FileFormat::kCaffe2) return caffe2::kPredictNet;
  return is_tfjs(format) ? wire::kTfjsFile : "saved_model.pb";
}

FileFacts facts_of_files(const wire::ModelFiles& files, FileFormat format) {
  if (format == FileFormat::kMlPackage)
    return coreml::facts_of(coreml::read_model(coreml::open_package(files).model), "mlpackage");
  if (format == FileFormat::kCaffe2) return caffe2::facts_of(caffe2::read_model(files));
  if (format == FileFormat::kTfjsLayers)
    return keras::facts_of(keras::read_layers_model(files), "tfjs-layers");
  return format == FileFormat::kTfjsGraph ? tensorflow::facts_of(tensorflow::read_tfjs_model(files))
                                          : tensorflow::facts_of(tensorflow::read_saved_model(files));
}

/// A model of several files in a zip or tar, whatever folder it lies in; of its main file alone what that
/// says.
FileFacts saved_file_facts(std::string_view bytes, FileFormat format) {
  const char* main = main_file_of(format);
  if (!wire::is_archive(bytes)) {
    const wire::ModelFiles alone = [&](const std::string& name) {
      return name == main ? std::optional(bytes) : std::nullopt;
    };
    return facts_of_files(alone, format);
  }
  wire::ArchiveFiles archive(bytes, main);
  return facts_of_files([&](const std::string& name) { return archive.find(name); }, format);
}

/// `given`: the file that was asked for, or a folder's file that says where the others are.
FileFacts saved_folder_facts(const std::filesystem::path& folder, const std::filesystem::path& given,
                             FileFormat format) {
  const caffe2::NetNames nets = caffe2::net_names(given.filename().string());
  std::map<std::string, std::shared_ptr<const MappedFile>> open;
  const wire::ModelFiles files = [&](const std::string& name) -> std::optional<std::string_view> {
    const bool is_net = format == FileFormat::kCaffe2;
    const std::filesystem::path path = name == wire::kTfjsFile                 ? given
                                       : is_net && name == caffe2::kPredictNet ? folder / nets.predict
                                       : is_net && name == caffe2::kInitNet    ? folder / nets.init
                                                                               : folder / name;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
    auto& file = open[name];
    if (file == nullptr) file = MappedFile::open(path.string());
    return file->text();
  };
  return facts_of_files(files, format);
}

/// Of an archive of both files; a symbol alone has no parameters.
FileFacts mxnet_facts(std::string_view bytes) {
  if (is_json(bytes))
    throw Error(ErrorCode::kInvalidModel,
                "a symbol without its parameters, NAME-0000.params: give a tar or zip of both files");
  const mxnet::FileNames names = mxnet::file_names(archive_names(bytes));
  wire::ArchiveFiles archive(bytes, names.symbol);
  return mxnet::facts_of(
      mxnet::read_model(names, [&](const std::string& name) { return archive.find(name); }));
}

FileFacts mxnet_facts_at(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
  const mxnet::FileNames names = mxnet::file_names_at(path);
  const auto symbol = MappedFile::open((folder / names.symbol).string()),
             parameters = MappedFile::open((folder / names.parameters).string());
  return mxnet::facts_of(mxnet::read_model(names, [&](const std::string& name) {
    return std::optional((name == names.symbol ? symbol : parameters)->text());
  }));
}

std::optional<FileFacts> facts_in(std::string_view bytes, FileFormat format) {
  switch (format) {
    case FileFormat::kTflite:
      return tflite::read_facts(bytes);
    case FileFormat::kKeras:
      return keras::facts_of(keras::read_archive(bytes), "keras");
    case FileFormat::kKerasH5:
      return keras::facts_of(keras::read_hdf5(bytes), "keras-h5");
    case FileFormat::kPt2:
      return pytorch::facts_of(pytorch::read_program(bytes));
    case FileFormat::kTorchScript:
      return pytorch::script::facts_of(pytorch::script::read_module(bytes));
    case FileFormat::kFrozenGraph:
      return tensorflow::facts_of(tensorflow::read_graph(bytes));
    case FileFormat::kCoreMl:
      return coreml::facts_of(coreml::read_model(bytes), "coreml");
    case FileFormat::kCntk:
      return cntk::facts_of(cntk::read_model(bytes));
    case FileFormat::kMxnet:
      return mxnet_facts(bytes);
    case FileFormat::kMlPackage:
    case FileFormat::kCaffe2:
    case FileFormat::kSavedModel:
    case FileFormat::kTfjsGraph:
    case FileFormat::kTfjsLayers:
      return saved_file_facts(bytes, format);
    default:
      return std::nullopt;
  }
}

/// action(); an error of it has the format's words in front.
template <typename Action>
auto in_format(FileFormat format, const Action& action) {
  try {
    return action();
  } catch (Error& error) {
    error.add_context(format_row(format).title);
    throw;
  }
}

}  // namespace

const FormatRow& format_row(FileFormat format) { return all_formats().at(static_cast<size_t>(format)); }

const std::vector<FormatRow>& all_formats() {
  static const std::vector<FormatRow> rows = {
#define TM_MODEL_FORMAT(enumerator, name, title, is_importable, advice) \
  {FileFormat::enumerator, name, title, is_importable, advice},
#include "compiler/frontend/formats/formats.def"
#undef TM_MODEL_FORMAT
  };
  return rows;
}

std::vector<std::string> importable_formats() {
  std::vector<std::string> names;
  for (const FormatRow& row : all_formats()) {
    if (row.is_importable) names.emplace_back(row.name);
  }
  return names;
}

FileFormat detect_format(std::string_view bytes) {
  const FileFormat marked = marked_format(bytes);
  if (marked != FileFormat::kUnknown) return marked;
  if (wire::begins_as_zip(bytes)) return zip_format(bytes);
  if (wire::begins_as_tar(bytes)) return tar_format(bytes);
  const std::string_view text = without_blanks(bytes);
  if (text.starts_with("{")) return json_format(text);
  if (text.starts_with("node {") || text.starts_with("node: {")) return FileFormat::kFrozenGraphText;
  return protobuf_format(bytes);
}

FileFormat detect_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return detect_format(MappedFile::open(path)->text());
  Names names;
  for (const char* file : {"saved_model.pb", "saved_model.pbtxt", "Manifest.json",
                           "Data/com.apple.CoreML/model.mlmodel", caffe2::kPredictNet, caffe2::kInitNet})
    if (fs::is_regular_file(fs::path(path) / file, ignored)) names.insert(file);
  if (fs::is_regular_file(fs::path(path) / "model.json", ignored))
    return json_format(MappedFile::open((fs::path(path) / "model.json").string())->text());
  if (names.empty()) names = mxnet_names(path);
  return format_of_names(names);
}

std::optional<FileFacts> read_file_facts(std::string_view bytes, FileFormat format) {
  return in_format(format, [&] { return facts_in(bytes, format); });
}

std::optional<FileFacts> read_path_facts(const std::string& path, FileFormat format) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const auto is_archived = [&] { return !is_folder && !is_json(MappedFile::open(path)->text()); };
  if (format == FileFormat::kMxnet && !is_archived())
    return in_format(format, [&] { return std::optional(mxnet_facts_at(path)); });
  if (!is_folder) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    const bool is_net = format == FileFormat::kCaffe2 && !wire::is_archive(file->text());
    const bool stands_alone = !is_net && (!is_tfjs(format) || !is_json(file->text()));
    if (stands_alone) return read_file_facts(file->text(), format);
  }
  if (!has_files(format)) return std::nullopt;
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  const fs::path given = is_folder ? folder / main_file_of(format) : fs::path(path);
  return in_format(format, [&] { return std::optional(saved_folder_facts(folder, given, format)); });
}

Error not_importable(FileFormat format) {
  const FormatRow& row = format_row(format);
  const std::string article =
      std::string("AEIOU").find(row.title.front()) == std::string::npos ? "a " : "an ";
  return {ErrorCode::kNotSupported, "this is " + article + std::string(row.title) +
                                        "; TensorMill does not import it yet: " + std::string(row.advice)};
}

void check_importable(std::string_view bytes) {
  const FileFormat format = detect_format(bytes);
  if (format != FileFormat::kUnknown && !format_row(format).is_importable) throw not_importable(format);
}

}  // namespace tensormill::frontend
