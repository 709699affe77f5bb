#include "compiler/frontend/onnx/graph/set_outputs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/control/ragged.h"
#include "compiler/frontend/onnx/converters/control/stacks.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "compiler/frontend/onnx/extents/data_extents.h"
#include "compiler/frontend/onnx/model/tensor_data.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

/// One output of the model, whose outputs of the graph go behind those that are there.
class Output {
public:
  Output(const ImportedModel& imported, const std::set<std::string>& reserved, const std::string& name,
         std::vector<ir::ValueId>& outputs)
      : model_(imported.model),
        ports_(imported.options.form.ports),
        name_(name),
        graph_(imported.builder.graph()),
        extents_(graph_),
        node_(graph_, extents_, none_, name_, kMaxOpset, {}, imported.source, reserved, imported.options.form,
              ir::kAbsent),
        context_{imported.builder, node_, imported.scope, no_inputs_},
        outputs_(outputs) {}

  /// A sequence becomes one output an element, or one of all where a run works out how many there are; an
  /// empty optional value none.
  void add(const Binding& found) {
    if (add_ports(found)) return;
    if (found.kind == Binding::Kind::kMaybe) {
      add_renamed(found.tensor, name_);
      add_present(found.present);
    } else if (found.kind == Binding::Kind::kRagged) {
      add_stack(stack_of_ragged(context_, found));
    } else if (found.kind == Binding::Kind::kStack) {
      add_stack(found);
      if (found.present != ir::kAbsent) add_present(found.present);
    } else {
      add_elements(found.elements);
    }
  }

private:
  /// The value by another name.
  void add_renamed(ir::ValueId value, const std::string& name) {
    const ir::ValueType type = graph_.value(value).type;
    const std::string own = graph_.unique_name(name);
    // As NodeContext::set_output.
    outputs_.push_back(is_narrow(type.dtype)
                           ? graph_.add_node("reshape", {value}, {{"shape", type.shape}}, {name_}, {own})[0]
                           : graph_.add_node("identity", {value}, {}, {name_}, {own})[0]);
  }

  void add_elements(const std::vector<ir::ValueId>& elements) {
    for (size_t i = 0; i < elements.size(); ++i) add_renamed(elements[i], name_ + "/" + std::to_string(i));
  }

  /// A stack whose length is known is a list as others are, unless it follows from free dims. Else it is one
  /// output, as large as the largest element of the run, and NAME.extents has each one's own where they
  /// differ.
  void add_stack(const Binding& found) {
    const Binding all = zeros_where_none(found);
    const ir::SymInt length = node_.type(all.tensor).shape[0];
    if (node_.data_shape(all.tensor).extents.empty() && length.is_constant() && !node_.stacks_elements()) {
      std::vector<ir::ValueId> elements;
      for (int64_t i = 0; i < length.hint(); ++i) elements.push_back(element_at(context_, all, i));
      return add_elements(elements);
    }
    add_renamed(as_large_as_needed(context_, all), name_);
    if (!all.uneven.empty()) add_renamed(all.extents, name_ + kExtentsOf);
  }

  /// Of an optional sequence the elements are zeros where there is none.
  Binding zeros_where_none(Binding all) {
    if (all.present == ir::kAbsent) return all;
    Compose c(node_);
    const Shape each(c.shape(all.tensor).size(), 1);
    all.tensor = c.where(c.reshape(all.present, each), all.tensor, c.filled(c.dtype(all.tensor), each, 0));
    return all;
  }

  /// Whether there is an optional value that data decides about. What it may hold is zeros where there is
  /// none.
  void add_present(ir::ValueId present) {
    outputs_.push_back(graph_.add_node("reshape", {present}, {{"shape", Shape{}}}, {name_},
                                       {graph_.unique_name(name_ + kPresenceOf)})[0]);
  }

  bool is_port(const std::string& name) const { return ports_.count(name) != 0; }

  /// As ImportForm::ports have it, whatever is known of it; whether they do.
  bool add_ports(const Binding& found) {
    const bool has_table = is_port(name_ + kExtentsOf), is_optional = is_port(name_ + kPresenceOf);
    const auto declared = std::find_if(model_.graph.outputs.begin(), model_.graph.outputs.end(),
                                       [&](const ValueInfoProto& output) { return output.name == name_; });
    if (!is_port(name_) || declared == model_.graph.outputs.end()) return false;
    if (is_sequence(found) || has_table) {
      const bool is_empty =
          !is_sequence(found) || (found.kind == Binding::Kind::kSequence && found.elements.empty());
      const Ranks ranks = ranks_of(found);
      const Binding all =
          zeros_where_none(is_empty ? stack(nothing_of(*declared, true)) : stacked(found, ranks));
      if ((!all.uneven.empty() || ranks.differ) && !has_table) return false;
      add_renamed(as_large_as_needed(context_, all), name_);
      if (has_table)
        add_renamed(ranks.differ ? table_of_ranks(found, ranks) : table_of(context_, all),
                    name_ + kExtentsOf);
    } else {
      const ir::ValueId tensor = held(found);
      add_renamed(tensor == ir::kAbsent ? nothing_of(*declared, false) : tensor, name_);
    }
    if (is_optional) add_present(presence(context_, found));
    return true;
  }

