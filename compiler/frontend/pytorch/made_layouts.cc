// Where torch has the elements of what its operators make new, of graphs whose file does not say it: in rows,
// in a memory format, or as the operands lie.
#include <algorithm>
#include <array>

#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

using te::Dim;
using te::DimFacts;

/// What makes rows, whatever the operands are, where it makes something new.
constexpr std::array<Converter, 13> kNew = {
    convert_filled,     convert_scalar_tensor, convert_arange,       convert_linspace, convert_eye,
    convert_one_hot,    convert_tri_indices,   convert_reshape,      convert_flatten,  convert_unflatten,
    convert_layer_norm, convert_softmax,       convert_instance_norm};
/// What makes rows of operands that lie in rows. Others may give the transposed view of what they computed.
constexpr std::array<Converter, 3> kOfRows = {convert_masked_fill, convert_stack, convert_linear};
/// What torch computes element by element: results lie as the operands do.
constexpr std::array<Converter, 23> kElementwise = {
    convert_real_unary, convert_any_unary,  convert_rounding,      convert_square,   convert_logical_not,
    convert_gelu,       convert_leaky_relu, convert_elu,           convert_hardtanh, convert_softplus,
    convert_clamp,      convert_add,        convert_mul,           convert_div,      convert_remainder,
    convert_pow,        convert_comparison, convert_logical,       convert_bitwise,  convert_extremum,
    convert_where,      convert_relu6,      convert_composed_unary};
/// What makes maps in the format that torch takes for its first operand's.
constexpr std::array<Converter, 6> kOfMaps = {convert_group_norm, convert_max_pool,      convert_avg_pool,
                                              convert_upsample,   convert_adaptive_pool, convert_pad};

template <size_t kCount>
bool is_in(Converter convert, const std::array<Converter, kCount>& list) {
  return std::find(list.begin(), list.end(), convert) != list.end();
}

bool is_proven(std::optional<bool> answer) { return answer.value_or(false); }
bool is_refuted(std::optional<bool> answer) { return !answer.value_or(true); }

/// The other format of tensors of that rank than rows; nothing where there is none.
std::optional<MemoryFormat> channels_last(size_t rank) {
  if (rank == 4) return MemoryFormat::kChannelsLast;
  return rank == 5 ? std::optional(MemoryFormat::kChannelsLast3d) : std::nullopt;
}

std::optional<bool> has_channels_last(const Layout& layout, const DimFacts& facts) {
  const std::optional<MemoryFormat> format = channels_last(layout.sizes.size());
  return format ? lies_in_rows(turned(layout, *axes_in(*format, layout.sizes.size())), facts) : false;
}

Layout layout_in(MemoryFormat format, const std::vector<Dim>& sizes) {
  return dense_layout(sizes, *axes_in(format, sizes.size()));
}

std::optional<Layout> layout_in(std::optional<MemoryFormat> format, const std::vector<Dim>& sizes) {
  return format ? std::optional(layout_in(*format, sizes)) : std::nullopt;
}

/// The axes that are not of one element among those of a tensor of `rank` axes, of which the operand has the
/// last ones.
std::vector<int64_t> long_axes(const Layout& operand, std::vector<int64_t> order, size_t rank) {
  const auto first = static_cast<int64_t>(rank - operand.sizes.size());
  std::erase_if(order, [&](int64_t axis) {
    return axis < first || operand.sizes[static_cast<size_t>(axis - first)] == Dim(1);
  });
  return order;
}

/// Whether an operand of fewer elements than the result leaves it to the operands behind it how the axes are
/// ordered, which is so as `order`: its own axes, where there are several, are in that order.
bool agrees(const Layout& operand, const std::vector<Dim>& sizes, const std::vector<int64_t>& order,
            const DimFacts& facts) {
  if (operand.sizes.size() > sizes.size()) return false;
  const size_t first = sizes.size() - operand.sizes.size();
  for (size_t i = 0; i < operand.sizes.size(); ++i)
    if (operand.sizes[i] != Dim(1) && operand.sizes[i] != sizes[first + i]) return false;
  const std::vector<int64_t> wanted = long_axes(operand, order, sizes.size());
  if (wanted.size() < 2) return true;
  std::optional<std::vector<int64_t>> own = dense_axes(operand, facts);
  if (!own) return false;
  for (int64_t& axis : *own) axis += static_cast<int64_t>(first);
  return long_axes(operand, *own, sizes.size()) == wanted;
}

