#include "compiler/frontend/caffe2/node_context.h"

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/missing.h"
#include "compiler/build/numbers/quantize.h"
#include "compiler/build/rows.h"
#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::caffe2 {

namespace {

constexpr build::UnreadRow kUnread[] = {
#define CAFFE2_UNREAD(op, argument, why) {op, argument},
#include "compiler/frontend/caffe2/unread_options.def"
#undef CAFFE2_UNREAD
};

constexpr Int8Row kInt8[] = {
#define CAFFE2_INT8(type, op, has_relu) {type, op, has_relu},
#include "compiler/frontend/caffe2/int8.def"
#undef CAFFE2_INT8
};

std::string base_name(const Operator& node, const std::string& label) {
  return node.outputs.empty() ? label : std::string(node.outputs.front());
}

}  // namespace

const Int8Row* find_int8(std::string_view type) { return build::find_in(kInt8, &Int8Row::type, type); }

NodeContext::NodeContext(ImportState& state, const Operator& node, const std::string& label)
    : OpBuilder(state.graph, label, base_name(node, label), state.reserved),
      state_(state),
      node_(node),
      int8_(find_int8(node.type)),
      op_(int8_ == nullptr ? node.type : int8_->op) {}

Item& NodeContext::given(size_t index) {
  if (!has_operand(index)) invalid("operand " + std::to_string(index) + " is missing");
  read_operands_.insert(index);
  const auto found = state_.items.find(node_.inputs[index]);
  if (found == state_.items.end())
    invalid("value \"" + std::string(node_.inputs[index].substr(0, 200)) +
            "\" is read before anything makes it");
  return found->second;
}

V NodeContext::value_of(Item& item) {
  if (item.value == ir::kAbsent) item.value = constant(*item.stored);
  return item.value;
}

V NodeContext::integers(size_t index) { return value_of(given(index)); }

V NodeContext::operand(size_t index) {
  const V value = integers(index);
  if (int8_ == nullptr) return value;
  const Scale scale = scale_of(index);
  Compose c(*this);
  const V step = c.doubles(DType::kFloat32, {scale.scale}, {});
  return build::dequantize(*this, value, step, c.number(value, static_cast<double>(scale.zero)));
}

ir::CheckedList<V> NodeContext::operands() {
  if (num_operands() == 0) invalid("operand 0 is missing");
  std::vector<V> values;
  for (size_t i = 0; i < num_operands(); ++i) values.push_back(operand(i));
  return values;
}

Scale NodeContext::scale_of(size_t index) {
  const Item& item = given(index);
  if (!item.scale)
    invalid("operand " + std::to_string(index) + " is no tensor of integers that stand for real numbers");
  return *item.scale;
}

ir::SymShape NodeContext::numbers(size_t index, std::optional<int64_t> low) {
  const std::string shown = "operand " + std::to_string(index);
  const Item& item = given(index);
  const DType own = item.stored ? item.stored->dtype() : dtype(item.value);
  if (is_float(own) || own == kString) invalid(shown + " is no integers");
  return build::integers_of(*this, item.stored, item.value, shown, low, std::nullopt);
}

V NodeContext::as_rows(V x, int64_t axis) {
  const ir::SymShape from = shape(x);
  return Compose(*this).reshape(x, {num_elements(ir::SymShape(from.begin(), from.begin() + axis)),
                                    num_elements(ir::SymShape(from.begin() + axis, from.end()))});
}

const Argument* NodeContext::argument(const char* name) {
  read_.insert(name);
  return node_.find(name);
}

bool NodeContext::has(const char* name) { return argument(name) != nullptr; }

int64_t NodeContext::integer(const char* name, std::optional<int64_t> otherwise) {
  const Argument* found = argument(name);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr || !found->integer) invalid("argument " + std::string(name) + " is no integer");
  return *found->integer;
}

