// What is known of converters: where elements lie of tensors of which the file does not say it, as far as
// torch's operators make rows of rows, and views of them are followed; and which take operands that are as
// long as a run decides.
#include <algorithm>
#include <array>

#include "compiler/frontend/pytorch/node_context.h"

namespace tensormill::frontend::pytorch {

namespace {

/// What makes rows, whatever the operands are, where it makes something new.
constexpr std::array<Converter, 11> kNew = {convert_filled,      convert_scalar_tensor, convert_arange,
                                            convert_linspace,    convert_eye,           convert_one_hot,
                                            convert_tri_indices, convert_reshape,       convert_flatten,
                                            convert_unflatten,   convert_contiguous};
/// What makes rows of operands that lie in rows. Others may give the transposed view of what they computed.
constexpr std::array<Converter, 32> kOfRows = {
    convert_real_unary, convert_any_unary,   convert_composed_unary,
    convert_rounding,   convert_square,      convert_logical_not,
    convert_gelu,       convert_leaky_relu,  convert_elu,
    convert_hardtanh,   convert_softplus,    convert_clamp,
    convert_add,        convert_mul,         convert_div,
    convert_remainder,  convert_pow,         convert_comparison,
    convert_logical,    convert_bitwise,     convert_extremum,
    convert_where,      convert_masked_fill, convert_clone,
    convert_cat,        convert_stack,       convert_conv,
    convert_batch_norm, convert_layer_norm,  convert_linear,
    convert_softmax,    convert_max_pool};

template <size_t kCount>
bool is_in(Converter convert, const std::array<Converter, kCount>& list) {
  return std::find(list.begin(), list.end(), convert) != list.end();
}

}  // namespace

// Of 0 or more, as extents may be.
const te::DimFacts& NodeContext::facts() const {
  static const te::DimFacts none;
  const ir::SymbolTable* symbols = state_.import.graph.symbols().get();
  return symbols != nullptr ? symbols->facts_with_zeros() : none;
}

std::optional<Layout> NodeContext::layout_of(const View& view) const {
  const Storage& storage = *view.storage;
  const bool is_known = storage.stored != nullptr ? lies_in_rows(*storage.stored) : storage.is_row_major;
  if (!is_known || storage.value == ir::kAbsent) return std::nullopt;
  std::optional<Layout> layout = row_major_layout(dims_of(type(storage.value).shape));
  for (const auto& step : view.steps) {
    if (!layout || !step->layout) return std::nullopt;
    layout = step->layout(*layout, facts());
  }
  return layout;
}

bool NodeContext::makes_rows() {
  if (is_in(row_.convert, kNew)) return true;
  if (!is_in(row_.convert, kOfRows)) return false;
  for (const NamedArgument& input : node_.inputs)
    for (const std::string& name : input.argument.names) {
      if (name.empty()) continue;
      const std::optional<Layout> own = layout_of(view(name));
      if (!own || !lies_in_rows(*own, facts()).value_or(false)) return false;
    }
  return true;
}

std::optional<bool> NodeContext::lies_untyped_in_rows(const char* name) {
  const std::optional<Layout> own = layout_of(view(given(name)->names.front()));
  return own ? lies_in_rows(*own, facts()) : std::nullopt;
}

std::optional<bool> NodeContext::has_untyped_view(const char* name, const ir::SymShape& wanted) {
  const std::optional<Layout> own = layout_of(view(given(name)->names.front()));
  return own ? has_view(*own, dims_of(wanted), facts()) : std::nullopt;
}

void NodeContext::set_maybe_shared(const char* of, V value, bool is_in_rows) {
  if (!has_output(0)) return;
  const std::shared_ptr<Storage>& from = view(given(of)->names.front()).storage;
  if (from->maybe_shared == nullptr)
    from->maybe_shared = std::make_shared<std::vector<std::weak_ptr<Storage>>>(1, from);
  auto made = std::make_shared<Storage>();
  made->value = value;
  made->is_row_major = is_in_rows;
  made->maybe_shared = from->maybe_shared;
  made->maybe_shared->push_back(made);
  take(outputs_[0], {std::move(made), {}, value, 0});
}

}  // namespace tensormill::frontend::pytorch
