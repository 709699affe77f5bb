// A model of its files: what its inputs are follows from both nets and from value_info.json.
#include "compiler/frontend/caffe2/model.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::caffe2 {

namespace {

using Names = std::set<std::string_view>;

Net net_of(const ModelFiles& files, const char* name) {
  const std::optional<std::string_view> bytes = files(name);
  if (!bytes)
    throw Error(ErrorCode::kInvalidModel, "there is no " + std::string(name) + ": a model is " + kInitNet +
                                              ", which has its weights, and " + kPredictNet +
                                              " beside each other in a folder, or in a tar or zip");
  try {
    return read_net(*bytes);
  } catch (Error& error) {
    error.add_context(name);
    throw;
  }
}

/// What a writer of nets for phones fills inputs with, so that they are there: one 0.
bool is_place_holder(const Operator& fill) {
  const Argument* shape = fill.find("shape");
  const Argument* values = fill.find("values");
  return fill.type == "GivenTensorFill" && shape != nullptr && values != nullptr &&
         shape->integers == std::vector<int64_t>{1} && values->reals == std::vector<float>{0};
}

/// How the net that computes reads a value that it has not made.
struct Use {
  bool is_map = true;              ///< as the first operand alone
  bool is_lookup = false;          ///< as what elements are looked up by
  const Operator* conv = nullptr;  ///< the first convolution of it
};

class Uses {
public:
  explicit Uses(const Net& net) {
    std::set<std::string_view> made;
    for (const Operator& each : net.operators) {
      for (size_t i = 0; i < each.inputs.size(); ++i)
        if (made.count(each.inputs[i]) == 0) add(each, i);
      made.insert(each.outputs.begin(), each.outputs.end());
    }
  }
  /// Null where nothing reads it.
  const Use* find(std::string_view name) const {
    const auto found = all_.find(name);
    return found == all_.end() ? nullptr : &found->second;
  }
  /// In the order in which they are read first.
  const std::vector<std::string_view>& names() const { return names_; }

private:
  void add(const Operator& reader, size_t operand) {
    const auto [use, is_new] = all_.try_emplace(reader.inputs[operand]);
    if (is_new) names_.push_back(reader.inputs[operand]);
    const bool is_gather = reader.type == "Gather" || reader.type == "BatchGather";
    if (operand > 0) use->second.is_map = false;
    if (operand == 1 && is_gather) use->second.is_lookup = true;
    if (operand == 0 && reader.type == "Conv" && reader.inputs.size() > 1 && use->second.conv == nullptr)
      use->second.conv = &reader;
  }

  std::map<std::string_view, Use> all_;
  std::vector<std::string_view> names_;
};

/// What the init net fills, by name.
using Fills = std::map<std::string_view, const Operator*>;

Fills fills_of(const Net& init) {
  Fills fills;
  for (const Operator& each : init.operators)
    for (const std::string_view output : each.outputs) fills.insert_or_assign(output, &each);
  return fills;
}

using Said = std::map<std::string, Input>;

Names place_holders_of(const Model& model, const Fills& fills, const Uses& uses, const Said& said) {
  Names all;
  for (const std::string_view name : model.predict.inputs) {
    const auto fill = fills.find(name);
    if (fill == fills.end()) continue;
    const Use* use = uses.find(name);
    const bool is_said = said.count(std::string(name)) != 0;
    if (is_said || (is_place_holder(*fill->second) && use != nullptr && use->is_map)) all.insert(name);
  }
  return all;
}

/// A convolution says how many dims what it reads has, and how many channels.
std::optional<std::vector<int64_t>> dims_for(const Operator& conv, const Fills& fills) {
  const auto weights = fills.find(conv.inputs[1]);
  const Argument* shape = weights == fills.end() ? nullptr : weights->second->find("shape");
  if (shape == nullptr || shape->integers.size() < 3 || shape->integers.size() > 5) return std::nullopt;
  std::vector<int64_t> dims(shape->integers.size(), -1);
  const Argument* order = conv.find("order");
  const Argument* group = conv.find("group");
  const bool is_last = order != nullptr && order->text == "NHWC";
  const int64_t part = is_last ? shape->integers.back() : shape->integers[1];
  const int64_t groups = group == nullptr ? 1 : group->integer.value_or(1);
  int64_t channels = 0;
  if (part > 0 && groups > 0 && !__builtin_mul_overflow(part, groups, &channels))
    (is_last ? dims.back() : dims[1]) = channels;
  return dims;
}

Input input_of(std::string_view name, const Fills& fills, const Use* use, const Said& said) {
  if (!is_utf8(name)) throw Error(ErrorCode::kInvalidModel, "an input has a name that is not UTF-8");
  if (const auto found = said.find(std::string(name)); found != said.end()) return found->second;
  Input input{std::string(name)};
  if (use == nullptr) return input;
  if (use->is_lookup) input.dtype = DType::kInt64;
  if (use->conv != nullptr) input.dims = dims_for(*use->conv, fills);
  return input;
}

void add_inputs(Model& model, const Fills& fills, const Uses& uses, const Said& said) {
  Names known;
  const auto add = [&](std::string_view name) {
    const bool is_input = fills.count(name) == 0 || model.place_holders.count(name) != 0;
    if (is_input && known.insert(name).second)
      model.inputs.push_back(input_of(name, fills, uses.find(name), said));
  };
  for (const std::string_view name : model.predict.inputs) add(name);
  // A net may leave out what it reads.
  for (const std::string_view name : uses.names()) add(name);
}

/// `name` with one word in place of another; "" where it does not have that.
std::string replaced(std::string name, const std::string& word, const std::string& by) {
  const size_t at = name.rfind(word);
  return at == std::string::npos ? std::string() : name.replace(at, word.size(), by);
}

}  // namespace

NetNames net_names(const std::string& given) {
  if (const std::string init = replaced(given, "predict", "init"); !init.empty()) return {given, init};
  if (const std::string predict = replaced(given, "init", "predict"); !predict.empty())
    return {predict, given};
  return {given, kInitNet};
}

Model read_model(const ModelFiles& files) {
  Model model;
  model.predict = net_of(files, kPredictNet);
  model.init = net_of(files, kInitNet);
  const std::optional<std::string_view> info = files(kValueInfo);
  const Said said = info ? read_value_info(*info) : Said();
  const Fills fills = fills_of(model.init);
  const Uses uses(model.predict);
  model.place_holders = place_holders_of(model, fills, uses, said);
  add_inputs(model, fills, uses, said);
  if (output_names(model).empty())
    throw Error(ErrorCode::kInvalidModel, std::string(kPredictNet) + ": the net has no outputs");
  return model;
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  Names known;
  const auto add = [&](std::string_view name) {
    if (!is_utf8(name)) throw Error(ErrorCode::kInvalidModel, "an output has a name that is not UTF-8");
    if (known.insert(name).second) names.emplace_back(name);
  };
  for (const std::string_view name : model.predict.outputs) add(name);
  if (!names.empty() || model.predict.operators.empty()) return names;
  // Nothing is said: the last operator makes it.
  const Operator& last = model.predict.operators.back();
  if (!last.outputs.empty()) add(last.outputs[0]);
  return names;
}

}  // namespace tensormill::frontend::caffe2
