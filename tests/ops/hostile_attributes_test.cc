/// Nodes that strangers write: whatever attributes and operands they have, a type rule gives types or refuses
/// them, and what it has accepted is evaluated or refused for its data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <random>

#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "tests/ops/cases/cases.h"
#include "tests/scope.h"

namespace tensormill {
namespace {

using Random = std::mt19937_64;

/// A node: an operator's attributes, and the types of its operands, of which some are not given.
struct HostileNode {
  const ir::OpDef* def = nullptr;
  ir::Attrs attrs;
  std::vector<std::optional<ir::ValueType>> inputs;
};

std::string description(const HostileNode& node) {
  std::string text = std::string(node.def->name) + " " + to_string(node.attrs);
  for (const auto& input : node.inputs) text += input ? " " + to_string(*input) : " -";
  return text;
}

int64_t any_number(Random& random) {
  constexpr int64_t kNumbers[] = {0,  1,  2,         3,         4,         7,       100,
                                  -1, -2, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 20, -100};
  return kNumbers[random() % std::size(kNumbers)];
}

/// Values of an evaluation are few.
constexpr int64_t kMostElements = 4096;

int64_t elements_of(const ir::ValueType& type) {
  int64_t count = 1;
  for (const int64_t extent : type.shape.hints())
    if (__builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count)) return INT64_MAX;
  return count;
}

bool is_small(const std::vector<ir::ValueType>& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const ir::ValueType& type) { return elements_of(type) <= kMostElements; });
}

/// Evaluates the node of zeros. Errors of the data may be: an index, say, of none.
void evaluate(const HostileNode& node, const std::vector<ir::ValueType>& types) {
  std::vector<Tensor> given, made;
  for (const auto& input : node.inputs) {
    if (input) given.push_back(Tensor::zeros(input->dtype, input->shape.hints()));
  }
  for (const ir::ValueType& type : types) made.push_back(Tensor::zeros(type.dtype, type.shape.hints()));
  ir::ReferenceContext context{node.attrs, {}, {}};
  size_t next = 0;
  for (const auto& input : node.inputs) context.inputs.push_back(input ? &given[next++] : nullptr);
  for (Tensor& tensor : made) context.outputs.push_back(&tensor);
  node.def->reference(context);
}

Tensor hostile_tensor(const ir::ValueType& type, Random& random) {
  Tensor tensor(type.dtype, type.shape.hints());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element_int(i, any_number(random));
  return tensor;
}

/// The node in a graph of its own, where some operands are constants, whose values may be known.
std::vector<ir::ValueType> types_in_graph(const HostileNode& node, Random& random) {
  ir::Graph graph(ops::standard_ops());
  std::vector<ir::ValueId> operands;
  for (const auto& input : node.inputs) {
    const std::string name = "x" + std::to_string(operands.size());
    if (!input) {
      operands.push_back(ir::kAbsent);
    } else if (random() % 3 == 0 && is_small({*input})) {
      operands.push_back(graph.add_constant(name, hostile_tensor(*input, random)));
    } else {
      operands.push_back(graph.add_input(name, *input));
    }
  }
  std::vector<ir::ValueType> types;
  for (const ir::ValueId output : graph.add_node(std::string(node.def->name), operands, node.attrs))
    types.push_back(graph.value(output).type);
  return types;
}

/// Whether a graph takes the node. Fails the test for any other error than a refusal.
bool is_taken(const HostileNode& node, Random& random) {
  SCOPED_TRACE(description(node));
  std::vector<ir::ValueType> types;
  try {
    types = types_in_graph(node, random);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel) << error.message();
    return false;
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    return false;
  }
  std::vector<ir::ValueType> all = types;
  for (const auto& input : node.inputs)
    if (input) all.push_back(*input);
  if (!is_small(all)) return true;
  try {
    evaluate(node, types);
  } catch (const Error&) {
    // Data that the operator refuses.
  }
  if (node.def->compute == nullptr) return true;
  ir::ComputeContext context{node.attrs, {}, {}, types, "t"};
  for (const auto& input : node.inputs) {
    context.input_types.push_back(input.value_or(ir::ValueType{}));
    context.inputs.push_back(input ? te::placeholder("x", input->dtype, input->shape) : nullptr);
  }
  // What only the expression would read, the type rule has to refuse.
  EXPECT_NO_THROW(EXPECT_EQ(node.def->compute(context).size(), types.size()));
  return true;
}

void change_list(ir::Ints& list, Random& random) {
  switch (random() % 5) {
    case 0:
      list.clear();
      return;
    case 1:
      list.push_back(any_number(random));
      return;
    case 2:
      if (!list.empty()) list.pop_back();
      return;
    default:
      if (!list.empty()) list[random() % list.size()] = any_number(random);
  }
}

void change_attribute(HostileNode& node, Random& random) {
  if (node.attrs.all().empty()) return;
  auto found = node.attrs.all().begin();
  std::advance(found, random() % node.attrs.all().size());
  const std::string name = found->first;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&found->second)) {
    ir::Ints other = *list;
    change_list(other, random);
    node.attrs.set(name, std::vector<int64_t>(other));
  } else if (std::get_if<int64_t>(&found->second) != nullptr) {
    node.attrs.set(name, any_number(random));
  } else if (std::get_if<DType>(&found->second) != nullptr) {
    node.attrs.set(name, all_dtypes()[random() % all_dtypes().size()].dtype);
  }
}

