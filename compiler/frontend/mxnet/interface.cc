#include "compiler/frontend/mxnet/interface.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "compiler/ir/checked_list.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr size_t kMostDims = 16;
constexpr int64_t kMostOutputs = int64_t{1} << 16;
/// As far as an input is followed to what says its shape.
constexpr size_t kMostFollowed = 256;

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

const std::string* attribute(const Node& node, std::string_view name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : &found->second;
}

bool is_set(const Node& node, std::string_view name, bool otherwise) {
  const std::string* text = attribute(node, name);
  return text == nullptr ? otherwise : *text == "True" || *text == "true" || *text == "1";
}

ir::Ints numbers_of(const Node& node, std::string_view name) {
  const std::string* text = attribute(node, name);
  return text == nullptr ? std::vector<int64_t>() : listed_numbers(*text).value_or(std::vector<int64_t>());
}

int64_t number_of(const Node& node, std::string_view name, int64_t otherwise) {
  const ir::Ints numbers = numbers_of(node, name);
  return numbers.size() == 1 ? numbers[0] : otherwise;
}

bool is_proposal(const Node& node) {
  return is_one_of(node.op, {"_contrib_Proposal", "_contrib_MultiProposal"});
}

/// Operators whose result has the shape of their first operand.
bool keeps_shape(const Node& node) {
  return is_one_of(node.op, {"Activation", "BatchNorm",     "BatchNorm_v1",  "BlockGrad",     "Cast",
                             "Dropout",    "InstanceNorm",  "LRN",           "LeakyReLU",     "_copy",
                             "amp_cast",   "broadcast_add", "broadcast_div", "broadcast_mul", "broadcast_sub",
                             "cast",       "clip",          "identity",      "relu",          "sigmoid",
                             "tanh"}) ||
         node.op.ends_with("_scalar") || node.op.ends_with("Scalar");
}

class Finder {
public:
  explicit Finder(const Model& model) : model_(model), nodes_(model.symbol.nodes), readers_(nodes_.size()) {}

  Interface run() {
    mark_used();
    for (size_t i = 0; i < nodes_.size(); ++i)
      for (size_t k = 0; found_.is_used[i] && k < nodes_[i].inputs.size(); ++k)
        if (nodes_[i].inputs[k].index == 0) readers_[nodes_[i].inputs[k].node].push_back({i, k});
    add_inputs();
    add_outputs();
    return std::move(found_);
  }

private:
  void mark_used() {
    found_.is_used.assign(nodes_.size(), false);
    for (const Entry& head : model_.symbol.heads) found_.is_used[head.node] = true;
    // Nodes read those before them.
    for (size_t i = nodes_.size(); i-- > 0;)
      for (size_t k = 0; found_.is_used[i] && k < nodes_[i].inputs.size(); ++k)
        if (!is_label(nodes_[i], k)) found_.is_used[nodes_[i].inputs[k].node] = true;
  }

  void add_inputs() {
    std::set<std::string> names;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (!found_.is_used[i] || !node.is_variable() || model_.parameters.contains(node.name)) continue;
      if (!names.insert(node.name).second)
        throw Error(ErrorCode::kInvalidModel,
                    "two variables are called \"" + node.name.substr(0, 200) + "\"");
      Input input;
      input.node = i;
      input.name = node.name;
      follow(input);
      set_said(node, input);
      found_.inputs.push_back(std::move(input));
    }
  }

  /// What the variable itself says.
  static void set_said(const Node& node, Input& input) {
    const int64_t flag = number_of(node, "__dtype__", -1);
    if (flag >= 0) input.dtype = checked_type(flag, node.name);
    const ir::Ints dims = numbers_of(node, "__shape__");
    if (dims.empty() || dims.size() > kMostDims) return;
    input.has_rank = true;
    input.is_guess = false;
    input.dims.clear();
    for (const int64_t dim : dims) input.dims.push_back(dim > 0 ? dim : -1);
  }

  static DType checked_type(int64_t flag, const std::string& name) {
    if (const std::optional<DType> dtype = dtype_of(flag)) return *dtype;
    throw Error(ErrorCode::kNotSupported,
                "input \"" + name.substr(0, 200) + "\" has the type " + std::to_string(flag));
  }

  /// What the operators say that read it, or what has its shape.
  void follow(Input& input) const {
    std::vector<size_t> reached{input.node};
    int64_t channels = -1;
    for (size_t at = 0; at < reached.size() && reached.size() < kMostFollowed; ++at) {
      for (const auto& [reader, operand] : readers_[reached[at]]) {
        const Node& node = nodes_[reader];
        if (operand != 0) continue;
        if (set_by(node, channels, input)) return;
        if (!keeps_shape(node)) continue;
        if (const Parameter* scale = node.op.starts_with("BatchNorm") ? parameter(node, 1) : nullptr;
            scale != nullptr && scale->shape.size() == 1 && number_of(node, "axis", 1) == 1)
          channels = scale->shape[0];
        // It has one operand 0, so that it is reached once.
        reached.push_back(reader);
      }
    }
  }

  const Parameter* parameter(const Node& node, size_t operand) const {
    if (operand >= node.inputs.size()) return nullptr;
    const auto found = model_.parameters.find(nodes_[node.inputs[operand].node].name);
    return found == model_.parameters.end() ? nullptr : &found->second;
  }

  bool set_by(const Node& node, int64_t channels, Input& input) const {
    const Parameter* weight = parameter(node, 1);
    if (is_one_of(node.op, {"Convolution", "Convolution_v1", "Deconvolution"})) {
      const size_t rank = numbers_of(node, "kernel").size() + 2;
      if (weight == nullptr || weight->shape.size() != rank || rank > kMostDims) return false;
      const std::string* layout = attribute(node, "layout");
      const bool is_first = layout == nullptr || *layout == "None" || layout->starts_with("NC");
      input.dims.assign(rank, -1);
      int64_t extent = weight->shape[0];
      if (node.op != "Deconvolution" &&
          __builtin_mul_overflow(weight->shape[1], number_of(node, "num_group", 1), &extent))
        return false;
      if (is_first) input.dims[1] = extent;
      input.dtype = weight->dtype;
      input.has_rank = true;
    } else if (is_one_of(node.op, {"Pooling", "Pooling_v1"})) {
      const size_t rank = numbers_of(node, "kernel").size() + 2;
      if (rank == 2 || rank > kMostDims) return false;
      input.dims.assign(rank, -1);
      input.dims[1] = channels;
      input.has_rank = true;
    } else if (node.op == "FullyConnected" && is_set(node, "flatten", true)) {
      if (weight == nullptr || weight->shape.size() != 2) return false;
      input.dims = {-1, weight->shape[1]};
      input.dtype = weight->dtype;
      input.has_rank = input.is_guess = true;
    } else if (node.op == "Embedding") {
      input.dims = {-1, -1};
      input.has_rank = input.is_guess = true;
    } else if (node.op == "RNN") {
      input.dims = {-1, -1, -1};
      input.has_rank = true;
    }
    return input.has_rank;
  }

  void add_outputs() {
    std::set<std::string> names;
    for (const Entry& head : model_.symbol.heads) {
      const Node& node = nodes_[head.node];
      if (head.index >= node.outputs)
        throw Error(ErrorCode::kInvalidModel, "a head is output " + std::to_string(head.index) + " of \"" +
                                                  node.name.substr(0, 200) + "\", which has " +
                                                  std::to_string(node.outputs));
      Output output{output_name(node, head.index), head};
      if (names.insert(output.name).second) found_.outputs.push_back(std::move(output));
    }
  }

  const Model& model_;
  const std::vector<Node>& nodes_;
  std::vector<std::vector<std::pair<size_t, size_t>>> readers_;  ///< node and operand
  Interface found_;
};

}  // namespace

