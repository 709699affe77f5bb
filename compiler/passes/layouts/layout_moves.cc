// What only moves: of channels, a new list of lanes and no code; of pixels, the same on whole blocks.
#include <algorithm>

#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/layouts/layout_rewriter.h"

namespace tensormill::passes {

namespace {

using Difference = std::vector<Lane>::difference_type;

std::vector<Lane> range_of(const std::vector<Lane>& lanes, int64_t start, int64_t count) {
  const auto first = lanes.begin() + static_cast<Difference>(start);
  return {first, first + static_cast<Difference>(count)};
}

}  // namespace

bool LayoutRewriter::rewrite_concat(const ir::Node& node) {
  const ir::ValueType& out = type(node.outputs[0]);
  const size_t dims = out.shape.size();
  if (out.dtype != DType::kFloat32 || !is_image_rank(dims) || axis_of(node, 0, dims) != 1) return false;
  const auto readable = [&](ir::ValueId input) {
    return type(input).shape[1].is_constant() && (form(input) == nullptr || has_image(input));
  };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), readable)) return false;
  ChannelForm joined = {{out.shape[1]}, {out.shape.begin() + 2, out.shape.end()}, {}, dims - 2};
  for (const ir::ValueId input : node.inputs) {
    const ChannelForm part = image_form(input, node.origins);
    joined.lanes.insert(joined.lanes.end(), part.lanes.begin(), part.lanes.end());
  }
  set_form(node.outputs[0], std::move(joined));
  return true;
}

bool LayoutRewriter::rewrite_split(const ir::Node& node) {
  const ChannelForm from = *form(node.inputs[0]);
  if (from.channel_dims.size() != 1 || axis_of(node, 0, type(node.inputs[0]).shape.size()) != 1) return false;
  const auto is_known = [&](ir::ValueId output) { return type(output).shape[1].is_constant(); };
  if (!std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) return false;
  int64_t start = 0;
  for (const ir::ValueId output : node.outputs) {
    const int64_t count = type(output).shape[1];
    set_form(output, {{count}, from.spatial, range_of(from.lanes, start, count), from.rank});
    start += count;
  }
  return true;
}

bool LayoutRewriter::rewrite_slice(const ir::Node& node) {
  const ChannelForm from = *form(node.inputs[0]);
  const ir::SymShape& in = type(node.inputs[0]).shape;
  const ir::SymShape& out = type(node.outputs[0]).shape;
  const ir::SymShape starts = node.attrs.sym_ints_of("starts");
  if (from.channel_dims.size() != 1 || !starts[1].is_constant() || !out[1].is_constant()) return false;
  const bool stepped = node.attrs.has("steps");
  const auto step = [&](size_t d) { return stepped ? node.attrs.ints_of("steps")[d] : 1; };
  const auto is_whole = [&](size_t d) {
    return are_equal(in[d], out[d]) && (step(d) == 1 || ops::is_one(in[d]));
  };
  bool pixels = false;
  for (size_t d = 2; d < in.size(); ++d) pixels = pixels || !is_whole(d);
  if (!is_whole(0) || (pixels && !from.is_image())) return false;
  ChannelForm sliced = {{out[1]}, from.spatial, {}, from.rank};
  const int64_t first_channel = starts[1], channels = out[1];
  for (int64_t i = 0; i < channels; ++i) {
    sliced.lanes.push_back(from.lanes[static_cast<size_t>(first_channel + i * step(1))]);
  }
  if (!pixels) {
    set_form(node.outputs[0], std::move(sliced));
    return true;
  }
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(sliced.lanes, place);
  ir::SymShape first(in.size() + 1, 0), extents = patch_.value(x).type.shape;
  std::vector<int64_t> steps(in.size() + 1, 1);
  for (size_t d = 2; d < in.size(); ++d) {
    first[d] = starts[d];
    extents[d] = out[d];
    steps[d] = step(d);
  }
  const ir::Attrs attrs{{"starts", first}, {"extents", extents}, {"steps", steps}};
  set_image(node.outputs[0], patch_.add_node("slice", {x}, attrs, node.origins)[0], place);
  return true;
}

