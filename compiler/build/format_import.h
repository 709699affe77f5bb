/// An import of a model as that of every format goes: what is not implemented is reported before all else;
/// inputs are added and nodes converted, and all nodes that cannot be are reported together; outputs are set.
/// Thread-safety: belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/missing.h"
#include "compiler/build/model_graph.h"
#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// What the graph is called, and the model's inputs and outputs, in its order.
struct ModelNames {
  std::string graph;
  std::vector<std::string> inputs, outputs;
};
/// The names of values that have one.
template <typename Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(value.name);
  return names;
}

/// Of what an import converts: nodes, those that are called as often as they are.
struct NodeLimit {
  std::string noun = "node";  ///< what errors call one
  size_t most = SIZE_MAX;
  std::string repeated = {};  ///< behind that number: ", those of loops as often as they go round"
  /// How errors begin that have named a node within this one.
  std::vector<std::string_view> named = {};
};

/// The values of a model that are not made as the node that makes them could not be converted: what reads one
/// of them has no operands, and is not converted either.
template <typename Key>
class LostValues {
public:
  /// Calls convert() for a node that reads values of `read` alone that are there, and which makes those of
  /// `made` unless it is false.
  template <typename Read, typename Made, typename Convert>
  void convert(const Read& read, const Made& made, const Convert& convert) {
    const bool has_operands =
        std::none_of(std::begin(read), std::end(read), [&](const auto& each) { return contains(each); });
    const bool is_done = has_operands && convert();
    is_whole_ = is_whole_ && is_done;
    for (const auto& each : made) {
      if (is_done) {
        keys_.erase(Key(each));
      } else {
        keys_.insert(Key(each));
      }
    }
  }
  /// Whether all nodes could be converted.
  bool is_whole() const { return is_whole_; }

private:
  bool contains(const Key& key) const { return keys_.count(key) != 0; }

  std::set<Key> keys_;
  bool is_whole_ = true;
};

class FormatImport {
public:
  FormatImport(const FormatImport&) = delete;
  FormatImport& operator=(const FormatImport&) = delete;
  virtual ~FormatImport() = default;

  /// Throws MissingError, and what converters throw, with the node.
  ir::Graph run();

protected:
  /// `missing`: what is known of the model before it is converted. The request outlives the import.
  FormatImport(const ir::OpRegistry& ops, const GraphRequest& request, ModelNames names, Missing missing,
               NodeLimit limit = {});

  /// Adds the inputs and converts the nodes; whether all could be that the outputs need.
  virtual bool convert_all() = 0;
  /// What stands for an output of the model.
  virtual ir::ValueId output(size_t index) = 0;

  ir::ValueId add_input(size_t index, DType dtype);
  /// Counts a node. Throws Error(kTooLarge).
  void count_node(const std::string& label);
  /// Counts a node; whether convert() has converted it. Where it throws UnsupportedForm, that is noted, and
  /// an error that names no node gets the node's name. What it looks for outside of a shape or a list is the
  /// model's fault: Error(kInvalidModel).
  bool try_convert(const std::string& label, const std::function<NodePlace()>& place,
                   const std::function<void()>& convert);
  /// Whether an error names a node.
  bool names_node(const Error& error) const;

  ir::Graph graph_;
  const ModelNames names_;
  const std::set<std::string> reserved_;  ///< names of inputs and outputs
  Missing missing_;
  const NodeLimit limit_;
  size_t converted_ = 0;

private:
  const GraphRequest& asked_;
};

}  // namespace tensormill::build
