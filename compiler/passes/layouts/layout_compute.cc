// Operators other than convolutions on blocked tensors: element by element, pooling, reductions over pixels.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/ops/te_util.h"
#include "compiler/passes/layouts/layout_rewriter.h"
#include "compiler/passes/layouts/pack_blocked.h"

namespace tensormill::passes {

namespace {

/// shape as [n,c,spatial...] of `dims` dimensions under broadcasting.
ir::SymShape image_shape(const ir::SymShape& shape, size_t dims) {
  ir::SymShape image(dims - std::min(shape.size(), dims), 1);
  image.insert(image.end(), shape.begin(), shape.end());
  return image;
}

bool is_one_element(const ir::SymShape& shape) {
  return std::all_of(shape.begin(), shape.end(), ops::is_one);
}

/// One element of an operand.
struct Element {
  DType dtype;
  double value;
};

/// The operator's result of type `to` on one element a operand; absent operands are null.
double evaluate_one(const ir::OpDef& def, const ir::Attrs& attrs, DType to,
                    const std::vector<std::optional<Element>>& operands) {
  std::vector<Tensor> tensors;
  for (const std::optional<Element>& operand : operands) {
    tensors.emplace_back(operand ? operand->dtype : to, Shape{1});
    tensors.back().set_element(0, operand ? operand->value : 0);
  }
  Tensor result(to, {1});
  ir::ReferenceContext context{attrs, {}, {&result}};
  for (size_t i = 0; i < operands.size(); ++i) {
    context.inputs.push_back(operands[i] ? &tensors[i] : nullptr);
  }
  def.reference(context);
  return result.element_as_double(0);
}

/// The types of blocked tensors: float32, and what quantized networks have between their products.
bool flows(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 ||
         dtype == DType::kUInt8 || dtype == DType::kInt8;
}

std::vector<int64_t> with_last(std::vector<int64_t> values, int64_t last) {
  values.push_back(last);
  return values;
}

}  // namespace

ir::ValueId LayoutRewriter::operand(const ir::Node& node, ir::ValueId input, size_t dims,
                                    const std::vector<int64_t>& place, double pad) {
  const int64_t channels = static_cast<int64_t>(place.size());
  const Tensor* fixed = constant(input);
  const ir::SymShape image = image_shape(type(input).shape, dims);
  if (is_one_element(image)) {
    make_plain(input);
    return type(input).shape.size() > 1 ? reshaped(input, {1}, node.origins) : input;
  }
  if (!are_equal(image[1], channels)) {  // one channel for all
    make_plain(input);
    ir::SymShape shape = image;
    shape.push_back(1);
    return reshaped(input, shape, node.origins);
  }
  if (fixed != nullptr) {
    const Tensor packed =
        pack_channels(fixed->reshaped(image), place, arranger_.blocks(channels), block(), pad);
    return patch_.add_constant(graph_.value(input).name + ".blocked", packed);
  }
  std::vector<Lane> lanes;
  if (type(input).shape.size() == dims && (has_image(input) || form(input) == nullptr)) {
    lanes = image_form(input, node.origins).lanes;
  } else {
    make_plain(input);
    const ir::ValueId plain = reshaped(input, image, node.origins);
    lanes = arranger_.whole(patch_.add_node("to_blocked", {plain}, {{"block", block()}}, node.origins)[0],
                            channels);
  }
  std::vector<Lane> ordered(lanes.size());
  for (size_t c = 0; c < lanes.size(); ++c) ordered[static_cast<size_t>(place[c])] = lanes[c];
  return arranger_.arrange(ordered);
}

bool LayoutRewriter::has_known_channels(ir::ValueId input, const ir::SymShape& out) const {
  const ir::SymInt channels = image_shape(type(input).shape, out.size())[1];
  return are_equal(channels, out[1]) || ops::is_one(channels);
}

std::optional<double> LayoutRewriter::zero_keeping_pad(const ir::Node& node, int64_t channels) const {
  if (channels % block() == 0) return 0.0;
  // 0 serves sums and products, 1 quotients.
  for (const double candidate : {0.0, 1.0}) {
    std::vector<std::optional<Element>> values;
    for (const ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent) {
        values.emplace_back();
        continue;
      }
      const Tensor* fixed = constant(input);
      const bool scalar = is_one_element(type(input).shape);
      const bool per_channel =
          !scalar &&
          are_equal(image_shape(type(input).shape, type(node.outputs[0]).shape.size())[1], channels);
      if (!per_channel && !(scalar && fixed != nullptr)) return std::nullopt;
      values.push_back(Element{type(input).dtype, scalar             ? fixed->element_as_double(0)
                                                  : fixed != nullptr ? candidate
                                                                     : 0.0});
    }
    const DType to = type(node.outputs[0]).dtype;
    if (evaluate_one(graph_.ops().get(node.op), node.attrs, to, values) == 0.0) return candidate;
  }
  return std::nullopt;
}