// Pads around pixels keep the zeros of pad lanes where they are zeros or pixels themselves.
bool LayoutRewriter::rewrite_pad(const ir::Node& node) {
  if (!has_image(node.inputs[0])) return false;
  const ir::SymShape pads = node.attrs.sym_ints_of("pads");
  const size_t dims = pads.size() / 2;
  const auto is_none = [&](size_t entry) { return are_equal(pads[entry], 0); };
  const bool around_pixels = is_none(0) && is_none(1) && is_none(dims) && is_none(dims + 1);
  const bool moves = ops::attr_string(node.attrs, "mode", "constant") != "constant";
  const bool zeros = (!node.attrs.has("value") || node.attrs.float_of("value") == 0) &&
                     (node.inputs.size() < 2 || node.inputs[1] == ir::kAbsent);
  if (!around_pixels || (!moves && !zeros)) return false;
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(form(node.inputs[0])->lanes, place);
  ir::SymShape around = pads;
  around.insert(around.begin() + static_cast<std::ptrdiff_t>(dims), 0);
  around.push_back(0);
  ir::Attrs attrs{{"pads", around}};
  if (moves) attrs.set("mode", node.attrs.string_of("mode"));
  set_image(node.outputs[0], patch_.add_node("pad", {x}, attrs, node.origins)[0], place);
  return true;
}

bool LayoutRewriter::phases_end_in_zeros(const ir::Node& node, int64_t channels) const {
  const ir::Node* conv = match(graph_, node.inputs[0], "conv");
  if (conv == nullptr) return false;
  const int64_t kept = type(node.outputs[0]).shape[1];
  for (size_t i = 1; i < conv->inputs.size(); ++i) {
    if (conv->inputs[i] == ir::kAbsent) continue;
    const Tensor* rows = constant(conv->inputs[i]);
    if (rows == nullptr) return false;
    const int64_t each = rows->num_elements() / rows->shape()[0];
    for (int64_t at = 0; at < rows->num_elements(); ++at) {
      if (at / each % channels >= kept && rows->element_as_double(at) != 0) return false;
    }
  }
  return true;
}

bool LayoutRewriter::rewrite_depth_to_space(const ir::Node& node) {
  const ChannelForm& from = *form(node.inputs[0]);
  const ir::SymShape& out = type(node.outputs[0]).shape;
  const int64_t channels =
      static_cast<int64_t>(from.lanes.size()) / num_elements(node.attrs.ints_of("blocks"));
  // Phases in whole blocks of lanes stay in them.
  if (!from.is_image() || from.rank != 2 || channels % block() != 0 ||
      node.attrs.ints_of("blocks").size() != 2)
    return false;
  if (out[1] != channels && !phases_end_in_zeros(node, channels)) return false;
  ir::Attrs attrs{{"blocks", node.attrs.ints_of("blocks")}};
  if (node.attrs.has("crops")) attrs.set("crops", node.attrs.ints_of("crops"));
  const ir::ValueId made = patch_.add_node(node.op, {arranger_.arrange(from.lanes)}, attrs, node.origins)[0];
  set_image(node.outputs[0], made, in_order(out[1]));
  return true;
}

// Rows or columns of an image, as resizing takes them: blocks stay whole.
bool LayoutRewriter::rewrite_gather_pixels(const ir::Node& node) {
  if (!has_image(node.inputs[0]) || form(node.inputs[1]) != nullptr || type(node.inputs[1]).shape.size() != 1)
    return false;
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(form(node.inputs[0])->lanes, place);
  const size_t dims = type(node.inputs[0]).shape.size();
  const ir::Attrs attrs{{"axis", static_cast<int64_t>(axis_of(node, 0, dims))}};
  set_image(node.outputs[0], patch_.add_node("gather", {x, node.inputs[1]}, attrs, node.origins)[0], place);
  return true;
}

// Pixels alone: each channel stays where it is.
bool LayoutRewriter::rewrite_tile(const ir::Node& node) {
  if (!has_image(node.inputs[0])) return false;
  const ir::SymShape given = node.attrs.sym_ints_of("repeats");
  if (!ops::is_one(given[1])) return false;
  std::vector<int64_t> place;
  const ir::ValueId x = arranger_.arrange_any(form(node.inputs[0])->lanes, place);
  ir::SymShape repeats = given;
  repeats.emplace_back(1);
  ir::Attrs attrs = node.attrs;
  attrs.set("repeats", std::move(repeats));
  set_image(node.outputs[0], patch_.add_node("tile", {x}, attrs, node.origins)[0], place);
  return true;
}

