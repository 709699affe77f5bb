#include "compiler/frontend/tflite/options.h"

#include "compiler/frontend/tflite/views.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

template <typename Enum>
constexpr int64_t kEnumerators = 0;
template <>
constexpr int64_t kEnumerators<TensorType> = 23;
template <>
constexpr int64_t kEnumerators<Padding> = 2;
template <>
constexpr int64_t kEnumerators<Activation> = 6;
template <>
constexpr int64_t kEnumerators<LshProjection> = 3;
template <>
constexpr int64_t kEnumerators<WeightsFormat> = 2;
template <>
constexpr int64_t kEnumerators<LstmKernel> = 2;
template <>
constexpr int64_t kEnumerators<Combiner> = 3;
template <>
constexpr int64_t kEnumerators<MirrorPadMode> = 2;
template <>
constexpr int64_t kEnumerators<CustomFormat> = 1;
template <>
constexpr int64_t kEnumerators<ReduceWindowFunction> = 7;
template <>
constexpr int64_t kEnumerators<ComparisonDirection> = 6;
template <>
constexpr int64_t kEnumerators<ComparisonType> = 5;
template <>
constexpr int64_t kEnumerators<RngAlgorithm> = 3;

template <typename To, typename From>
void assign(To& to, From from, const char* field) {
  if constexpr (std::is_enum_v<To>) {
    const auto number = static_cast<int64_t>(from);
    if (number < 0 || number >= kEnumerators<To>)
      throw Error(ErrorCode::kInvalidModel, std::string(field) + " has number " + std::to_string(number) +
                                                ", which the schema does not have");
    to = static_cast<To>(number);
  } else if constexpr (std::is_same_v<To, std::string_view>) {
    if constexpr (std::is_same_v<From, const flatbuffers::String*>) {
      to = text_of(from);
    } else {
      to = bytes_of(from);
    }
  } else if constexpr (std::is_pointer_v<From>) {
    to = span_of<std::remove_const_t<typename To::element_type>>(from);
  } else {
    to = from;
  }
}

#define TFL_FIELD(type, field) assign(to.field, from.field(), #field);
#define TFL_OPTIONS(name, union_number, number, ...)   \
  Options read_##name(const tflite_file::name& from) { \
    name to;                                           \
    __VA_ARGS__                                        \
    return to;                                         \
  }
#include "compiler/frontend/tflite/options.def"
#undef TFL_OPTIONS
#undef TFL_FIELD

}  // namespace

Options read_options(const tflite_file::Operator& from) {
  const void* first = from.builtin_options();
  const void* second = from.builtin_options_2();
  const int first_number = first == nullptr ? 0 : static_cast<int>(from.builtin_options_type());
  const int second_number = second == nullptr ? 0 : static_cast<int>(from.builtin_options_2_type());
#define TFL_OPTIONS(name, union_number, number, ...)                              \
  if ((union_number) == 1 ? first_number == (number) : second_number == (number)) \
    return read_##name(*static_cast<const tflite_file::name*>((union_number) == 1 ? first : second));
#include "compiler/frontend/tflite/options.def"
#undef TFL_OPTIONS
  return std::monostate();
}

std::vector<int64_t> named_subgraphs(const Options& options) {
  std::vector<int64_t> named;
  const auto add = [&](int64_t index) { named.push_back(index); };
  if (const auto* call = std::get_if<CallOptions>(&options)) add(call->subgraph);
  if (const auto* once = std::get_if<CallOnceOptions>(&options)) add(once->init_subgraph_index);
  if (const auto* branch = std::get_if<IfOptions>(&options)) {
    add(branch->then_subgraph_index);
    add(branch->else_subgraph_index);
  }
  if (const auto* loop = std::get_if<WhileOptions>(&options)) {
    add(loop->cond_subgraph_index);
    add(loop->body_subgraph_index);
  }
  if (const auto* loop = std::get_if<StablehloWhileOptions>(&options)) {
    add(loop->cond_subgraph_index);
    add(loop->body_subgraph_index);
  }
  if (const auto* reduce = std::get_if<StablehloReduceOptions>(&options)) add(reduce->body_subgraph_index);
  if (const auto* reduce = std::get_if<StablehloReduceWindowOptions>(&options))
    add(reduce->body_subgraph_index);
  if (const auto* scatter = std::get_if<StablehloScatterOptions>(&options))
    add(scatter->update_computation_subgraph_index);
  if (const auto* sort = std::get_if<StablehloSortOptions>(&options)) add(sort->comparator_subgraph_index);
  if (const auto* composite = std::get_if<StableHLOCompositeOptions>(&options))
    add(composite->decomposition_subgraph_index);
  if (const auto* call = std::get_if<StablehloCustomCallOptions>(&options))
    named.insert(named.end(), call->called_computations.begin(), call->called_computations.end());
  if (const auto* branches = std::get_if<StablehloCaseOptions>(&options))
    named.insert(named.end(), branches->branch_subgraph_indices.begin(),
                 branches->branch_subgraph_indices.end());
  return named;
}

}  // namespace tensormill::frontend::tflite
