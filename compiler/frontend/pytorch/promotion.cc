#include "compiler/frontend/pytorch/promotion.h"

#include <algorithm>

namespace tensormill::frontend::pytorch {

namespace {

enum class Category : uint8_t { kBool, kInteger, kFloat };

Category category_of(DType dtype) {
  if (dtype == DType::kBool) return Category::kBool;
  return is_float(dtype) ? Category::kFloat : Category::kInteger;
}

std::optional<DType> signed_of(int bits) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64})
    if (dtype_info(dtype).bits == bits) return dtype;
  return std::nullopt;
}

/// Of an unsigned and a signed type: the signed one that holds both. torch has none but for uint8.
std::optional<DType> mixed(DType u, DType s) {
  if (u != DType::kUInt8) return std::nullopt;
  return signed_of(std::max(dtype_info(s).bits, 16));
}

/// `higher` where it is of no lower category.
std::optional<DType> combined(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher) return lower;
  if (!lower || category_of(*higher) == Category::kFloat) return higher;
  if (*higher == DType::kBool || category_of(*lower) == Category::kFloat)
    return promote_types(*higher, *lower);
  return higher;
}

}  // namespace

std::optional<DType> promote_types(DType a, DType b) {
  if (a == b) return a;
  // torch promotes no two of bools and the wider unsigned types.
  const auto is_wide = [](DType each) {
    return !is_float(each) && !dtype_info(each).is_signed && dtype_info(each).bits > 8;
  };
  const Category first = category_of(a), second = category_of(b);
  if ((first == Category::kBool && is_wide(b)) || (second == Category::kBool && is_wide(a)))
    return std::nullopt;
  if (first != second) return first > second ? a : b;
  const DTypeInfo &x = dtype_info(a), &y = dtype_info(b);
  // float16 and bfloat16
  if (first == Category::kFloat && x.bits == y.bits) return DType::kFloat32;
  if (first == Category::kFloat || x.is_signed == y.is_signed) {
    if (first == Category::kInteger && !x.is_signed) return std::nullopt;
    return x.bits > y.bits ? a : b;
  }
  return x.is_signed ? mixed(b, a) : mixed(a, b);
}

std::optional<DType> result_type(const std::vector<OperandType>& operands) {
  std::optional<DType> of_kind[3];
  for (const OperandType& operand : operands) {
    DType dtype = operand.dtype;
    if (operand.kind == OperandKind::kNumber && is_float(dtype)) dtype = DType::kFloat32;
    std::optional<DType>& own = of_kind[static_cast<size_t>(operand.kind)];
    const std::optional<DType> both = own ? promote_types(*own, dtype) : dtype;
    if (!both) return std::nullopt;
    own = both;
  }
  return combined(of_kind[0], combined(of_kind[1], of_kind[2]));
}

DType computed_in(DType dtype) {
  return is_float(dtype) && dtype_info(dtype).bits < 32 ? DType::kFloat32 : dtype;
}

}  // namespace tensormill::frontend::pytorch