void change_operand(HostileNode& node, Random& random) {
  if (node.inputs.empty()) return;
  auto& input = node.inputs[random() % node.inputs.size()];
  if (!input) {
    input = ir::ValueType{DType::kFloat32, {2, 3}};
    return;
  }
  ir::SymShape& shape = input->shape;
  switch (random() % 6) {
    case 0:
      input = std::nullopt;
      return;
    case 1:
      if (!shape.empty()) shape.pop_back();
      return;
    case 2:
      shape.push_back(1 + static_cast<int64_t>(random() % 3));
      return;
    case 3:
      shape.clear();
      return;
    case 4:
      input->dtype = all_dtypes()[random() % all_dtypes().size()].dtype;
      return;
    default:
      if (!shape.empty()) shape[random() % shape.size()] = static_cast<int64_t>(random() % 9);
  }
}

TEST(HostileAttributes, ChangedCasesAreTakenOrRefused) {
  Random random(41);
  const size_t changed = is_sweep() ? 200 : 10;
  size_t taken = 0, refused = 0;
  for (const ops_cases::Case& each : ops_cases::all_cases()) {
    std::optional<ops_cases::Instance> instance;
    for (const DTypeInfo& row : all_dtypes()) {
      if (!instance) instance = ops_cases::instantiate(each, row.dtype);
    }
    ASSERT_TRUE(instance.has_value()) << each.op;
    for (size_t i = 0; i < changed; ++i) {
      HostileNode node{instance->def, each.attrs, instance->inputs};
      for (size_t times = 1 + random() % 2; times > 0; --times)
        random() % 2 == 0 ? change_attribute(node, random) : change_operand(node, random);
      (is_taken(node, random) ? taken : refused) += 1;
    }
  }
  EXPECT_GT(taken, 1000U);
  EXPECT_GT(refused, 1000U);
}

/// An attribute as an operator's documentation has it: "axes (ints, required)".
struct AttributeForm {
  std::string name, kind;
};

bool is_word(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

/// "axes, ends (ints, required)" has two forms of kind "ints".
std::vector<AttributeForm> attributes_of(const ir::OpDef& def) {
  constexpr std::string_view kKinds[] = {"int",    "ints",    "bool",  "float", "floats",
                                         "string", "strings", "dtype", "dim",   "dims"};
  std::vector<AttributeForm> all;
  for (size_t open = def.doc.find(" ("); open != std::string_view::npos;
       open = def.doc.find(" (", open + 1)) {
    const auto end =
        std::find_if_not(def.doc.begin() + static_cast<std::ptrdiff_t>(open) + 2, def.doc.end(), &is_word);
    const std::string kind(def.doc.begin() + static_cast<std::ptrdiff_t>(open) + 2, end);
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) continue;
    std::string_view names = def.doc.substr(0, open);
    for (bool more = true; more;) {
      size_t begin = names.size();
      while (begin > 0 && is_word(names[begin - 1])) --begin;
      all.push_back({std::string(names.substr(begin)), kind});
      names = names.substr(0, begin);
      more = names.ends_with(", ");
      if (more) names.remove_suffix(2);
    }
  }
  return all;
}

/// Of another kind at times.
ir::AttrValue any_value(std::string kind, Random& random) {
  constexpr const char* kKinds[] = {"ints", "floats", "float", "string", "strings", "dtype", "int"};
  if (random() % 40 == 0) kind = kKinds[random() % std::size(kKinds)];
  if (kind == "ints" || kind == "dims") {
    std::vector<int64_t> list(random() % 5);
    for (int64_t& each : list)
      each = random() % 3 == 0 ? any_number(random) : static_cast<int64_t>(random() % 4);
    return list;
  }
  if (kind == "floats") return std::vector<double>(random() % 4, 0.5);
  if (kind == "float") return 0.5;
  if (kind == "string") return std::string(random() % 2 == 0 ? "linear" : "");
  if (kind == "strings") return std::vector<std::string>(random() % 4, "f32");
  if (kind == "dtype") return all_dtypes()[random() % all_dtypes().size()].dtype;
  return any_number(random);
}

TEST(HostileAttributes, AnyNodeIsTakenOrRefused) {
  Random random(43);
  const size_t tried = is_sweep() ? 5000 : 300;
  size_t taken = 0, refused = 0;
  for (const ir::OpDef& def : ops::standard_ops().all()) {
    const std::vector<AttributeForm> forms = attributes_of(def);
    for (size_t i = 0; i < tried; ++i) {
      HostileNode node{&def, {}, {}};
      for (const AttributeForm& form : forms)
        if (random() % 8 != 0) node.attrs.set(form.name, any_value(form.kind, random));
      const size_t most = def.max_inputs < 0 ? 4 : static_cast<size_t>(def.max_inputs);
      const size_t least = static_cast<size_t>(def.min_inputs);
      const DType common = all_dtypes()[random() % all_dtypes().size()].dtype;
      for (size_t count = least + random() % (std::max(most, least) - least + 1); count > 0; --count) {
        ir::SymShape shape;
        for (size_t rank = random() % 5; rank > 0; --rank)
          shape.push_back(static_cast<int64_t>(random() % 4));
        const DType dtype = random() % 4 != 0 ? common : all_dtypes()[random() % all_dtypes().size()].dtype;
        node.inputs.emplace_back(ir::ValueType{dtype, shape});
      }
      (is_taken(node, random) ? taken : refused) += 1;
    }
  }
  EXPECT_GT(taken, 1000U);
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace tensormill