double NodeContext::real(const char* name, std::optional<double> otherwise) {
  const Argument* found = argument(name);
  if (found == nullptr && otherwise) return *otherwise;
  if (found != nullptr && found->real) return *found->real;
  if (found == nullptr || !found->integer) invalid("argument " + std::string(name) + " is no number");
  return static_cast<double>(*found->integer);
}

std::string NodeContext::text(const char* name, const std::string& otherwise) {
  const Argument* found = argument(name);
  if (found == nullptr) return otherwise;
  if (!found->text || !is_utf8(*found->text)) invalid("argument " + std::string(name) + " is no text");
  return std::string(found->text->substr(0, 200));
}

ir::Ints NodeContext::ints(const char* name) {
  const Argument* found = argument(name);
  return found == nullptr ? std::vector<int64_t>() : found->integers;
}

ir::CheckedList<double> NodeContext::reals(const char* name) {
  const Argument* found = argument(name);
  if (found == nullptr) return {};
  if (found->reals.empty()) return {found->integers.begin(), found->integers.end()};
  return {found->reals.begin(), found->reals.end()};
}

int64_t NodeContext::axis(const char* name, int64_t rank, std::optional<int64_t> otherwise) {
  return normalize_axis(integer(name, otherwise), rank);
}

bool NodeContext::is_channels_last() {
  const std::string order = text("order", int8_ == nullptr ? "NCHW" : "NHWC");
  if (order != "NCHW" && order != "NHWC") invalid("argument order is \"" + order + "\"");
  return order == "NHWC";
}

void NodeContext::set_item(size_t index, Item item) {
  if (!has_output(index)) invalid("output " + std::to_string(index) + " is missing");
  const V value = item.value;
  state_.items.insert_or_assign(node_.outputs[index], std::move(item));
  if (is_own(value) && !graph().value(value).constant)
    rename_if_free(value, std::string(node_.outputs[index]));
}

Scale NodeContext::own_scale() {
  const Scale scale{real("Y_scale"), integer("Y_zero_point")};
  if (!(scale.scale > 0) || scale.zero < 0 || scale.zero > 255)
    invalid("Y_scale is " + std::to_string(scale.scale) + ", Y_zero_point " + std::to_string(scale.zero));
  return scale;
}

void NodeContext::set_rounded(V value) {
  const Scale scale = own_scale();
  Compose c(*this);
  const V zero = c.doubles(DType::kUInt8, {static_cast<double>(scale.zero)}, {});
  const V rounded = build::quantize(*this, value, c.number(value, scale.scale), zero, DType::kUInt8);
  set_item(0, Item{std::nullopt, rounded, scale});
}

void NodeContext::set_output(size_t index, V value) {
  if (int8_ == nullptr || index > 0) return set_item(index, Item{std::nullopt, value, std::nullopt});
  set_rounded(int8_->has_relu ? Compose(*this).unary("relu", value) : value);
}

void NodeContext::set_outputs(const std::vector<V>& values) {
  if (values.size() != num_outputs())
    invalid("it has " + std::to_string(num_outputs()) + " outputs, expected " +
            std::to_string(values.size()));
  for (size_t i = 0; i < values.size(); ++i) set_output(i, values[i]);
}

void NodeContext::set_stored(Tensor tensor, std::optional<Scale> scale) {
  set_item(0, Item{std::move(tensor), ir::kAbsent, scale});
}

void NodeContext::set_alias() { set_item(0, given(0)); }

void NodeContext::check_read() const {
  for (size_t i = 0; i < num_operands(); ++i)
    if (read_operands_.count(i) == 0)
      unsupported("operand " + std::to_string(i), "the operand is not implemented");
  for (const Argument& each : node_.arguments)
    if (read_.count(each.name) == 0 && !build::may_stay_unread(kUnread, op(), each.name))
      unsupported(std::string(each.name.substr(0, 200)), "the argument is not implemented");
}

}  // namespace tensormill::frontend::caffe2
