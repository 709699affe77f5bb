#include "compiler/frontend/pytorch/script/module.h"

#include <algorithm>
#include <functional>
#include <set>

#include "compiler/frontend/pytorch/script/parser.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

using Pickled = std::shared_ptr<const PickleValue>;

constexpr uint64_t kMaxCodeBytes = uint64_t{64} << 20;

/// The folder in which all members lie, whatever its name: "net/".
std::string root_of(const wire::ZipFile& zip) {
  for (const npz::ZipMember& member : zip.members())
    if (member.name == "data.pkl" || member.name.ends_with("/data.pkl"))
      return member.name.substr(0, member.name.size() - 8);
  throw Error(ErrorCode::kInvalidModel, "the archive has no data.pkl");
}

/// "code/__torch__/net.py" -> "__torch__.net"
std::string module_name(std::string_view file) {
  std::string name(file.substr(5, file.size() - 8));
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

void read_code(wire::ZipFile& zip, const std::string& root, Code& code) {
  uint64_t bytes = 0;
  for (const npz::ZipMember& member : zip.members()) {
    if (!member.name.starts_with(root + "code/") || !member.name.ends_with(".py")) continue;
    const std::string file = member.name.substr(root.size());
    const std::string_view text = zip.read(member.name);
    bytes += text.size();
    if (bytes > kMaxCodeBytes)
      throw Error(ErrorCode::kTooLarge, "the code has more than " + std::to_string(kMaxCodeBytes) + " bytes");
    parse_code(text, file, module_name(file), code);
  }
}

/// Each tensor within the value; one that stands several times once.
void for_each_tensor(const PickleValue& value, const std::string& name, std::set<const void*>& seen,
                     const std::function<void(const PickleValue&, const std::string&)>& visit) {
  if (!seen.insert(&value).second) return;
  if (value.kind == PickleValue::Kind::kTensor) return visit(value, name);
  const bool is_dict = value.kind == PickleValue::Kind::kDict;
  for (size_t i = 0; i < value.items.size(); ++i) {
    const bool is_named = is_dict && i % 2 == 1 && value.items[i - 1]->kind == PickleValue::Kind::kText;
    for_each_tensor(*value.items[i], is_named ? name + "." + value.items[i - 1]->text : name, seen, visit);
  }
}

void check_tensors(const PickleValue& value, const std::string& name) {
  std::set<const void*> seen;
  for_each_tensor(value, name, seen, [](const PickleValue& tensor, const std::string& own) {
    check_stored(tensor.tensor, own);
  });
}

/// {"forward": [tensor, ...]}
std::vector<Pickled> examples_of(wire::ZipFile& zip, const std::string& root) {
  const std::string member = root + "traced_inputs.pkl";
  if (!zip.has(member)) return {};
  const Pickled all = read_pickle(zip, {member, root + "traced_inputs/", true, true});
  if (all->kind != PickleValue::Kind::kDict) return {};
  for (size_t i = 0; i + 1 < all->items.size(); i += 2)
    if (all->items[i]->text == "forward")
      return {all->items[i + 1]->items.begin(), all->items[i + 1]->items.end()};
  return {};
}

}  // namespace

const Class& Module::root_class() const {
  const auto found = code.classes.find(root->text);
  if (found == code.classes.end())
    throw Error(ErrorCode::kInvalidModel, "the code has no class \"" + root->text + "\"");
  return found->second;
}

const Function& Module::forward() const {
  const Class& own = root_class();
  const auto found = own.methods.find("forward");
  if (found == own.methods.end())
    throw Error(ErrorCode::kNotSupported,
                "module " + short_name(own.name) + " has no forward(): save a module that has one");
  return found->second;
}

Module read_module(std::string_view bytes) {
  const auto zip = std::make_shared<wire::ZipFile>(bytes);
  const std::string root = root_of(*zip);
  Module module;
  module.kept = zip;
  if (zip->has(root + "version")) module.version = zip->read(root + "version").substr(0, 16);
  while (!module.version.empty() && module.version.back() == '\n') module.version.pop_back();
  read_code(*zip, root, module.code);
  module.root = read_pickle(*zip, {root + "data.pkl", root + "data/", true});
  if (module.root->kind != PickleValue::Kind::kObject)
    throw Error(ErrorCode::kInvalidModel, "data.pkl is no module");
  check_tensors(*module.root, short_name(module.root->text));
  if (zip->has(root + "constants.pkl")) {
    const Pickled constants = read_pickle(*zip, {root + "constants.pkl", root + "constants/", true});
    if (constants->kind != PickleValue::Kind::kTuple)
      throw Error(ErrorCode::kInvalidModel, "constants.pkl is no tuple");
    check_tensors(*constants, "CONSTANTS");
    module.constants.assign(constants->items.begin(), constants->items.end());
  }
  module.examples = examples_of(*zip, root);
  static_cast<void>(module.forward());
  return module;
}

Attributes attributes_of(const PickleValue& object) {
  Attributes attributes;
  if (object.items.empty() || object.items[0]->kind != PickleValue::Kind::kDict) return attributes;
  const std::vector<std::shared_ptr<PickleValue>>& state = object.items[0]->items;
  for (size_t i = 0; i + 1 < state.size(); i += 2)
    if (state[i]->kind == PickleValue::Kind::kText) attributes[state[i]->text] = state[i + 1].get();
  return attributes;
}

std::string short_name(std::string_view name) {
  return std::string(name.substr(name.rfind('.') == std::string_view::npos ? 0 : name.rfind('.') + 1));
}

namespace {

void count_calls(const Expr& expr, FileFacts& facts);

void count_calls(const std::vector<Statement>& body, FileFacts& facts) {
  for (const Statement& each : body) {
    if (each.value) count_calls(*each.value, facts);
    count_calls(each.body, facts);
    count_calls(each.otherwise, facts);
  }
}

/// torch.relu(x) is aten.relu to its users.
void count_calls(const Expr& expr, FileFacts& facts) {
  if (expr.kind == Expr::Kind::kCall) {
    const std::string name = dotted_name(*expr.items[0]);
    if (name.starts_with("torch.")) ++facts.ops["aten." + name.substr(6)];
    if (name.starts_with("ops.")) ++facts.ops[name.substr(4)];
  }
  for (const ExprPtr& item : expr.items) count_calls(*item, facts);
  for (const auto& [name, item] : expr.keywords) count_calls(*item, facts);
}

}  // namespace

FileFacts facts_of(const Module& module) {
  FileFacts facts;
  facts.format = "torchscript";
  facts.version =
      "file version " + module.version + ", " + std::to_string(module.code.classes.size()) + " classes";
  const Function& forward = module.forward();
  for (size_t i = 1; i < forward.parameters.size(); ++i) {
    const Parameter& parameter = forward.parameters[i];
    facts.inputs.push_back(
        unshaped_value(parameter.name, parameter.type ? type_text(*parameter.type) : "Tensor"));
  }
  for (const auto& [name, each] : module.code.classes)
    for (const auto& [method, function] : each.methods) count_calls(function.body, facts);
  for (const auto& [name, function] : module.code.functions) count_calls(function.body, facts);
  std::set<const void*> seen;
  const auto add = [&](const PickleValue& value, const std::string& /*name*/) {
    facts.add_weight(count_elements(value.tensor.sizes), scalar_bytes(value.tensor.dtype));
  };
  for_each_tensor(*module.root, "", seen, add);
  for (const auto& constant : module.constants) for_each_tensor(*constant, "", seen, add);
  return facts;
}

}  // namespace tensormill::frontend::pytorch::script