/// Dims of the maps that an operator takes, by its name: 2 of "max_pool2d"; 0 where it takes all.
size_t map_dims(const std::string& op) {
  for (size_t i = 1; i < op.size(); ++i)
    if (op[i] == 'd' && op[i - 1] >= '1' && op[i - 1] <= '3') return static_cast<size_t>(op[i - 1] - '0');
  return 0;
}

/// Whether an axis is longer than the operand's, whatever the symbols are.
bool is_more(const std::vector<Dim>& sizes, const std::vector<Dim>& of, const DimFacts& facts) {
  for (size_t i = 0; i < std::min(sizes.size(), of.size()); ++i)
    if (facts.prove_le(of[i] + 1, sizes[i]) == te::Truth::kProven) return true;
  return false;
}

}  // namespace

std::optional<Layout> NodeContext::layout_made(V value) {
  const std::vector<Dim> sizes = dims_of(shape(value));
  if (is_in(row_.convert, kNew) || op() == "log_sigmoid") return row_major_layout(sizes);
  if (is_in(row_.convert, kElementwise)) return layout_of_elements(sizes);
  if (is_in(row_.convert, kOfRows)) return layout_of_rows(sizes);
  if (is_in(row_.convert, kOfMaps)) return layout_of_maps(sizes);
  if (row_.convert == convert_cat) return layout_of_joined(sizes);
  if (row_.convert == convert_batch_norm) return layout_of_batch_norm(sizes);
  if (row_.convert == convert_conv || row_.convert == convert_conv_transpose) return layout_of_conv(sizes);
  return std::nullopt;
}

std::optional<std::vector<Layout>> NodeContext::operand_layouts() {
  std::vector<Layout> layouts;
  for (const NamedArgument& input : node_.inputs) {
    for (const std::string& name : input.argument.names) {
      if (name.empty()) continue;
      std::optional<Layout> own = layout_of(view(name));
      if (!own) return std::nullopt;
      layouts.push_back(*std::move(own));
    }
  }
  return layouts;
}

std::optional<Layout> NodeContext::layout_of_rows(const std::vector<Dim>& sizes) {
  const std::optional<std::vector<Layout>> operands = operand_layouts();
  if (!operands) return std::nullopt;
  Layout rows = row_major_layout(sizes);
  for (const Layout& own : *operands) {
    if (!is_proven(lies_in_rows(own, facts()))) return std::nullopt;
    rows.is_exact = rows.is_exact && own.is_exact && (own.sizes.empty() || own.sizes == sizes);
  }
  return rows;
}

// at::TensorIterator: operands of the same sizes that all lie in rows, or all with the channels last, have
// such a result. Otherwise the axes are ordered as those of the first operand are that has elements apart
// along both of two axes.
std::optional<Layout> NodeContext::layout_of_elements(const std::vector<Dim>& sizes) {
  std::optional<std::vector<Layout>> operands = operand_layouts();
  if (!operands) return std::nullopt;
  const bool is_plain =
      operands->size() == node_.inputs.size() &&
      std::all_of(operands->begin(), operands->end(), [&](const Layout& own) { return own.sizes == sizes; });
  std::erase_if(*operands, [](const Layout& own) { return own.sizes.empty(); });  // which have no order
  const auto all = [&](const auto& is_so) { return std::all_of(operands->begin(), operands->end(), is_so); };
  const bool are_exact = all([](const Layout& own) { return own.is_exact; });
  if (all([&](const Layout& own) { return is_proven(lies_in_rows(own, facts())); })) {
    Layout rows = row_major_layout(sizes);
    rows.is_exact = is_plain || are_exact;
    return rows;
  }
  if (op() == "rsub") std::reverse(operands->begin(), operands->end());
  const auto whole =
      std::find_if(operands->begin(), operands->end(), [&](const Layout& own) { return own.sizes == sizes; });
  if (whole == operands->end()) return std::nullopt;
  const std::optional<std::vector<int64_t>> order = dense_axes(*whole, facts());
  const auto is_before = [&](const Layout& own) { return agrees(own, sizes, *order, facts()); };
  if (!order || !std::all_of(operands->begin(), whole, is_before)) return std::nullopt;
  const auto has_last = [&](const Layout& own) {
    return sizes.size() == 4 && is_proven(has_channels_last(own, facts()));
  };
  const bool is_apart = is_refuted(lies_in_rows(*whole, facts()));
  if (is_plain && is_apart && all(has_last)) return layout_in(MemoryFormat::kChannelsLast, sizes);
  Layout made = *whole;
  made.is_exact = is_apart && operands->size() == 1 && are_exact;
  return made;
}

