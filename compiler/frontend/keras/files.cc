#include <algorithm>
#include <map>

#include "compiler/frontend/keras/config_limits.h"
#include "compiler/frontend/keras/model.h"
#include "compiler/frontend/keras/names.h"
#include "compiler/frontend/wire/hdf5/hdf5.h"
#include "compiler/frontend/wire/zip.h"

namespace tensormill::frontend::keras {

namespace {

using wire::Hdf5Dataset;
using wire::Hdf5File;

constexpr int kMaxGroups = 16;

Json config_json(std::string_view text, const std::string& what) {
  try {
    return parse_json(text, kConfigLimits);
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidModel, what + ": " + error.message());
  }
}

Weight weight_of(Model& model, const std::string& path, Hdf5Dataset dataset) {
  if (dataset.copy) model.kept.push_back(dataset.copy);
  return {path, dataset.dtype, std::move(dataset.shape), dataset.data};
}

/// Every dataset below a group, numbers in their order.
class GroupWeights {
public:
  GroupWeights(Hdf5File& file, Model& model) : file_(file), model_(model) {}

  std::vector<Weight> all(const std::string& group) {
    weights_.clear();
    if (file_.has(group)) walk(group, "", 0);
    return std::move(weights_);
  }

private:
  void walk(const std::string& group, const std::string& below, int depth) {
    if (depth > kMaxGroups)
      throw Error(ErrorCode::kInvalidModel, "weights: groups of \"" + group + "\" are nested too deeply");
    std::vector<std::string> names = file_.members(group);
    std::sort(names.begin(), names.end(), natural_less);
    for (const std::string& name : names) {
      const std::string path = group + "/" + name;
      if (file_.is_group(path)) {
        walk(path, below + name + "/", depth + 1);
      } else {
        weights_.push_back(weight_of(model_, below + name, file_.dataset(path)));
      }
    }
  }

  Hdf5File& file_;
  Model& model_;
  std::vector<Weight> weights_;
};

void add_archive_weights(GroupWeights& weights, wire::ZipFile& zip, const std::string& group,
                         Network& network) {
  const std::vector<std::string> groups = weight_groups(network);
  for (size_t i = 0; i < groups.size(); ++i) {
    Layer& layer = network.layers[i];
    if (groups[i].empty()) continue;
    const std::string own = group + groups[i];
    if (!layer.network) {
      layer.weights = weights.all(own);
      if (const std::string words = "assets/" + own + "/" + kVocabularyFile; zip.has(words)) {
        const std::string_view text = zip.read(words);
        layer.weights.push_back({kVocabularyFile, DType::kUInt8, {static_cast<int64_t>(text.size())}, text});
      }
      continue;
    }
    Network inner = *layer.network;
    add_archive_weights(weights, zip, own + "/", inner);
    layer.network = std::make_shared<const Network>(std::move(inner));
  }
}

/// A list of names; a long one is split in NAME0, NAME1 ...
std::vector<std::string> names_of(Hdf5File& file, const std::string& path, const std::string& attribute) {
  if (auto names = file.texts(path, attribute)) return std::move(*names);
  std::vector<std::string> all;
  for (int i = 0; i < 100'000; ++i) {
    const auto part = file.texts(path, attribute + std::to_string(i));
    if (!part) break;
    all.insert(all.end(), part->begin(), part->end());
  }
  return all;
}

void add_hdf5_weights(Hdf5File& file, Model& model) {
  const std::string group = file.has("model_weights") ? "model_weights" : "";
  for (const std::string& name : names_of(file, group, "layer_names")) {
    const std::string own = group.empty() ? name : group + "/" + name;
    const auto layer = std::find_if(model.network.layers.begin(), model.network.layers.end(),
                                    [&](const Layer& each) { return each.name == name; });
    if (layer == model.network.layers.end())
      throw Error(ErrorCode::kInvalidModel, "weights of \"" + name + "\", which is no layer of the model");
    for (const std::string& weight : names_of(file, own, "weight_names"))
      layer->weights.push_back(weight_of(model, weight, file.dataset(own + "/" + weight)));
  }
}

std::string text_in(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) && json.at(name).is_string()
             ? json.at(name).get<std::string>()
             : std::string();
}

}  // namespace

// Groups are named by the layers' classes, counted in the order of the layers.
std::vector<std::string> weight_groups(const Network& network) {
  std::map<std::string, int64_t> used;
  std::vector<std::string> groups;
  for (const Layer& layer : network.layers) {
    if (layer.is_operation) {
      groups.emplace_back();
      continue;
    }
    // Exported under another name than the class has in Keras.
    const bool is_grouped = layer.class_name == "GroupQueryAttention";
    const std::string class_name = snake_case(is_grouped ? "GroupedQueryAttention" : layer.class_name);
    const int64_t count = used[class_name]++;
    groups.push_back("layers/" + class_name + (count == 0 ? std::string() : "_" + std::to_string(count)));
  }
  return groups;
}

Model read_archive(std::string_view bytes) {
  const auto zip = std::make_shared<wire::ZipFile>(bytes);
  Model model;
  model.config = config_json(zip->read("config.json"), "member \"config.json\"");
  model.network = read_network(model.config);
  if (zip->has("metadata.json"))
    model.keras_version =
        text_in(config_json(zip->read("metadata.json"), "member \"metadata.json\""), "keras_version");
  if (!zip->has("model.weights.h5"))
    throw Error(zip->has("config.json") && !zip->has("model.weights.npz") && !zip->has("model.weights.json")
                    ? ErrorCode::kInvalidModel
                    : ErrorCode::kNotSupported,
                "the archive has no model.weights.h5; weights in other forms are not read");
  const std::string_view weights = zip->read("model.weights.h5");
  model.kept.push_back(zip);
  Hdf5File file(weights);
  GroupWeights groups(file, model);
  model.numbers_weights = true;
  add_archive_weights(groups, *zip, "", model.network);
  return model;
}

Model read_hdf5(std::string_view bytes) {
  Hdf5File file(bytes);
  Model model;
  const auto config = file.text("", "model_config");
  if (!config) throw Error(ErrorCode::kInvalidModel, "the file has no model_config: it holds weights alone");
  model.config = config_json(*config, "attribute model_config");
  model.network = read_network(model.config);
  model.keras_version = file.text("", "keras_version").value_or("");
  model.backend = file.text("", "backend").value_or("");
  add_hdf5_weights(file, model);
  return model;
}

}  // namespace tensormill::frontend::keras
