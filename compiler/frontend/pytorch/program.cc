#include "compiler/frontend/pytorch/graph_json.h"
#include "compiler/frontend/pytorch/unpickle.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"
#include "runtime/base/json_reader.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr int64_t kSchemaMajor = 8;
constexpr size_t kMaxProgramValues = 4'000'000;
constexpr JsonLimits kProgramLimits = {.bytes = uint64_t{256} << 20,
                                       .token_bytes = uint64_t{16} << 20,
                                       .values = uint64_t{1} << 24,
                                       .depth = 512};

/// Python's writer puts NaN, Infinity and -Infinity in place of numbers; here they are texts.
std::string without_bare_words(std::string_view text) {
  std::string quoted;
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string && text[i] == '\\') {
      quoted += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    size_t length = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (!in_string && text.substr(i).starts_with(word)) length = word.size();
    if (length == 0) {
      quoted += text[i++];
      continue;
    }
    quoted += '"' + std::string(text.substr(i, length)) + '"';
    i += length;
  }
  return quoted;
}

Json member_json(wire::ZipFile& zip, const std::string& name) {
  const std::string_view text = zip.read(name);
  try {
    const bool has_words =
        text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos;
    return has_words ? parse_json(without_bare_words(text), kProgramLimits)
                     : parse_json(text, kProgramLimits);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidModel, "member \"" + name + "\": " + error.message());
  }
}

/// Where things lie in an archive: members of torch 2.8 and later in one folder of any name, of older ones at
/// the top.
struct Places {
  std::string root;
  std::string program;  ///< the member with the program
  std::string model;    ///< its name, of which names of weights are made; "" in older archives
};

Places find_places(const wire::ZipFile& zip) {
  Places places;
  for (const npz::ZipMember& member : zip.members()) {
    const std::string& name = member.name;
    if (name == "serialized_exported_program.json") return {"", name, ""};
    const size_t models = name.starts_with("models/") ? 0 : name.find("/models/") + 1;
    const bool is_below = models != 0 || name.starts_with("models/");
    if (!is_below || !name.ends_with(".json")) continue;
    const size_t begin = models + 7;
    const std::string model = name.substr(begin, name.size() - begin - 5);
    if (!places.program.empty())
      throw Error(ErrorCode::kNotSupported,
                  "the archive has more than one program: \"" + places.model + "\" and \"" + model + "\"");
    places = {name.substr(0, models), name, model};
  }
  if (places.program.empty()) throw Error(ErrorCode::kInvalidModel, "the archive has no models/NAME.json");
  return places;
}

std::vector<int64_t> fixed_dims(const std::vector<SymDim>& dims, const std::string& name) {
  std::vector<int64_t> numbers;
  for (const SymDim& dim : dims) {
    if (!dim.value)
      throw Error(ErrorCode::kInvalidModel, "tensor \"" + name + "\" has a size that is no number");
    numbers.push_back(*dim.value);
  }
  return numbers;
}

class ProgramReader {
public:
  explicit ProgramReader(std::string_view bytes)
      : zip_(std::make_shared<wire::ZipFile>(bytes)), places_(find_places(*zip_)) {}

  Program read() {
    program_.kept.push_back(zip_);
    read_program_json(member_json(*zip_, places_.program));
    program_.weights = places_.model.empty() ? old_tensors("serialized_state_dict.pt") : tensors("weights");
    program_.constants =
        places_.model.empty() ? old_tensors("serialized_constants.pt") : tensors("constants");
    check_weights();
    return std::move(program_);
  }

private:
  void read_program_json(const Json& json) {
    try {
      read_version(json);
      const Json& module = json_member(json, "graph_module", "the program");
      wire::WorkBudget values("values", kMaxProgramValues);
      program_.graph = read_graph(json_member(module, "graph", "the graph module"), values);
      read_signature(json_member(module, "signature", "the graph module"), program_);
      read_ranges(json);
    } catch (Error& error) {
      error.add_context("member \"" + places_.program + "\"");
      throw;
    }
  }

  void read_version(const Json& json) {
    const Json& version = json_member(json, "schema_version", "the program");
    program_.schema_major = json_integer(version, "major", "schema_version").value_or(0);
    program_.schema_minor = json_integer(version, "minor", "schema_version").value_or(0);
    if (json.contains("torch_version") && json.at("torch_version").is_string())
      program_.torch_version = json.at("torch_version").get<std::string>();
    if (program_.schema_major != kSchemaMajor)
      throw Error(ErrorCode::kNotSupported, "schema " + std::to_string(program_.schema_major) + "." +
                                                std::to_string(program_.schema_minor) +
                                                "; 8.x is read (torch 2.5 and later)");
  }

