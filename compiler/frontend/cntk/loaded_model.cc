#include "compiler/frontend/cntk/loaded_model.h"

#include <cstring>

#include "runtime/base/error.h"

namespace tensormill::frontend::cntk {

namespace {

[[noreturn]] void invalid(const Variable& variable, const std::string& what) {
  throw Error(ErrorCode::kInvalidModel,
              "variable \"" + std::string(variable.uid.substr(0, 200)) + "\" " + what);
}
[[noreturn]] void unsupported(const Variable& variable, const std::string& what) {
  throw Error(ErrorCode::kNotSupported,
              "variable \"" + std::string(variable.uid.substr(0, 200)) + "\" " + what);
}

/// Where all inputs go through the same dynamic axes, steps of sequences are samples like others.
void check_dynamic_axes(const Model& model, const Walk& walk) {
  const Variable* first = nullptr;
  for (const Input& input : walk.inputs) {
    const Variable& variable = model.variables[input.variable];
    if (variable.dynamic_axes.empty()) continue;
    if (first == nullptr) first = &variable;
    const bool is_same =
        std::equal(variable.dynamic_axes.begin(), variable.dynamic_axes.end(), first->dynamic_axes.begin(),
                   first->dynamic_axes.end(), [](const Axis& a, const Axis& b) { return a.name == b.name; });
    if (!is_same)
      unsupported(variable,
                  "has other dynamic axes than another input: sequences beside single samples are "
                  "not implemented");
  }
}

Walk checked_walk(const Model& model) {
  Walk made = walk(model);
  check_dynamic_axes(model, made);
  for (const Input& input : made.inputs) static_cast<void>(input_dtype(model.variables[input.variable]));
  return made;
}

}  // namespace

DType input_dtype(const Variable& variable) {
  const std::optional<DType> dtype = dtype_of(variable.dtype);
  if (!dtype) unsupported(variable, "has elements of type " + std::to_string(variable.dtype) + " of CNTK's");
  return *dtype;
}

LoadedModel::LoadedModel(std::shared_ptr<const void> owner, Model model)
    : owner_(std::move(owner)), model_(std::move(model)), walk_(checked_walk(model_)) {}

Tensor LoadedModel::tensor(const Variable& variable) const {
  if (!variable.value) invalid(variable, "has no value");
  const Array& array = *variable.value;
  if (array.storage != 0) unsupported(variable, "has a sparse value");
  const std::optional<DType> dtype = dtype_of(array.dtype);
  if (!dtype) unsupported(variable, "has elements of type " + std::to_string(array.dtype) + " of CNTK's");
  const std::optional<int64_t> count = count_elements(array.dims);
  const size_t size = array.is_double ? sizeof(double) : sizeof(float);
  if (!count || static_cast<uint64_t>(*count) != array.values.size() / size ||
      array.values.size() % size != 0)
    invalid(variable, "has " + std::to_string(array.values.size()) +
                          " bytes of elements, which are not those of its shape");
  const DType stored = array.is_double ? DType::kFloat64 : DType::kFloat32;
  const Shape shape(array.dims.rbegin(), array.dims.rend());
  const bool is_aligned = reinterpret_cast<uintptr_t>(array.values.data()) % size == 0 && *count > 0;
  // Tensors have no const data pointer; what is mapped is only read.
  if (is_aligned && stored == *dtype)
    return {stored, shape, std::const_pointer_cast<void>(owner_), const_cast<char*>(array.values.data())};
  Tensor given(stored, shape);
  if (*count > 0) std::memcpy(given.data(), array.values.data(), given.num_bytes());
  if (stored == *dtype) return given;
  // Elements of float16 are written as float32.
  Tensor made(*dtype, shape);
  for (int64_t i = 0; i < *count; ++i) made.set_element(i, given.element_as_double(i));
  return made;
}

}  // namespace tensormill::frontend::cntk
