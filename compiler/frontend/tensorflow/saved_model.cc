#include <algorithm>

#include "compiler/frontend/tensorflow/graph_proto.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::tensorflow {

namespace {

using wire::WireReader;

constexpr const char* kObjectGraph = "_CHECKPOINTABLE_OBJECT_GRAPH";

class SavedModelReader {
public:
  explicit SavedModelReader(const ModelFiles& files) : files_(files) {}

  SavedModel read() {
    const auto bytes = files_("saved_model.pb");
    if (!bytes) throw Error(ErrorCode::kInvalidModel, "there is no file saved_model.pb");
    try {
      read_graphs(*bytes);
    } catch (Error& error) {
      error.add_context("saved_model.pb");
      throw;
    }
    for (auto& [node, asset] : model_.assets) asset.content = files_("assets/" + asset.name);
    // A model without variables has no checkpoint.
    if (files_("variables/variables.index")) {
      model_.variables = read_variables(files_, "variables/variables");
      add_checkpoint_keys();
    }
    return std::move(model_);
  }

private:
  void read_graphs(std::string_view bytes) {
    WireReader reader(bytes, bytes.data(), 0);
    int graphs = 0;
    bool is_served = false;
    while (const int field = reader.next()) {
      if (field == 1) {
        const int64_t version = reader.int64("saved_model_schema_version");
        if (version != 1) throw Error(ErrorCode::kNotSupported, "schema version " + std::to_string(version));
      }
      if (field == 2 && !is_served) {
        if (++graphs > 16) reader.fail("more than 16 meta graphs");
        model_ = {};
        read_meta_graph(reader.message("a meta graph"));
        is_served = std::find(model_.tags.begin(), model_.tags.end(), "serve") != model_.tags.end();
      }
    }
    if (graphs == 0) reader.fail("no meta graph");
  }

  void read_meta_graph(WireReader reader) {
    GraphProtoReader graphs;
    while (const int field = reader.next()) {
      if (field == 1) read_meta_info(reader.message("meta_info_def"));
      if (field == 2) model_.graph = graphs.graph(reader.message("graph_def"));
      if (field == 3) read_saver(reader.message("saver_def"));
      if (field == 5) read_signature(reader.message("signature_def"));
      if (field == 6) read_asset(reader.message("asset_file_def"));
      if (field == 7) read_objects(reader.message("object_graph_def"));
    }
  }

  void read_saver(WireReader reader) {
    while (const int field = reader.next()) {
      if (field == 1) {
        const std::string tensor = reader.string("filename_tensor_name");
        model_.checkpoint_node = tensor.substr(0, tensor.find(':'));
      }
      if (field == 3) model_.restore_node = reader.string("restore_op_name");
    }
  }

  /// The tensor that stands for a file's name, and the file.
  void read_asset(WireReader reader) {
    values_.spend(1);
    std::string tensor, name;
    while (const int field = reader.next()) {
      if (field == 1) tensor = tensor_info(reader.message("an asset's tensor")).name;
      if (field == 2) name = reader.string("an asset's name");
    }
    model_.assets[tensor.substr(0, tensor.find(':'))].name = name;
  }

  void read_meta_info(WireReader reader) {
    while (const int field = reader.next()) {
      if (field == 4) {
        values_.spend(1);
        model_.tags.push_back(reader.string("a tag"));
      }
      if (field == 5) model_.tensorflow_version = reader.string("tensorflow_version");
    }
  }

  TensorInfo tensor_info(WireReader reader) {
    const std::vector<TensorInfo> all = tensor_infos(reader, 0);
    if (all.size() != 1) reader.fail("one tensor that is made of " + std::to_string(all.size()));
    return all.front();
  }

  /// The tensors that one is made of, as a ragged or a sparse one is; else itself.
  std::vector<TensorInfo> tensor_infos(WireReader& reader, int depth) {
    if (depth > 8) reader.fail("tensors made of tensors, more than 8 deep");
    TensorInfo to;
    to.shape.has_rank = false;
    std::vector<TensorInfo> parts;
    while (const int field = reader.next()) {
      values_.spend(1);
      if (field == 1) to.name = reader.string("a tensor's name");
      if (field == 2) to.dtype = static_cast<DataType>(reader.int32("a tensor's type"));
      if (field == 3) to.shape = GraphProtoReader().shape(reader.message("a tensor's shape"));
      if (field == 4) read_sparse(reader.message("a sparse tensor"), parts);
      if (field == 5) {
        WireReader composite = reader.message("a tensor of several");
        while (const int composite_field = composite.next()) {
          if (composite_field == 2) {
            WireReader component = composite.message("a component");
            for (TensorInfo& part : tensor_infos(component, depth + 1)) parts.push_back(std::move(part));
          }
        }
      }
    }
    if (parts.empty()) return {std::move(to)};
    // Of a sparse one the values have its type, and the shape's numbers are as many as it has dims.
    if (parts.front().dtype == DataType::kInvalid) parts.front().dtype = to.dtype;
    return parts;
  }