  void read_ranges(const Json& json) {
    if (!json.contains("range_constraints")) return;
    const Json& ranges = json.at("range_constraints");
    if (!ranges.is_object()) throw Error(ErrorCode::kInvalidModel, "range_constraints are no object");
    for (const auto& [symbol, range] : ranges.items()) {
      program_.ranges[symbol] = {json_integer(range, "min_val", "the range of " + symbol),
                                 json_integer(range, "max_val", "the range of " + symbol)};
    }
  }

  std::map<std::string, StoredTensor> old_tensors(const std::string& member) {
    if (!zip_->has(places_.root + member)) return {};
    const std::string_view bytes = zip_->read(places_.root + member);
    // An empty dictionary may be no file at all.
    if (bytes.empty()) return {};
    const auto inner = std::make_shared<wire::ZipFile>(bytes);
    program_.kept.push_back(inner);
    try {
      return read_saved_tensors(*inner);
    } catch (Error& error) {
      error.add_context("member \"" + member + "\"");
      throw;
    }
  }

  /// data/weights/NAME_weights_config.json and raw storages, of torch 2.8 data/weights/NAME.pt.
  std::map<std::string, StoredTensor> tensors(const std::string& kind) {
    const std::string folder = "data/" + kind + "/";
    const std::string config = places_.root + folder + places_.model + "_" + kind + "_config.json";
    if (!zip_->has(config)) return old_tensors(folder + places_.model + ".pt");
    const Json json = member_json(*zip_, config);
    const Json& entries = json_member(json, "config", "member \"" + config + "\"");
    if (!entries.is_object())
      throw Error(ErrorCode::kInvalidModel, "member \"" + config + "\" has no object of tensors");
    std::map<std::string, StoredTensor> all;
    for (const auto& [name, entry] : entries.items()) {
      const std::string what = "tensor \"" + name + "\"";
      if (entry.is_object() && entry.contains("use_pickle") && entry.at("use_pickle") == true)
        throw Error(ErrorCode::kNotSupported, what + " is pickled: a subclass of tensors or a script object");
      const Json& described = json_member(entry, "tensor_meta", what);
      if (described.is_null()) continue;  // an object that is no tensor
      const TensorMeta meta = read_tensor_meta(described, what);
      StoredTensor tensor{meta.dtype, fixed_dims(meta.sizes, name), fixed_dims(meta.strides, name),
                          meta.storage_offset.value.value_or(-1),
                          zip_->read(places_.root + folder + json_text(entry, "path_name", what))};
      check_stored(tensor, name);
      all.emplace(name, std::move(tensor));
    }
    return all;
  }

  /// Every weight that the signature names is there, as the graph says that it is.
  void check_weights() const {
    for (const InputSpec& input : program_.inputs) {
      if (input.kind != "parameter" && input.kind != "buffer" && input.kind != "tensor_constant") continue;
      const StoredTensor* stored = program_.stored(input);
      const auto described = program_.graph.tensors.find(input.name);
      if (stored == nullptr || described == program_.graph.tensors.end())
        throw Error(ErrorCode::kInvalidModel, input.kind + " \"" + input.target + "\" is not in the file");
      const TensorMeta& meta = described->second;
      const StoredTensor& tensor = *stored;
      if (meta.dtype != tensor.dtype || meta.sizes.size() != tensor.sizes.size())
        throw Error(ErrorCode::kInvalidModel,
                    input.kind + " \"" + input.target + "\" is of another type than the graph says");
      for (size_t i = 0; i < tensor.sizes.size(); ++i)
        if (meta.sizes[i].value != tensor.sizes[i])
          throw Error(ErrorCode::kInvalidModel, input.kind + " \"" + input.target + "\" has extent " +
                                                    std::to_string(tensor.sizes[i]) + ", the graph says " +
                                                    to_string(meta.sizes[i]));
    }
  }

  std::shared_ptr<wire::ZipFile> zip_;
  Places places_;
  Program program_;
};

}  // namespace

const StoredTensor* Program::stored(const InputSpec& input) const {
  const auto weight = weights.find(input.target);
  if (weight != weights.end()) return &weight->second;
  const auto constant = constants.find(input.target);
  return constant == constants.end() ? nullptr : &constant->second;
}

Program read_program(std::string_view bytes) { return ProgramReader(bytes).read(); }

}  // namespace tensormill::frontend::pytorch
