#include "compiler/frontend/tflite/converters/custom_options.h"

#include <cmath>

#include "compiler/frontend/wire/flexbuffer.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::tflite {

namespace {

int64_t place(const NodeContext& node, const Json& json, const char* name, int64_t below) {
  if (!json.is_number_integer() || json < 0 || json >= below)
    node.invalid("option " + std::string(name) + " is no integer of 0 to " + std::to_string(below - 1));
  return json.get<int64_t>();
}

}  // namespace

Json options_of(const NodeContext& node) {
  Json options = wire::flexbuffer_to_json(node.node().custom_options);
  if (!options.is_object()) node.invalid("its options are no map");
  return options;
}

double number_of(const NodeContext& node, const Json& options, const char* name) {
  const auto found = options.find(name);
  if (found == options.end() || !(found->is_number() || found->is_boolean()))
    node.invalid("option " + std::string(name) + " is no number");
  const double value = found->is_boolean() ? (found->get<bool>() ? 1 : 0) : found->get<double>();
  if (!std::isfinite(value) || std::abs(value) > 1e9)
    node.invalid("option " + std::string(name) + " is " + std::to_string(value));
  return value;
}

ir::Ints places_of(const NodeContext& node, const Json& options, const char* name, int64_t below) {
  const auto found = options.find(name);
  if (found == options.end() || !found->is_array() || found->size() > 65536)
    node.invalid("option " + std::string(name) + " is no list of at most 65536 integers");
  std::vector<int64_t> places;
  for (const Json& each : *found) places.push_back(place(node, each, name, below));
  return places;
}

int64_t place_of(const NodeContext& node, const Json& options, const char* name, int64_t below) {
  const auto found = options.find(name);
  if (found == options.end()) node.invalid("option " + std::string(name) + " is missing");
  return place(node, *found, name, below);
}

}  // namespace tensormill::frontend::tflite
