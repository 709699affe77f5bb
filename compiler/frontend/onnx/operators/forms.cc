#include "compiler/frontend/onnx/operators/forms.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tensormill::frontend::onnx {

namespace {

struct AttributeValues {
  std::string_view domain, op, attribute;
  std::string_view values;  ///< separated by spaces
};

struct AttributeNames {
  std::string_view domain, op;
  std::string_view names;  ///< separated by spaces
};

struct NodeArity {
  std::string_view domain, op;
  size_t operands, outputs;
};

constexpr std::string_view kPadding = "NOTSET VALID SAME_UPPER SAME_LOWER";
constexpr std::string_view kActivations =
    "Affine Elu HardSigmoid LeakyRelu Relu ScaledTanh Sigmoid Softplus Softsign Tanh ThresholdedRelu";
constexpr std::string_view kCoordinates =
    "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn "
    "tf_crop_and_resize";
constexpr std::string_view kTransforms = "NONE LOGISTIC SOFTMAX SOFTMAX_ZERO PROBIT";
constexpr std::string_view kExperts = "relu gelu silu swiglu identity";
constexpr std::string_view kFusedByConv = "Relu Sigmoid Tanh LeakyRelu HardSigmoid HardSwish Clip";
constexpr std::string_view kFusedByGemm =
    "Relu Sigmoid Tanh LeakyRelu HardSigmoid Elu Selu Softplus Softsign ThresholdedRelu";

constexpr AttributeValues kAttributeValues[] = {
#define TM_ATTRIBUTE_VALUES(domain, op, attribute, values) {domain, op, attribute, values},
#include "compiler/frontend/onnx/operators/attribute_values.def"
#undef TM_ATTRIBUTE_VALUES
};

constexpr AttributeNames kAttributeNames[] = {
#define TM_ATTRIBUTE_NAMES(domain, op, names) {domain, op, names},
#include "compiler/frontend/onnx/operators/attribute_names.def"
#undef TM_ATTRIBUTE_NAMES
};

constexpr NodeArity kNodeArities[] = {
#define TM_NODE_ARITY(domain, op, operands, outputs) {domain, op, operands, outputs},
#include "compiler/frontend/onnx/operators/node_arity.def"
#undef TM_NODE_ARITY
};

/// Attributes whose integer is an element type, whichever operator has them; 0 stands for none.
constexpr std::array<std::string_view, 6> kTypeAttributes = {"dtype",     "output_datatype",   "output_dtype",
                                                             "precision", "softmax_precision", "to"};

bool is_listed(std::string_view values, std::string_view value) {
  while (!values.empty()) {
    const size_t end = std::min(values.find(' '), values.size());
    if (values.substr(0, end) == value) return true;
    values.remove_prefix(std::min(end + 1, values.size()));
  }
  return false;
}

/// What the attribute says, as the table writes it.
std::vector<std::string> values_of(const AttributeProto& attribute) {
  if (attribute.type == AttributeType::kInt) return {std::to_string(attribute.i)};
  if (attribute.type == AttributeType::kString) return {std::string(attribute.s)};
  return {attribute.strings.begin(), attribute.strings.end()};
}

/// Types that are none at all are the converters' to refuse, as wrong.
bool is_missing_type(int64_t code) {
  constexpr int64_t kMostTypes = 64;
  const bool exists =
      code > 0 && code < kMostTypes && data_type_name(static_cast<int32_t>(code)).find("type ") != 0;
  return exists && !dtype_of(static_cast<int32_t>(code));
}

std::string type_reason(int32_t code) {
  return "element type " + data_type_name(code) + " is not implemented";
}

/// Names that begin with two underscores are an exporter's own, which the standard lets stand.
bool is_attribute_of(const NodeProto& node, const std::string& name) {
  const auto* row = std::find_if(
      std::begin(kAttributeNames), std::end(kAttributeNames),
      [&](const AttributeNames& each) { return each.domain == node.domain && each.op == node.op_type; });
  return row == std::end(kAttributeNames) || is_listed(row->names, name) || name.rfind("__", 0) == 0;
}

void add_attribute_forms(const NodeProto& node, const AttributeProto& attribute,
                         std::vector<UnsupportedForm>& forms) {
  const bool is_type =
      attribute.type == AttributeType::kInt &&
      std::find(kTypeAttributes.begin(), kTypeAttributes.end(), attribute.name) != kTypeAttributes.end();
  if (is_type && is_missing_type(attribute.i))
    forms.push_back({attribute.name, type_reason(static_cast<int32_t>(attribute.i))});
  if (!is_attribute_of(node, attribute.name)) forms.push_back({attribute.name, "is not implemented"});
  if (attribute.t && !dtype_of(attribute.t->data_type))
    forms.push_back({attribute.name, type_reason(attribute.t->data_type)});
  for (const AttributeValues& row : kAttributeValues) {
    if (row.domain != node.domain || row.op != node.op_type || row.attribute != attribute.name) continue;
    for (const std::string& value : values_of(attribute)) {
      const std::string shown = attribute.type == AttributeType::kInt ? value : "\"" + value + "\"";
      if (!is_listed(row.values, value) && !value.empty())
        forms.push_back({attribute.name, "value " + shown + " is not implemented"});
    }
  }
}

void add_arity_forms(const NodeProto& node, std::vector<UnsupportedForm>& forms) {
  for (const NodeArity& row : kNodeArities) {
    if (row.domain != node.domain || row.op != node.op_type) continue;
    for (size_t i = row.operands; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].empty()) forms.push_back({"input " + std::to_string(i), "is not implemented"});
    }
    for (size_t i = row.outputs; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) forms.push_back({"output " + std::to_string(i), "is not implemented"});
    }
  }
}

}  // namespace

std::vector<UnsupportedForm> unsupported_forms(const NodeProto& node, int64_t opset) {
  std::vector<UnsupportedForm> forms;
  for (const AttributeProto& attribute : node.attributes) add_attribute_forms(node, attribute, forms);
  add_arity_forms(node, forms);
  const OpRow* row = find_op(node.domain, node.op_type, opset);
  if (row == nullptr || row->check == nullptr) return forms;
  if (std::optional<UnsupportedForm> form = row->check(node, opset)) forms.push_back(*std::move(form));
  return forms;
}

std::string operator_label(const NodeProto& node, int64_t opset) {
  const std::string op = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
  return "op " + op + ", opset " + std::to_string(opset);
}

std::string form_detail(const NodeProto& node, int64_t opset, const UnsupportedForm& form) {
  return operator_label(node, opset) + ", attribute " + form.attribute + ": " + form.reason;
}

}  // namespace tensormill::frontend::onnx
