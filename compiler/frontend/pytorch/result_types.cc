// Types of results where no file says them.
#include <algorithm>
#include <array>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

template <size_t kCount>
bool is_among(const std::string& op, const std::array<std::string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

constexpr std::array<std::string_view, 22> kTruthNames = {
    "eq",          "ne",         "lt",          "le",
    "gt",          "ge",         "greater",     "greater_equal",
    "less",        "less_equal", "not_equal",   "isclose",
    "logical_and", "logical_or", "logical_xor", "logical_not",
    "isnan",       "isinf",      "isfinite",    "isin",
    "signbit",     "isposinf"};
/// Of whole numbers of 64 bits, whatever they add up.
constexpr std::array<std::string_view, 6> kSumNames = {"sum", "nansum", "prod", "cumsum", "cumprod", "trace"};
/// Of real numbers, unless it is told otherwise.
constexpr std::array<std::string_view, 7> kRealFills = {"zeros",    "ones", "empty", "linspace",
                                                        "logspace", "eye",  "rand"};
/// What is computed together with the first operand.
constexpr std::array<std::string_view, 7> kWith = {"other",   "min",  "max", "tensor1",
                                                   "tensor2", "vec1", "vec2"};

DType of_number(const Number& number) {
  if (std::holds_alternative<bool>(number)) return DType::kBool;
  return std::holds_alternative<ir::SymInt>(number) ? DType::kInt64 : DType::kFloat32;
}

DType of_range(NodeContext& node) {
  for (const char* name : {"start", "end", "step"})
    if (takes(node, name) && (node.extent_real(name) || of_number(node.number(name)) == DType::kFloat32))
      return DType::kFloat32;
  return DType::kInt64;
}

DType of_parts(NodeContext& node) {
  std::vector<Operand> parts;
  for (const V part : node.tensors("tensors")) {
    parts.push_back({part,
                     false,
                     {node.dtype(part), node.rank(part) == 0 ? OperandKind::kScalar : OperandKind::kTensor}});
  }
  return node.common_type(parts);
}

DType of_operands(NodeContext& node) {
  std::vector<Operand> operands = {node.operand(node.row().arguments.front().name.c_str())};
  for (const std::string_view name : kWith) {
    const std::string argument(name);
    if (takes(node, name) && node.has(argument.c_str())) operands.push_back(node.operand(argument.c_str()));
  }
  return node.common_type(operands);
}

}  // namespace

DType untyped_result(NodeContext& node) {
  const std::string& op = node.op();
  for (const char* name : {"dtype", "out_dtype"})
    if (takes(node, name) && node.has(name))
      if (const std::optional<DType> given = node.optional_dtype(name)) return *given;
  const bool has_self = takes(node, "self") && node.is_tensor("self");
  if (node.row().is_in_place && has_self) return node.dtype(node.tensor("self"));
  if (is_among(op, kTruthNames)) return DType::kBool;
  if (op == "any" || op == "all")
    return node.dtype(node.tensor("self")) == DType::kUInt8 ? DType::kUInt8 : DType::kBool;
  if (op == "type_as" || (op == "to" && node.row().overload == "other"))
    return node.dtype(node.tensor("other"));
  if (op == "bucketize" || op == "searchsorted")
    return node.flag("out_int32") ? DType::kInt32 : DType::kInt64;
  if (op == "arange") return of_range(node);
  if (op == "tril_indices" || op == "triu_indices") return DType::kInt64;
  if (op == "full") return of_number(node.number("fill_value"));
  if (is_among(op, kRealFills) || op == "scalar_tensor") return DType::kFloat32;
  if (op.ends_with("_window") || op.ends_with("freq") || op == "empty_strided" || op == "empty_permuted")
    return DType::kFloat32;
  if (takes(node, "tensors")) return of_parts(node);
  if (is_among(op, kSumNames)) {
    const DType own = node.dtype(node.tensor("self"));
    return is_float(own) ? own : DType::kInt64;
  }
  return of_operands(node);
}

}  // namespace tensormill::frontend::pytorch