bool LayoutRewriter::rewrite_gather(const ir::Node& node) {
  const ChannelForm* from = form(node.inputs[0]);
  const Tensor* indices = constant(node.inputs[1]);
  if (from != nullptr && from->is_image() && axis_of(node, 0, from->rank + 2) >= 2)
    return rewrite_gather_pixels(node);
  if (from == nullptr || from->channel_dims.size() != 1 || indices == nullptr ||
      indices->shape().size() != 1 || axis_of(node, 0, type(node.inputs[0]).shape.size()) != 1) {
    return false;
  }
  const int64_t count = static_cast<int64_t>(from->lanes.size());
  ChannelForm gathered = {{indices->num_elements()}, from->spatial, {}, from->rank};
  for (int64_t i = 0; i < indices->num_elements(); ++i) {
    const int64_t index = indices->element_as_int(i);
    if (index < -count || index >= count) return false;  // the kernel reports it
    gathered.lanes.push_back(from->lanes[static_cast<size_t>(index < 0 ? index + count : index)]);
  }
  set_form(node.outputs[0], std::move(gathered));
  return true;
}

bool LayoutRewriter::rewrite_reshape(const ir::Node& node) {
  ChannelForm made = *form(node.inputs[0]);
  const ir::SymShape& in = type(node.inputs[0]).shape;
  const ir::SymShape& out = type(node.outputs[0]).shape;
  if (out.size() < 2 || !are_equal(out[0], in[0])) return false;
  size_t trailing = made.spatial.size();
  if (std::all_of(made.spatial.begin(), made.spatial.end(), ops::is_one)) {
    trailing = 0;  // any ones at the end may be the pixel's
    while (trailing < made.rank && trailing + 2 < out.size() && ops::is_one(out[out.size() - 1 - trailing]))
      ++trailing;
  } else if (out.size() < trailing + 2 ||
             !std::equal(made.spatial.rbegin(), made.spatial.rend(), out.rbegin(),
                         [](const ir::SymInt& a, const ir::SymInt& b) { return are_equal(a, b); })) {
    return false;
  }
  const auto end = out.end() - static_cast<std::ptrdiff_t>(trailing);
  const ir::SymShape channel_dims(out.begin() + 1, end);
  if (!channel_dims.is_constant()) return false;
  made.channel_dims = channel_dims;
  made.spatial.assign(end, out.end());
  if (num_elements(made.channel_dims) != static_cast<int64_t>(made.lanes.size())) return false;
  set_form(node.outputs[0], std::move(made));
  return true;
}

bool LayoutRewriter::rewrite_transpose(const ir::Node& node) {
  const ChannelForm& from = *form(node.inputs[0]);
  if (!node.attrs.has("perm")) return false;
  const ir::Ints perm = node.attrs.ints_of("perm");
  const size_t rank = from.channel_dims.size();
  ChannelForm made = {{}, from.spatial, {}, from.rank};
  Shape strides;
  const Shape own = row_major_strides(from.channel_dims);
  for (size_t d = 0; d < perm.size(); ++d) {
    const size_t source = static_cast<size_t>(perm[d]);
    const bool channel = d >= 1 && d <= rank;
    if (channel ? source < 1 || source > rank : source != d) return false;
    if (!channel) continue;
    made.channel_dims.push_back(from.channel_dims[source - 1]);
    strides.push_back(own[source - 1]);
  }
  const Shape steps = row_major_strides(made.channel_dims);
  for (size_t c = 0; c < from.lanes.size(); ++c) {
    int64_t rest = static_cast<int64_t>(c), source = 0;
    for (size_t d = 0; d < rank; ++d) {
      source += rest / steps[d] * strides[d];
      rest %= steps[d];
    }
    made.lanes.push_back(from.lanes[static_cast<size_t>(source)]);
  }
  set_form(node.outputs[0], std::move(made));
  return true;
}

}  // namespace tensormill::passes