ir::ValueId LayoutRewriter::masked(ir::ValueId value, int64_t channels,
                                   const std::vector<std::string>& origins) {
  const size_t dims = patch_.value(value).type.shape.size();
  const auto [mask, is_new] = masks_.emplace(std::pair{channels, dims}, ir::kAbsent);
  if (is_new) {
    const int64_t blocks = arranger_.blocks(channels);
    Shape shape(dims, 1);
    shape[1] = blocks;
    shape.back() = block();
    Tensor lanes = Tensor::zeros(DType::kBool, shape);
    for (int64_t lane = 0; lane < channels; ++lane) lanes.set_element_int(lane, 1);
    mask->second = patch_.add_constant("lanes_of_" + std::to_string(channels) + "_channels", lanes);
  }
  const ir::ValueId zero = patch_.add_constant("zero", Tensor::zeros(patch_.value(value).type.dtype, {}));
  return patch_.add_node("where", {mask->second, value, zero}, {}, origins)[0];
}

bool LayoutRewriter::rewrite_elementwise(const ir::Node& node) {
  if (node.op == "batch_norm" || node.outputs.size() != 1) return false;
  const ir::ValueType& out = type(node.outputs[0]);
  if (!flows(out.dtype) || !is_image_rank(out.shape.size())) return false;
  // Operands of one element are read as such: a result of one would be made of no image.
  if (is_one_element(out.shape) || !out.shape[1].is_constant()) return false;
  ir::ValueId leading = ir::kAbsent;
  for (const ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent) continue;
    if (!flows(type(input).dtype)) return false;
    const ir::SymShape& shape = type(input).shape;
    if (!has_known_channels(input, out.shape)) return false;
    if (leading == ir::kAbsent && has_image(input) && shape.size() == out.shape.size() &&
        are_equal(shape[0], out.shape[0]) && are_equal(shape[1], out.shape[1]))
      leading = input;
  }
  if (leading == ir::kAbsent) return false;
  std::vector<int64_t> place;
  static_cast<void>(arranger_.arrange_any(form(leading)->lanes, place));
  const std::optional<double> pad = zero_keeping_pad(node, out.shape[1]);
  std::vector<ir::ValueId> inputs;
  for (const ir::ValueId input : node.inputs) {
    inputs.push_back(input == ir::kAbsent ? input
                                          : operand(node, input, out.shape.size(), place, pad.value_or(0)));
  }
  ir::ValueId made = patch_.add_node(node.op, std::move(inputs), node.attrs, node.origins)[0];
  if (!pad) made = masked(made, out.shape[1], node.origins);
  set_image(node.outputs[0], made, place);
  return true;
}

bool LayoutRewriter::rewrite_pool(const ir::Node& node) {
  if (!has_image(node.inputs[0]) || !flows(type(node.inputs[0]).dtype)) return false;
  const auto ints = [&](const std::string& name, size_t count, int64_t fallback) {
    return node.attrs.has(name) ? node.attrs.ints_of(name) : std::vector<int64_t>(count, fallback);
  };
  const ir::Ints kernel = node.attrs.ints_of("kernel");
  const size_t rank = kernel.size();
  std::vector<int64_t> pads = ints("pads", 2 * rank, 0);
  // A window in the padding alone would give pad lanes something else than zero.
  for (size_t d = 0; d < pads.size(); ++d) {
    if (pads[d] >= kernel[d % rank]) return false;
  }
  pads.insert(pads.begin() + static_cast<std::vector<int64_t>::difference_type>(rank), 0);
  ir::Attrs attrs = node.attrs;
  attrs.set("kernel", with_last(kernel, 1));
  attrs.set("strides", with_last(ints("strides", rank, 1), 1));
  attrs.set("dilations", with_last(ints("dilations", rank, 1), 1));
  attrs.set("pads", with_last(pads, 0));
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(form(node.inputs[0])->lanes, place);
  set_image(node.outputs[0], patch_.add_node(node.op, {x}, attrs, node.origins)[0], place);
  return true;
}

bool LayoutRewriter::rewrite_reduction(const ir::Node& node) {
  if (!has_image(node.inputs[0]) || !node.attrs.has("axes")) return false;
  ir::Ints axes = node.attrs.ints_of("axes");
  const size_t dims = type(node.inputs[0]).shape.size();
  for (int64_t& axis : axes) axis = axis < 0 ? axis + static_cast<int64_t>(dims) : axis;
  std::sort(axes.begin(), axes.end());
  if (axes.empty() || axes.front() < 2) return false;
  const ir::SymShape& out = type(node.outputs[0]).shape;
  if (out.size() != dims && axes.size() != dims - 2) return false;
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(form(node.inputs[0])->lanes, place);
  const ir::Attrs attrs{{"axes", axes}, {"keepdims", int64_t{1}}};
  set_image(node.outputs[0], patch_.add_node(node.op, {x}, attrs, node.origins)[0], place);
  return true;
}

}  // namespace tensormill::passes
