#include "compiler/frontend/keras/kept_form.h"

#include <functional>
#include <map>

#include "compiler/frontend/keras/config_limits.h"
#include "runtime/base/dtype.h"

namespace tensormill::frontend::keras {

namespace {

// A line with the mark and the size of the JSON text, that text, padding, and the weights, each at a multiple
// of 64 bytes.
constexpr std::string_view kMark = "tensormill keras model 1 ";
constexpr size_t kAlignment = 64;

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "kept Keras model: " + what);
}

size_t aligned(size_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }

/// Calls `visit` with each layer that has weights, and its place: its layers' indices from the outermost
/// network on.
void visit_layers(const Network& network, const Json& place,
                  const std::function<void(const Layer&, const Json&)>& visit) {
  for (size_t i = 0; i < network.layers.size(); ++i) {
    Json own = place;
    own.push_back(i);
    visit(network.layers[i], own);
    if (network.layers[i].network) visit_layers(*network.layers[i].network, own, visit);
  }
}

using Place = std::vector<size_t>;

/// Gives the layers of a network their weights, by place.
void give(Network& network, const Place& around, std::map<Place, std::vector<Weight>>& weights) {
  for (size_t i = 0; i < network.layers.size(); ++i) {
    Layer& layer = network.layers[i];
    Place place = around;
    place.push_back(i);
    if (const auto own = weights.find(place); own != weights.end()) {
      layer.weights = std::move(own->second);
      weights.erase(own);
    }
    if (!layer.network) continue;
    Network inner = *layer.network;
    give(inner, place, weights);
    layer.network = std::make_shared<const Network>(std::move(inner));
  }
}

Json parsed(std::string_view text) {
  try {
    return parse_json(text, kConfigLimits);
  } catch (const Error& error) {
    fail(error.message());
  }
}

}  // namespace

bool is_kept_form(std::string_view bytes) { return bytes.starts_with(kMark); }

std::string kept_form(const Model& model) {
  Json weights = Json::array();
  size_t end = 0;
  visit_layers(model.network, Json::array(), [&](const Layer& layer, const Json& place) {
    for (const Weight& weight : layer.weights) {
      weights.push_back({{"layer", place},
                         {"path", weight.path},
                         {"dtype", dtype_name(weight.dtype)},
                         {"shape", weight.shape},
                         {"offset", end}});
      end = aligned(end + weight.data.size());
    }
  });
  const Json json = {{"config", model.config},
                     {"keras_version", model.keras_version},
                     {"numbers_weights", model.numbers_weights},
                     {"weights", std::move(weights)}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string bytes = std::string(kMark) + std::to_string(text.size()) + "\n" + text;
  bytes.resize(aligned(bytes.size()), ' ');
  bytes.reserve(bytes.size() + end);
  visit_layers(model.network, Json::array(), [&](const Layer& layer, const Json&) {
    for (const Weight& weight : layer.weights) {
      bytes += weight.data;
      bytes.resize(aligned(bytes.size()), '\0');
    }
  });
  return bytes;
}

Model read_kept_form(std::string_view bytes) {
  const size_t line = bytes.substr(0, kMark.size() + 24).find('\n');
  if (!is_kept_form(bytes) || line == std::string_view::npos) fail("its first line is broken");
  size_t size = 0;
  for (const char digit : bytes.substr(kMark.size(), line - kMark.size())) {
    if (digit < '0' || digit > '9') fail("its first line is broken");
    size = size * 10 + static_cast<size_t>(digit - '0');
  }
  if (size > bytes.size() - line - 1) fail("it is cut off");
  Model model;
  try {
    const Json json = parsed(bytes.substr(line + 1, size));
    model.config = json.at("config");
    model.network = read_network(model.config);
    model.keras_version = json.at("keras_version").get<std::string>();
    model.numbers_weights = json.at("numbers_weights").get<bool>();
    const size_t begin = aligned(line + 1 + size);
    std::map<Place, std::vector<Weight>> weights;
    for (const Json& each : json.at("weights")) {
      Weight weight;
      weight.path = each.at("path").get<std::string>();
      const auto dtype = dtype_from_name(each.at("dtype").get<std::string>());
      if (!dtype) fail("a weight of an unknown type");
      weight.dtype = *dtype;
      weight.shape = each.at("shape").get<Shape>();
      const auto offset = each.at("offset").get<size_t>();
      const auto count = static_cast<size_t>(num_bytes(weight.shape, weight.dtype));
      if (begin > bytes.size() || offset > bytes.size() - begin || count > bytes.size() - begin - offset)
        fail("it is cut off");
      weight.data = bytes.substr(begin + offset, count);
      weights[each.at("layer").get<Place>()].push_back(std::move(weight));
    }
    give(model.network, {}, weights);
    if (!weights.empty()) fail("a weight of no layer");
  } catch (const Json::exception& error) {
    fail(error.what());
  }
  return model;
}

}  // namespace tensormill::frontend::keras