// at::native::compute_output_memory_format
std::optional<Layout> NodeContext::layout_of_joined(const std::vector<Dim>& sizes) {
  if (!channels_last(sizes.size())) return row_major_layout(sizes);
  bool is_sure = true;
  std::optional<MemoryFormat> common;
  for (const std::string& name : given("tensors")->names) {
    const std::optional<Layout> own = layout_of(view(name));
    const std::optional<MemoryFormat> format = own ? suggested_format(*own, facts()) : std::nullopt;
    if (format == MemoryFormat::kRows) return row_major_layout(sizes);
    is_sure = is_sure && format;
    common = format;
  }
  return is_sure ? layout_in(common, sizes) : std::nullopt;
}

std::optional<Layout> NodeContext::layout_of_maps(const std::vector<Dim>& sizes) {
  const std::string& name = op();
  const size_t rank = sizes.size(), dims = map_dims(name);
  const bool is_pad = row_.convert == convert_pad;
  if (is_pad && takes(*this, "mode") && text("mode") == "circular") return row_major_layout(sizes);
  const bool is_batch = dims == 0 || rank == dims + 2;
  const bool is_average = row_.convert == convert_avg_pool,
             is_adaptive = row_.convert == convert_adaptive_pool;
  // Those of volumes make rows.
  if (is_batch && rank == 5 && (is_average || is_adaptive)) {
    Layout rows = row_major_layout(sizes);
    rows.is_exact = is_average;  // the mean of whole maps has the operand's format
    return rows;
  }
  if (rank == 3 && (name.ends_with("group_norm") || row_.convert == convert_upsample))
    return row_major_layout(sizes);
  const std::optional<Layout> own = layout_of(row_.arguments.front().name.c_str());
  // Where nothing is added, torch copies a part of the operand.
  if (!own || (is_pad && !is_more(sizes, own->sizes, facts()))) return std::nullopt;
  if (is_batch && channels_last(rank)) return layout_in(suggested_format(*own, facts()), sizes);
  return own->is_exact && is_proven(lies_in_rows(*own, facts())) ? std::optional(row_major_layout(sizes))
                                                                 : std::nullopt;
}

// at::native::batch_norm_cpu: what lies in rows and with the channels last counts as rows.
std::optional<Layout> NodeContext::layout_of_batch_norm(const std::vector<Dim>& sizes) {
  const std::optional<MemoryFormat> other = channels_last(sizes.size());
  if (!other) return row_major_layout(sizes);
  const std::optional<std::vector<Layout>> operands = operand_layouts();
  if (!operands) return std::nullopt;
  const auto lies_so = [&](const Layout& own) { return is_proven(lies_in_rows(own, facts())); };
  if (!std::all_of(operands->begin() + 1, operands->end(), lies_so)) return std::nullopt;
  const Layout& own = operands->front();
  const std::optional<bool> is_of_rows = lies_in_rows(own, facts());
  if (is_proven(is_of_rows)) return row_major_layout(sizes);
  if (!is_proven(has_channels_last(own, facts()))) return std::nullopt;
  Layout last = layout_in(*other, sizes);
  last.is_exact = is_refuted(is_of_rows);
  return last;
}

// at::native::determine_backend_memory_format
std::optional<Layout> NodeContext::layout_of_conv(const std::vector<Dim>& sizes) {
  const std::optional<Layout> x = layout_of("input"), weight = layout_of("weight");
  const auto format_of = [&](const std::optional<Layout>& layout) {
    return layout ? suggested_format(*layout, facts()) : std::nullopt;
  };
  const size_t rank = shape(tensor("weight")).size();
  const bool has_batch = sizes.size() == rank;
  const auto is_of_rows = [&](const std::optional<Layout>& layout) {
    return layout && layout->is_exact && is_proven(lies_in_rows(*layout, facts()));
  };
  // The signal is copied into rows before it counts as a map of one row.
  if (rank == 3) return is_of_rows(weight) ? std::optional(row_major_layout(sizes)) : std::nullopt;
  const std::optional<MemoryFormat> own = has_batch ? format_of(x) : std::nullopt, other = format_of(weight);
  // Which of its kernels torch takes for volumes follows from how large they are.
  const MemoryFormat last = MemoryFormat::kChannelsLast;
  if (rank == 4 && has_batch && (own == last || other == last)) return layout_in(last, sizes);
  const bool is_rows = has_batch ? own == MemoryFormat::kRows : is_of_rows(x);
  return is_rows && other == MemoryFormat::kRows ? std::optional(row_major_layout(sizes)) : std::nullopt;
}

}  // namespace tensormill::frontend::pytorch
