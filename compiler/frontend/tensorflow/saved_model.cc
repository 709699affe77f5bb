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
    while (reader.next()) {
      if (reader.field() == 1) {
        const int64_t version = reader.int64("saved_model_schema_version");
        if (version != 1) throw Error(ErrorCode::kNotSupported, "schema version " + std::to_string(version));
      } else if (reader.field() == 2 && !is_served) {
        if (++graphs > 16) reader.fail("more than 16 meta graphs");
        model_ = {};
        read_meta_graph(reader.message("a meta graph"));
        is_served = std::find(model_.tags.begin(), model_.tags.end(), "serve") != model_.tags.end();
      } else {
        reader.skip();
      }
    }
    if (graphs == 0) reader.fail("no meta graph");
  }

  void read_meta_graph(WireReader reader) {
    GraphProtoReader graphs;
    while (reader.next()) {
      switch (reader.field()) {
        case 1:
          read_meta_info(reader.message("meta_info_def"));
          break;
        case 2:
          model_.graph = graphs.graph(reader.message("graph_def"));
          break;
        case 3:
          read_saver(reader.message("saver_def"));
          break;
        case 5:
          read_signature(reader.message("signature_def"));
          break;
        case 6:
          read_asset(reader.message("asset_file_def"));
          break;
        case 7:
          read_objects(reader.message("object_graph_def"));
          break;
        default:
          reader.skip();
      }
    }
  }

  void read_saver(WireReader reader) {
    while (reader.next()) {
      if (reader.field() == 1) {
        const std::string tensor = reader.string("filename_tensor_name");
        model_.checkpoint_node = tensor.substr(0, tensor.find(':'));
      } else if (reader.field() == 3) {
        model_.restore_node = reader.string("restore_op_name");
      } else {
        reader.skip();
      }
    }
  }

  /// The tensor that stands for a file's name, and the file.
  void read_asset(WireReader reader) {
    values_.spend(1);
    std::string tensor, name;
    while (reader.next()) {
      if (reader.field() == 1) {
        tensor = tensor_info(reader.message("an asset's tensor")).name;
      } else if (reader.field() == 2) {
        name = reader.string("an asset's name");
      } else {
        reader.skip();
      }
    }
    model_.assets[tensor.substr(0, tensor.find(':'))].name = name;
  }

  void read_meta_info(WireReader reader) {
    while (reader.next()) {
      if (reader.field() == 4) {
        values_.spend(1);
        model_.tags.push_back(reader.string("a tag"));
      } else if (reader.field() == 5) {
        model_.tensorflow_version = reader.string("tensorflow_version");
      } else {
        reader.skip();
      }
    }
  }

  TensorInfo tensor_info(WireReader reader) {
    TensorInfo to;
    to.shape.has_rank = false;
    while (reader.next()) {
      switch (reader.field()) {
        case 1:
          to.name = reader.string("a tensor's name");
          break;
        case 2:
          to.dtype = static_cast<DataType>(reader.int32("a tensor's type"));
          break;
        case 3:
          to.shape = GraphProtoReader().shape(reader.message("a tensor's shape"));
          break;
        default:
          reader.skip();
      }
    }
    return to;
  }

  void named_tensor(WireReader entry, std::map<std::string, TensorInfo>& to) {
    values_.spend(1);
    std::string name;
    TensorInfo info;
    while (entry.next()) {
      if (entry.field() == 1) {
        name = entry.string("a name");
      } else if (entry.field() == 2) {
        info = tensor_info(entry.message("a tensor"));
      } else {
        entry.skip();
      }
    }
    if (!is_utf8(name)) entry.fail("an input or output whose name is not UTF-8");
    to[name] = std::move(info);
  }

  void read_signature(WireReader entry) {
    values_.spend(1);
    std::string key;
    Signature to;
    while (entry.next()) {
      if (entry.field() == 1) {
        key = entry.string("a signature's key");
      } else if (entry.field() == 2) {
        WireReader reader = entry.message("a signature");
        while (reader.next()) {
          switch (reader.field()) {
            case 1:
              named_tensor(reader.message("an input"), to.inputs);
              break;
            case 2:
              named_tensor(reader.message("an output"), to.outputs);
              break;
            case 3:
              to.method = reader.string("method_name");
              break;
            default:
              reader.skip();
          }
        }
      } else {
        entry.skip();
      }
    }
    if (!is_utf8(key)) entry.fail("a signature whose name is not UTF-8");
    model_.signatures[key] = std::move(to);
  }

  /// SavedObjectGraph: objects, and which of them functions are bound to.
  void read_objects(WireReader reader) {
    while (reader.next()) {
      if (reader.field() == 1) {
        values_.spend(1);
        model_.objects.push_back(read_object(reader.message("an object")));
      } else if (reader.field() == 2) {
        read_bound_inputs(reader.message("a concrete function"));
      } else {
        reader.skip();
      }
    }
    for (const auto& [function, objects] : model_.bound_inputs)
      for (const int64_t object : objects)
        if (object < 0 || static_cast<size_t>(object) >= model_.objects.size())
          reader.fail("function \"" + function.substr(0, 200) + "\" is bound to object " +
                      std::to_string(object) + " of " + std::to_string(model_.objects.size()));
  }

  SavedObject read_object(WireReader reader) {
    SavedObject to;
    while (reader.next()) {
      if (reader.field() != 7) {
        reader.skip();
        continue;
      }
      to.is_variable = true;
      WireReader variable = reader.message("a variable");
      while (variable.next()) {
        if (variable.field() == 6) {
          to.name = variable.string("a variable's name");
        } else {
          variable.skip();
        }
      }
    }
    return to;
  }

  void read_bound_inputs(WireReader entry) {
    values_.spend(1);
    std::string name;
    std::vector<int64_t> bound;
    while (entry.next()) {
      if (entry.field() == 1) {
        name = entry.string("a function's name");
      } else if (entry.field() == 2) {
        WireReader function = entry.message("a concrete function");
        while (function.next()) {
          if (function.field() == 2) {
            function.append_varints(bound, "bound_inputs");
          } else {
            function.skip();
          }
        }
      } else {
        entry.skip();
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
    while (reader.next()) {
      if (reader.field() != 1) {
        reader.skip();
        continue;
      }
      WireReader node = reader.message("an object of the checkpoint");
      while (node.next()) {
        if (node.field() != 2) {
          node.skip();
          continue;
        }
        WireReader attribute = node.message("an attribute of the checkpoint");
        std::string name, key;
        while (attribute.next()) {
          if (attribute.field() == 1) {
            name = attribute.string("an attribute's name");
          } else if (attribute.field() == 3) {
            key = attribute.string("checkpoint_key");
          } else {
            attribute.skip();
          }
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
