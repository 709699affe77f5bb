// What is known of converters: where elements lie of tensors of which the file does not say it, as far as
// torch's operators make rows of rows, and views of them are followed; and which take operands that are as
// long as a run decides.
#include <algorithm>
#include <array>

#include "compiler/frontend/pytorch/node_context.h"

namespace tensormill::frontend::pytorch {

namespace {

/// What is new, whatever the operands are.
constexpr std::array<Converter, 7> kNew = {convert_filled,     convert_scalar_tensor, convert_arange,
                                           convert_linspace,   convert_eye,           convert_one_hot,
                                           convert_tri_indices};
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

bool is_stored_in_rows(const StoredTensor& stored) {
  return is_row_major(Layout{stored.sizes, stored.strides});
}

}  // namespace

std::optional<Layout> NodeContext::layout_of(const View& view) const {
  const Storage& storage = *view.storage;
  const bool is_known = storage.stored != nullptr ? is_stored_in_rows(*storage.stored) : storage.is_row_major;
  if (!is_known || storage.value == ir::kAbsent) return std::nullopt;
  std::optional<Layout> layout = row_major_layout(type(storage.value).shape.hints());
  for (const auto& step : view.steps) {
    if (!layout || !step->layout) return std::nullopt;
    layout = step->layout(*layout);
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
      if (!own || !is_row_major(*own)) return false;
    }
  return true;
}

void NodeContext::set_maybe_view(const char* of, const ir::SymShape& shape) {
  const std::shared_ptr<const ViewStep> step = reshape_step(shape);
  const std::optional<Layout> own = layout(of);
  if (own && has_view(own->sizes, own->strides, shape.hints())) return set_view(0, of, step);
  set_copy(of, step->read(*this, tensor(of)), own.has_value());
}

void NodeContext::set_copy(const char* of, V value, bool is_for_sure) {
  if (!has_output(0)) return;
  auto copy = std::make_shared<Storage>();
  copy->value = value;
  copy->is_row_major = is_for_sure;
  if (!is_for_sure) {
    const std::shared_ptr<Storage>& from = view(given(of)->names.front()).storage;
    if (from->maybe_shared == nullptr)
      from->maybe_shared = std::make_shared<std::vector<std::weak_ptr<Storage>>>(1, from);
    copy->maybe_shared = from->maybe_shared;
    copy->maybe_shared->push_back(copy);
  }
  take(outputs_[0], {std::move(copy), {}, value, 0});
}

}  // namespace tensormill::frontend::pytorch