  /// Of a list's elements.
  struct Ranks {
    int64_t most = 0;
    bool differ = false;
  };

  Ranks ranks_of(const Binding& found) const {
    Ranks ranks;
    for (const ir::ValueId element : found.elements) ranks.most = std::max(ranks.most, rank_of(element));
    for (const ir::ValueId element : found.elements) ranks.differ |= rank_of(element) != ranks.most;
    return ranks;
  }

  int64_t rank_of(ir::ValueId element) const { return shown_rank(node_, element); }

  /// Elements that lack axes have one element along each of them.
  Binding stacked(Binding found, const Ranks& ranks) {
    Compose c(node_);
    for (ir::ValueId& element : found.elements) {
      while (rank_of(element) < ranks.most) element = c.unsqueeze(element, rank_of(element));
    }
    try {
      return stacked_elements(context_, found, "output \"" + name_ + "\"");
    } catch (const UnsupportedForm& form) {
      throw Error(ErrorCode::kNotSupported, form.reason);
    }
  }

  /// The table of elements of several ranks: -1 for an axis that an element lacks.
  ir::ValueId table_of_ranks(const Binding& found, const Ranks& ranks) {
    Compose c(node_);
    std::vector<ir::ValueId> rows;
    for (const ir::ValueId element : found.elements) {
      const int64_t own = rank_of(element), lacks = ranks.most - own;
      std::vector<ir::ValueId> parts;
      if (own > 0) parts.push_back(extents_row(context_, element));
      if (lacks > 0)
        parts.push_back(c.ints(std::vector<int64_t>(static_cast<size_t>(lacks), -1), {1, lacks}));
      rows.push_back(c.concat(std::move(parts), 1));
    }
    return c.concat(std::move(rows), 0);
  }

  /// Zeros of the declared type, or a stack of no such elements. Extents that are not declared are 0.
  ir::ValueId nothing_of(const ValueInfoProto& declared, bool is_stack) {
    Shape shape;
    if (is_stack) shape.push_back(0);
    for (const Dim& dim : declared.has_shape ? declared.shape : DimShape()) {
      const auto* extent = std::get_if<int64_t>(&dim);
      shape.push_back(extent != nullptr ? std::max<int64_t>(*extent, 0) : 0);
    }
    if (!is_stack && !declared.has_shape) shape.push_back(0);
    const DType dtype = *dtype_of(declared.elem_type);
    if (dtype == kString) shape.push_back(1);
    return context_.builder.constant(Tensor::zeros(dtype, std::move(shape))).tensor;
  }

  const ModelProto& model_;
  const std::set<std::string>& ports_;
  const std::string name_;
  ir::Graph& graph_;
  const NodeProto none_;
  DataExtents extents_;
  NodeContext node_;
  const std::vector<Binding> no_inputs_;
  StructureContext context_;
  std::vector<ir::ValueId>& outputs_;
};

}  // namespace

void set_outputs(const ImportedModel& imported, const std::set<std::string>& reserved) {
  const std::set<std::string>& ports = imported.options.form.ports;
  std::vector<std::string> names = imported.options.outputs;
  if (names.empty()) {
    for (const ValueInfoProto& output : imported.model.graph.outputs) names.push_back(output.name);
  }
  std::vector<ir::ValueId> outputs;
  for (const std::string& name : names) {
    const Binding* found = imported.scope.find(name);
    if (found == nullptr)
      throw Error(ErrorCode::kInvalidArgument,
                  "outputs name \"" + name + "\", which is no value of the model");
    if (found->kind != Binding::Kind::kTensor || ports.count(name + kPresenceOf) != 0) {
      Output(imported, reserved, name, outputs).add(*found);
      continue;
    }
    if (std::find(outputs.begin(), outputs.end(), found->tensor) != outputs.end())
      throw Error(ErrorCode::kInvalidArgument, "outputs name \"" + name + "\" twice");
    outputs.push_back(found->tensor);
  }
  if (outputs.empty())
    throw Error(ErrorCode::kNotSupported, "all outputs are empty sequences or optional values");
  imported.builder.graph().set_outputs(std::move(outputs));
}

}  // namespace tensormill::frontend::onnx
