// Complex numbers among a node's arguments and results: pairs, whose parts stand along a last axis of 2.
#include <algorithm>
#include <array>
#include <utility>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Arguments that are values as the results are; others are places, masks, extents and factors.
constexpr std::array<std::string_view, 12> kValues = {"self",   "other",   "tensors", "src",
                                                      "source", "values",  "value",   "input",
                                                      "s",      "prepend", "append",  "fill_value"};

bool is_scalar_type(const Argument& argument) {
  return argument.kind == ArgumentKind::kScalarType && argument.value.is_number_integer();
}

}  // namespace

bool NodeContext::names_complex_type(const Argument& argument) const {
  return is_scalar_type(argument) &&
         part_type(static_cast<ScalarType>(argument.value.get<int64_t>())).has_value();
}

bool NodeContext::has_complex() const {
  for (const NamedArgument& input : node_.inputs) {
    if (input.argument.kind == ArgumentKind::kComplex || names_complex_type(input.argument)) return true;
    for (const std::string& name : input.argument.names) {
      const auto found = state_.tensors.find(name);
      if (found != state_.tensors.end() && found->second.is_complex) return true;
    }
  }
  if (!state_.is_typed) return false;
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const std::string& name) {
    const auto found = state_.graph.tensors.find(name);
    return found != state_.graph.tensors.end() && part_type(found->second.dtype);
  });
}

bool NodeContext::is_complex(const char* name) {
  const Argument* argument = given(name);
  if (argument != nullptr && argument->kind == ArgumentKind::kComplex) return true;
  return argument != nullptr && !argument->names.empty() && is_complex_in(name, 0);
}

bool NodeContext::is_complex_in(const char* name, size_t index) {
  const auto found = state_.tensors.find(given(name)->names.at(index));
  return found != state_.tensors.end() && found->second.is_complex;
}

bool NodeContext::makes_complex(size_t index) {
  const auto first_is = [&] { return is_complex(row_.arguments.front().name.c_str()); };
  if (row_.is_in_place) return first_is();
  if (state_.is_typed)
    return index < outputs_.size() && !outputs_[index].empty() && part_type(output_meta(index).dtype);
  for (const NamedArgument& input : node_.inputs)
    if (is_scalar_type(input.argument)) return names_complex_type(input.argument);
  if (op() == "type_as" || (op() == "to" && row_.overload == "other")) return is_complex("other");
  return has_complex();
}

Part NodeContext::part_of(const char* name, size_t index) const {
  if (parts_->of_second != name) return parts_->first;
  return name != std::string_view("tensors") || index == 1 ? parts_->second : parts_->first;
}

bool NodeContext::is_filled(const char* name, size_t index) const {
  return parts_ && parts_->fills && part_of(name, index) == Part::kImaginary &&
         std::find(kValues.begin(), kValues.end(), name) != kValues.end();
}

V NodeContext::taken(View& view, const char* name, size_t index) {
  Compose c(*this);
  const V value = read_view(*this, view);
  if (!view.is_complex) return is_filled(name, index) ? c.filled(dtype(value), shape(value), 0) : value;
  if (!parts_) unsupported(name, "complex numbers are not implemented here");
  const build::Complex parts = build::parts_of(*this, value);
  const Part part = part_of(name, index);
  if (part == Part::kLength) return build::hypotenuse(*this, parts.real, parts.imaginary);
  return part == Part::kReal ? parts.real : parts.imaginary;
}

std::pair<double, double> NodeContext::complex_number(const Argument& argument, const char* name) {
  const auto part = [&](const char* key) {
    if (!argument.value.is_object() || !argument.value.contains(key)) bad(name, "complex number");
    const Number number = number_of(argument.value[key], ArgumentKind::kFloat, name);
    if (const auto* real = std::get_if<double>(&number)) return *real;
    bad(name, "complex number");
  };
  return {part("real"), part("imag")};
}

V NodeContext::pairs(const char* name) {
  if (is_tensor(name)) {
    View& own = view(given(name)->names.front());
    const V value = read_view(*this, own);
    if (own.is_complex) return value;
    const V real = floated(*this, value);
    return build::paired(*this, {real, Compose(*this).filled(dtype(real), shape(real), 0)});
  }
  return build::paired(*this, complex(name, DType::kFloat32));
}

build::Complex NodeContext::complex(const char* name, DType dtype) {
  Compose c(*this);
  const Argument* argument = given(name);
  if (argument != nullptr && argument->kind == ArgumentKind::kComplex) {
    const auto [real, imaginary] = complex_number(*argument, name);
    return {c.doubles(dtype, {real}, {}), c.doubles(dtype, {imaginary}, {})};
  }
  if (is_tensor(name) && is_complex(name)) {
    const build::Complex parts = build::parts_of(*this, pairs(name));
    return {c.cast(parts.real, dtype), c.cast(parts.imaginary, dtype)};
  }
  const V real = as(operand(name), dtype);
  return {real, c.filled(dtype, shape(real), 0)};
}

DType NodeContext::common_part_type(const std::vector<const char*>& names) {
  parts_.emplace();
  std::vector<Operand> operands;
  for (const char* name : names) operands.push_back(operand(name));
  parts_.reset();
  const DType common = common_type(operands);
  return is_float(common) ? common : DType::kFloat32;
}

void NodeContext::set_pairs(size_t index, V pairs) {
  if (row_.is_in_place) {
    if (!is_complex(row_.arguments.front().name.c_str())) invalid("complex numbers in place of real ones");
    return write_to_first(index, pairs);
  }
  if (!has_output(index)) return;
  auto storage = std::make_shared<Storage>();
  storage->value = pairs;
  View made{std::move(storage), {}, pairs, 0};
  made.is_complex = true;
  take(outputs_[index], std::move(made));
}

std::map<size_t, PartResult> NodeContext::of_parts(Parts parts, Converter convert) {
  parts_ = parts;
  convert(*this);
  parts_.reset();
  return std::exchange(made_, {});
}

void NodeContext::set_parts(size_t index, const PartResult& real, V imaginary) {
  const V pairs = build::paired(*this, {real.value, imaginary});
  if (real.shared_of.empty() || row_.is_in_place) return set_pairs(index, pairs);
  if (!has_output(0)) return;
  auto storage = std::make_shared<Storage>();
  storage->value = pairs;
  View made{std::move(storage), {}, pairs, 0};
  made.is_complex = true;
  share(real.shared_of, std::move(made));
}

void NodeContext::set_view_as(bool is_complex, const char* of,
                              std::vector<std::shared_ptr<const ViewStep>> steps) {
  if (!has_output(0)) return;
  if (!is_tensor(of)) bad(of, "tensor");
  View& from = view(given(of)->names.front());
  View made = from;
  made.value = read_view(*this, from);
  made.version = from.version;
  made.is_complex = is_complex;
  for (auto& step : steps) {
    made.value = step->read(*this, made.value);
    made.steps.push_back(std::move(step));
  }
  if (row_.name.ends_with("_copy")) {
    const V copy = add("identity", {made.value});
    return is_complex ? set_pairs(0, copy) : set_output(0, copy);
  }
  take(outputs_[0], std::move(made));
}

}  // namespace tensormill::frontend::pytorch
