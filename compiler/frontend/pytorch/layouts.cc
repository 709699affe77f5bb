// What converters ask of where the elements of their operands lie: what the file says, or what
// made_layouts.cc and views of it tell.
#include <array>

#include "compiler/frontend/pytorch/node_context.h"
#include "compiler/frontend/pytorch/said_sizes.h"

namespace tensormill::frontend::pytorch {

// Of 0 or more, as extents may be.
const te::DimFacts& NodeContext::facts() const {
  static const te::DimFacts none;
  const ir::SymbolTable* symbols = state_.import.graph.symbols().get();
  return symbols != nullptr ? symbols->facts_with_zeros() : none;
}

std::optional<Layout> NodeContext::layout_of(const View& view) const {
  const Storage& storage = *view.storage;
  if (storage.value == ir::kAbsent) return std::nullopt;
  std::optional<Layout> layout = storage.layout;
  if (const StoredTensor* stored = storage.stored) {
    layout = Layout{{stored->sizes.begin(), stored->sizes.end()},
                    {stored->strides.begin(), stored->strides.end()}};
  }
  for (const auto& step : view.steps) {
    if (!layout || !step->layout) return std::nullopt;
    layout = step->layout(*layout, facts());
  }
  return layout;
}

std::vector<int64_t> NodeContext::axes_in_format(MemoryFormat format, size_t rank) const {
  std::optional<std::vector<int64_t>> axes = axes_in(format, rank);
  if (!axes) invalid("memory_format is none of tensors of rank " + std::to_string(rank));
  return *std::move(axes);
}

std::optional<Layout> NodeContext::layout_like(V value, const char* like, MemoryFormat format) {
  const std::vector<te::Dim> sizes = dims_of(shape(value));
  if (format != MemoryFormat::kPreserve) return dense_layout(sizes, axes_in_format(format, sizes.size()));
  std::optional<Layout> own = layout_of(like);
  if (!own || own->sizes != sizes || !dense_axes(*own, facts())) return std::nullopt;
  return own;
}

MemoryFormat NodeContext::memory_format(MemoryFormat otherwise) {
  // Exported programs count otherwise than torch itself, whose numbers TorchScript has.
  constexpr std::array kOfPrograms = {MemoryFormat::kRows, MemoryFormat::kChannelsLast,
                                      MemoryFormat::kChannelsLast3d, MemoryFormat::kPreserve};
  constexpr std::array kOfTorch = {MemoryFormat::kRows, MemoryFormat::kPreserve, MemoryFormat::kChannelsLast,
                                   MemoryFormat::kChannelsLast3d};
  const char* name = "memory_format";
  const Argument* argument = given(name);
  if (argument == nullptr || argument->kind == ArgumentKind::kNone) return otherwise;
  const bool is_of_program = argument->kind == ArgumentKind::kMemoryFormat;
  const int64_t number =
      argument->value.is_number_integer() ? argument->value.get<int64_t>() - (is_of_program ? 1 : 0) : -1;
  if (number < 0 || number >= static_cast<int64_t>(kOfTorch.size())) bad(name, "format that tensors have");
  return (is_of_program ? kOfPrograms : kOfTorch)[static_cast<size_t>(number)];
}

std::optional<bool> NodeContext::lies_in(const char* name, MemoryFormat format) {
  const std::vector<int64_t> axes = axes_in_format(format, shape(tensor(name)).size());
  if (is_typed()) return pytorch::lies_in(input_meta(name), axes);
  const std::optional<Layout> own = layout_of(name);
  return own ? lies_in_rows(turned(*own, axes), facts()) : std::nullopt;
}

std::optional<bool> NodeContext::is_suggested(const char* name, MemoryFormat format) {
  static_cast<void>(axes_in_format(format, shape(tensor(name)).size()));
  const std::optional<Layout> own = is_typed() ? std::nullopt : layout_of(name);
  const std::optional<MemoryFormat> known = is_typed() ? suggested_format(input_meta(name))
                                            : own      ? suggested_format(*own, facts())
                                                       : std::nullopt;
  return known ? std::optional(*known == format) : std::nullopt;
}

std::optional<bool> NodeContext::has_view_as(const char* name, const ir::SymShape& wanted) {
  if (is_typed()) return has_view(input_meta(name), output_meta().sizes);
  const std::optional<Layout> own = layout_of(name);
  return own ? has_view(*own, dims_of(wanted), facts()) : std::nullopt;
}

std::optional<std::vector<int64_t>> NodeContext::axes_of_whole(const char* name) {
  if (is_typed()) return pytorch::axes_of_whole(input_meta(name));
  const View& own = view(given(name)->names.front());
  const std::optional<Layout> layout = layout_of(own);
  if (!layout || own.storage->stored != nullptr) return std::nullopt;
  const ir::SymInt all = num_elements(shape(own.storage->value));
  if (!is_proven(ir::Relation::kEqual, num_elements(shape(tensor(name))), all)) return std::nullopt;
  return dense_axes(*layout, facts());
}

void NodeContext::set_new(V value, const char* like, MemoryFormat format) {
  set_output(0, value);
  if (is_typed() || row_.is_in_place || parts_ || !has_output(0)) return;
  state_.tensors.at(outputs_[0]).storage->layout = layout_like(value, like, format);
}

void NodeContext::set_maybe_shared(const char* of, V value, MemoryFormat format) {
  if (parts_) {
    made_.insert_or_assign(0, PartResult{value, of, format});
    return;
  }
  if (!has_output(0)) return;
  auto storage = std::make_shared<Storage>();
  storage->value = value;
  if (!is_typed() && format != MemoryFormat::kPreserve) {
    storage->layout = layout_like(value, of, format);
    if (storage->layout) storage->layout->is_exact = false;
  }
  share(of, {std::move(storage), {}, value, 0});
}

void NodeContext::share(const std::string& of, View made) {
  const std::shared_ptr<Storage>& from = view(given(of.c_str())->names.front()).storage;
  if (from->maybe_shared == nullptr)
    from->maybe_shared = std::make_shared<std::vector<std::weak_ptr<Storage>>>(1, from);
  made.storage->maybe_shared = from->maybe_shared;
  made.storage->maybe_shared->push_back(made.storage);
  take(outputs_[0], std::move(made));
}

}  // namespace tensormill::frontend::pytorch