  /// Elements [n], places [n,rank], shape [rank], in the order of TensorFlow's message.
  void read_sparse(WireReader reader, std::vector<TensorInfo>& to) {
    std::map<uint32_t, std::string> names;
    while (const int field = reader.next()) {
      if (field >= 1 && field <= 3)
        names[static_cast<uint32_t>(field)] = reader.string("a sparse tensor's part");
    }
    if (names.size() != 3) reader.fail("a sparse tensor without one of its parts");
    to.push_back({names[1], DataType::kInvalid, {true, {-1}}});
    to.push_back({names[2], DataType::kInt64, {true, {-1, -1}}});
    to.push_back({names[3], DataType::kInt64, {true, {-1}}});
  }

  /// A tensor that is made of several is as many: NAME, NAME_1 ..., as TensorFlow itself calls those of
  /// inputs.
  void named_tensor(WireReader entry, std::map<std::string, TensorInfo>& to) {
    values_.spend(1);
    std::string name;
    std::vector<TensorInfo> parts;
    while (const int field = entry.next()) {
      if (field == 1) name = entry.string("a name");
      if (field == 2) {
        WireReader tensor = entry.message("a tensor");
        parts = tensor_infos(tensor, 0);
      }
    }
    if (!is_utf8(name)) entry.fail("an input or output whose name is not UTF-8");
    for (size_t i = 0; i < parts.size(); ++i)
      to[i == 0 ? name : name + "_" + std::to_string(i)] = std::move(parts[i]);
  }

  void read_signature(WireReader entry) {
    values_.spend(1);
    std::string key;
    Signature to;
    while (const int field = entry.next()) {
      if (field == 1) key = entry.string("a signature's key");
      if (field == 2) {
        WireReader reader = entry.message("a signature");
        while (const int reader_field = reader.next()) {
          if (reader_field == 1) named_tensor(reader.message("an input"), to.inputs);
          if (reader_field == 2) named_tensor(reader.message("an output"), to.outputs);
          if (reader_field == 3) to.method = reader.string("method_name");
        }
      }
    }
    if (!is_utf8(key)) entry.fail("a signature whose name is not UTF-8");
    model_.signatures[key] = std::move(to);
  }

  /// SavedObjectGraph: objects, and which of them functions are bound to.
  void read_objects(WireReader reader) {
    while (const int field = reader.next()) {
      if (field == 1) {
        values_.spend(1);
        model_.objects.push_back(read_object(reader.message("an object")));
      }
      if (field == 2) read_bound_inputs(reader.message("a concrete function"));
    }
    for (const auto& [function, objects] : model_.bound_inputs)
      for (const int64_t object : objects)
        if (object < 0 || static_cast<size_t>(object) >= model_.objects.size())
          reader.fail("function \"" + function.substr(0, 200) + "\" is bound to object " +
                      std::to_string(object) + " of " + std::to_string(model_.objects.size()));
  }

  SavedObject read_object(WireReader reader) {
    SavedObject to;
    while (const int field = reader.next()) {
      if (field != 7) continue;
      to.is_variable = true;
      WireReader variable = reader.message("a variable");
      while (const int variable_field = variable.next()) {
        if (variable_field == 6) to.name = variable.string("a variable's name");
      }
    }
    return to;
  }

  void read_bound_inputs(WireReader entry) {
    values_.spend(1);
    std::string name;
    std::vector<int64_t> bound;
    while (const int field = entry.next()) {
      if (field == 1) name = entry.string("a function's name");
      if (field == 2) {
        WireReader function = entry.message("a concrete function");
        while (const int function_field = function.next()) {
          if (function_field == 2) function.append_varints(bound, "bound_inputs");
        }
      }
    }
    values_.spend(bound.size());
    model_.bound_inputs[name] = std::move(bound);
  }

  /// The checkpoint's own graph of objects has the same numbers: each says under which key its elements are.
  void add_checkpoint_keys() {
    const auto found = model_.variables.find(kObjectGraph);
    if (found == model_.variables.end()) return;
    const std::string_view graph = variable_texts(found->second.data, 1).front();
    WireReader reader(graph, graph.data(), 0);
    size_t index = 0;
    while (const int field = reader.next()) {
      if (field != 1) continue;
      WireReader node = reader.message("an object of the checkpoint");
      while (const int node_field = node.next()) {
        if (node_field != 2) continue;
        WireReader attribute = node.message("an attribute of the checkpoint");
        std::string name, key;
        while (const int attribute_field = attribute.next()) {
          if (attribute_field == 1) name = attribute.string("an attribute's name");
          if (attribute_field == 3) key = attribute.string("checkpoint_key");
        }
        if (name == "VARIABLE_VALUE" && index < model_.objects.size())
          model_.objects[index].checkpoint_key = key;
      }
      ++index;
    }
    model_.variables.erase(found);
    for (const SavedObject& object : model_.objects)
      if (!object.checkpoint_key.empty() && !model_.variables.contains(object.checkpoint_key))
        throw Error(ErrorCode::kInvalidModel,
                    "variables: \"" + object.checkpoint_key.substr(0, 200) + "\" is not in the checkpoint");
  }

  const ModelFiles& files_;
  SavedModel model_;
  wire::WorkBudget values_{"objects, signatures and bound inputs", 4'000'000};
};

}  // namespace

SavedModel read_saved_model(const ModelFiles& files) { return SavedModelReader(files).read(); }

}  // namespace tensormill::frontend::tensorflow
