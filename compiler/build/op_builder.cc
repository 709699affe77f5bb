#include "compiler/build/op_builder.h"

#include <algorithm>

#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"

namespace tensormill::build {

void OpBuilder::invalid(const std::string& what) const { throw Error(ErrorCode::kInvalidModel, what); }

void OpBuilder::unsupported(std::string attribute, std::string reason) const {
  throw UnsupportedForm{std::move(attribute), std::move(reason)};
}

int64_t OpBuilder::normalize_axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) {
    invalid("axis " + std::to_string(axis) + " is outside of [" + std::to_string(-rank) + "," +
            std::to_string(rank) + ")");
  }
  return axis < 0 ? axis + rank : axis;
}

ir::Ints OpBuilder::normalize_axes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t& axis : axes) axis = normalize_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

ir::SymInt OpBuilder::product(const ir::SymInt& a, const ir::SymInt& b) const {
  int64_t result = 0;
  if (__builtin_mul_overflow(a.hint(), b.hint(), &result))
    invalid(to_string(a) + " * " + to_string(b) + " is too large");
  return a * b;
}

std::string OpBuilder::temporary_name() const {
  // A node may have many such values, and the model's name of it any length.
  size_t bytes = std::min<size_t>(base_.size(), 500);
  const auto is_inside = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  while (bytes > 0 && bytes < base_.size() && is_inside(base_[bytes])) --bytes;
  // Names that the model uses must stay free for their own values.
  for (size_t i = graph_.values().size();; ++i) {
    std::string name = base_.substr(0, bytes) + "#" + std::to_string(i);
    if (reserved_.count(name) == 0 && !graph_.find_value(name)) return name;
  }
}

bool OpBuilder::rename_if_free(ir::ValueId value, const std::string& name) {
  if (reserved_.count(name) != 0 || graph_.find_value(name)) return false;
  graph_.rename_value(value, name);
  return true;
}

void OpBuilder::fit_operands(const std::string&, std::vector<ir::ValueId>&, const ir::Attrs&) {}

void OpBuilder::fit_results(std::vector<ir::ValueId>&) {}

std::vector<ir::ValueId> OpBuilder::add_many(const std::string& op, std::vector<ir::ValueId> inputs,
                                             ir::Attrs attrs) {
  fit_operands(op, inputs, attrs);
  const ir::OpDef& def = graph_.ops().get(op);
  const auto count = static_cast<int>(inputs.size());
  if (count < def.min_inputs || (def.max_inputs >= 0 && count > def.max_inputs))
    invalid(op + " of " + std::to_string(count) + " operands");
  const std::string name = temporary_name();
  std::vector<ir::ValueId> results =
      graph_.add_node(op, std::move(inputs), std::move(attrs), {label_}, {name});
  fit_results(results);
  return results;
}

ir::ValueId OpBuilder::add(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attrs attrs) {
  return add_many(op, std::move(inputs), std::move(attrs)).front();
}

ir::ValueId OpBuilder::add_reduction(const std::string& op, ir::ValueId x, const ir::Attrs& attrs) {
  return add(op, {x}, attrs);
}

ir::ValueId OpBuilder::constant(Tensor tensor) {
  return graph_.add_constant(temporary_name(), std::move(tensor));
}

ir::ValueId OpBuilder::int64_constant(const std::vector<int64_t>& values) {
  return constant(Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ir::ValueId OpBuilder::scalar_like(ir::ValueId value, double number) {
  Tensor tensor(type(value).dtype, {});
  tensor.set_element(0, number);
  return constant(std::move(tensor));
}

ir::ValueId OpBuilder::extents(const ir::SymShape& values) {
  return values.is_constant() ? int64_constant(values.hints()) : add("extents", {}, {{"values", values}});
}

ir::ValueId OpBuilder::reshape(ir::ValueId value, ir::SymShape shape) {
  return add("reshape", {value}, {{"shape", std::move(shape)}});
}

}  // namespace tensormill::build
