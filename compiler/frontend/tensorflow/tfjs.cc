#include "compiler/frontend/tensorflow/tfjs.h"

#include <deque>

#include "compiler/frontend/tensorflow/graph_json.h"
#include "compiler/frontend/wire/tfjs_weights.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

/// As the message of a constant has it.
TensorValue value_of(const wire::TfjsWeight& weight) {
  TensorValue to;
  to.dtype = type_named(dtype_long_name(weight.dtype));
  to.shape.dims.assign(weight.shape.begin(), weight.shape.end());
  to.content = weight.bytes;
  return to;
}

/// Where newer and older writers put it; null where neither did.
const Json* signature_in(const Json& json) {
  const auto found = json.find("signature");
  if (found != json.end() && found->is_object()) return &*found;
  const auto user = json.find("userDefinedMetadata");
  if (user == json.end() || !user->is_object()) return nullptr;
  const auto inner = user->find("signature");
  return inner == user->end() || !inner->is_object() ? nullptr : &*inner;
}

void add_signature(GraphJsonReader& reader, const Json& json, SavedModel& model) {
  const Json* said = signature_in(json);
  if (said == nullptr) return;
  Signature signature;
  const auto add = [&](const char* key, std::map<std::string, TensorInfo>& to) {
    const auto found = said->find(key);
    if (found == said->end() || !found->is_object()) return;
    for (const auto& [name, info] : found->items()) to.emplace(name, reader.tensor_info(info));
  };
  add("inputs", signature.inputs);
  add("outputs", signature.outputs);
  if (!signature.outputs.empty()) model.signatures.emplace("serving_default", std::move(signature));
}

}  // namespace

TfjsModel read_tfjs_model(const ModelFiles& files) {
  const auto bytes = files(wire::kTfjsFile);
  if (!bytes) throw Error(ErrorCode::kInvalidModel, "there is no file model.json");
  const Json json = wire::read_tfjs_json(*bytes);
  struct Owner {
    wire::TfjsWeights weights;
    std::deque<std::string> texts = {};
  };
  const auto owner = std::make_shared<Owner>(Owner{wire::TfjsWeights(files, json)});
  GraphJsonReader reader(owner->texts, [&](const std::string& node) {
    const wire::TfjsWeight* weight = owner->weights.find(node);
    return weight == nullptr ? std::nullopt : std::optional(value_of(*weight));
  });
  TfjsModel to;
  to.owner = owner;
  try {
    to.model.graph = reader.graph(wire::tfjs_member(json, "modelTopology", &Json::is_object));
    add_signature(reader, json, to.model);
  } catch (Error& error) {
    error.add_context(wire::kTfjsFile);
    throw;
  }
  const auto writer = json.find("generatedBy");
  if (writer != json.end() && writer->is_string() && is_utf8(writer->get<std::string>()))
    to.model.tensorflow_version = writer->get<std::string>().substr(0, 100);
  return to;
}

FileFacts facts_of(const TfjsModel& model) {
  FileFacts facts = facts_of(model.model.graph);
  facts.format = "tfjs-graph";
  facts.version = model.model.tensorflow_version + ", " + facts.version;
  return facts;
}

}  // namespace tensormill::frontend::tensorflow