std::optional<std::vector<int64_t>> listed_numbers(std::string_view text) {
  std::vector<int64_t> numbers;
  const auto skip = [&] {
    while (!text.empty() && (text.front() == ' ' || text.front() == ',')) text.remove_prefix(1);
  };
  const bool is_list = text.size() >= 2 && ((text.front() == '(' && text.back() == ')') ||
                                            (text.front() == '[' && text.back() == ']'));
  if (is_list) text = text.substr(1, text.size() - 2);
  for (skip(); !text.empty(); skip()) {
    int64_t number = -1;
    if (text.starts_with("None")) {
      text.remove_prefix(4);
    } else {
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (code != std::errc()) return std::nullopt;
      text.remove_prefix(static_cast<size_t>(end - text.data()));
      // Numbers of Python 2.
      if (text.starts_with('L')) text.remove_prefix(1);
    }
    if (!text.empty() && text.front() != ',' && text.front() != ' ') return std::nullopt;
    numbers.push_back(number);
  }
  return is_list || numbers.size() == 1 ? std::optional(std::move(numbers)) : std::nullopt;
}

bool is_label(const Node& node, size_t operand) {
  return operand == 1 && is_one_of(node.op, {"LinearRegressionOutput", "LogisticRegressionOutput",
                                             "MAERegressionOutput", "SVMOutput", "Softmax", "SoftmaxOutput"});
}

size_t num_outputs(const Node& node) {
  const auto count = [&](int64_t number) {
    return static_cast<size_t>(std::clamp<int64_t>(number, 1, kMostOutputs));
  };
  if (is_one_of(node.op, {"SliceChannel", "split"})) return count(number_of(node, "num_outputs", 1));
  if (is_one_of(node.op, {"amp_multicast"})) return count(number_of(node, "num_outputs", 1));
  if (node.op == "_split_v2") {
    const int64_t sections = number_of(node, "sections", 0);
    return count(sections > 0 ? sections : static_cast<int64_t>(numbers_of(node, "indices").size()));
  }
  if (const std::string* kind = node.op == "topk" ? attribute(node, "ret_typ") : nullptr;
      kind != nullptr && *kind == "both")
    return 2;
  if (node.op == "_contrib_box_encode" || (is_proposal(node) && is_set(node, "output_score", false)))
    return 2;
  if (node.op == "RNN" && is_set(node, "state_outputs", false)) {
    const std::string* mode = attribute(node, "mode");
    return mode != nullptr && *mode == "lstm" ? 3 : 2;
  }
  return 1;
}

std::string output_name(const Node& node, size_t index) {
  if (node.is_variable()) return node.name;
  // It has a second output, which nobody sees.
  if (node.op.starts_with("_contrib_box_n")) return node.name + "_output0";
  if (is_proposal(node)) return node.name + (index == 0 ? "_output" : "_score");
  if (node.outputs == 1 || (node.op == "RNN" && index == 0)) return node.name + "_output";
  if (node.op == "RNN") return node.name + (index == 1 ? "_state_output" : "_statecell_output");
  return node.name + "_output" + std::to_string(index);
}

Interface interface_of(const Model& model) { return Finder(model).run(); }

}  // namespace tensormill::frontend::mxnet
