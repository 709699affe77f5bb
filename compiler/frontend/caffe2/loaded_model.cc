#include "compiler/frontend/caffe2/loaded_model.h"

#include <cstring>

#include "compiler/build/rows.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::caffe2 {

namespace {

struct FillRow {
  std::string_view type;
  DType dtype;
};
constexpr FillRow kFills[] = {
#define CAFFE2_FILL(type, dtype) {type, DType::dtype},
#include "compiler/frontend/caffe2/fills.def"
#undef CAFFE2_FILL
};

const FillRow* fill_row(std::string_view type) { return build::find_in(kFills, &FillRow::type, type); }

[[noreturn]] void invalid(const std::string& what) { throw Error(ErrorCode::kInvalidModel, what); }

/// Argument shape; without it a scalar.
Shape shape_of(const Operator& fill) {
  if (!filled_elements(fill)) invalid("argument shape is none");
  const Argument* shape = fill.find("shape");
  return shape == nullptr ? Shape() : Shape(shape->integers.begin(), shape->integers.end());
}

void check_count(const Shape& shape, size_t given) {
  if (static_cast<uint64_t>(num_elements(shape)) != given)
    invalid("a fill of shape " + to_string(shape) + " has " + std::to_string(given) + " values");
}

/// Bytes of a string are uint8 elements.
Tensor filled_bytes(const Argument& values, const Shape& shape) {
  const std::string_view bytes = values.text            ? *values.text
                                 : values.texts.empty() ? std::string_view()
                                                        : values.texts.front();
  check_count(shape, bytes.size());
  Tensor made(DType::kUInt8, shape);
  if (!bytes.empty()) std::memcpy(made.data(), bytes.data(), bytes.size());
  return made;
}

Tensor filled_alike(const Operator& fill, DType dtype, const Shape& shape) {
  const Argument* value = fill.find("value");
  Tensor made(dtype, shape);
  const bool is_whole = value != nullptr && value->integer.has_value();
  const double real = value == nullptr ? 0 : value->real.value_or(0);
  for (int64_t i = 0; i < made.num_elements(); ++i) {
    if (is_whole) {
      made.set_element_int(i, *value->integer);
    } else {
      made.set_element(i, real);
    }
  }
  return made;
}

}  // namespace

bool is_fill(std::string_view type) { return fill_row(type) != nullptr; }

std::optional<DType> dtype_of(int64_t number) {
  constexpr build::NumberedType kTypes[] = {{1, DType::kFloat32},  {2, DType::kInt32},   {3, DType::kUInt8},
                                            {5, DType::kBool},     {6, DType::kUInt8},   {7, DType::kInt8},
                                            {8, DType::kUInt16},   {9, DType::kInt16},   {10, DType::kInt64},
                                            {12, DType::kFloat16}, {13, DType::kFloat64}};
  return build::dtype_numbered(kTypes, number);
}

std::optional<DType> filled_dtype(const Operator& fill) {
  const FillRow* row = fill_row(fill.type);
  if (row == nullptr) return std::nullopt;
  const Argument* dtype = fill.find("dtype");
  if (fill.type != "ConstantFill" || dtype == nullptr) return row->dtype;
  return dtype_of(dtype->integer.value_or(0));
}

std::optional<int64_t> filled_elements(const Operator& fill) {
  const Argument* shape = fill.find("shape");
  return shape == nullptr ? 1 : count_elements(shape->integers);
}

LoadedModel::LoadedModel(std::shared_ptr<const void> owner, Model model)
    : kept_(std::make_shared<const Kept>(Kept{std::move(owner), std::move(model)})) {}

Tensor LoadedModel::shared(const void* elements, DType dtype, Shape shape) const {
  // Tensors have no const data pointer; what is shared is only read.
  return {dtype, std::move(shape), std::const_pointer_cast<Kept>(kept_), const_cast<void*>(elements)};
}

Tensor LoadedModel::filled(const Operator& fill) const {
  const std::optional<DType> dtype = filled_dtype(fill);
  if (!dtype) throw Error(ErrorCode::kNotSupported, "a fill of a type of elements that is not known");
  if (fill.type == "ConstantFill") return filled_alike(fill, *dtype, shape_of(fill));
  const Argument* values = fill.find("values");
  if (values == nullptr) invalid("argument values is missing");
  Shape shape = shape_of(fill);
  if (*dtype == DType::kUInt8) return filled_bytes(*values, shape);
  const bool is_real = is_float(*dtype);
  const size_t given = is_real ? values->reals.size() : values->integers.size();
  check_count(shape, given);
  if (*dtype == DType::kFloat32 && given > 0) return shared(values->reals.data(), *dtype, std::move(shape));
  if (*dtype == DType::kInt64 && given > 0) return shared(values->integers.data(), *dtype, std::move(shape));
  Tensor made(*dtype, shape);
  for (size_t i = 0; i < given; ++i) {
    if (is_real) {
      made.set_element(static_cast<int64_t>(i), static_cast<double>(values->reals[i]));
    } else {
      made.set_element_int(static_cast<int64_t>(i), values->integers[i]);
    }
  }
  return made;
}

}  // namespace tensormill::frontend::caffe2
