// Operators whose operands are complex. What moves elements, and what is linear, does so to the real and to
// the imaginary parts; products are those of parts.
#include <algorithm>

#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr Converter kOfComplex[] = {
    &convert_identity, &convert_first,        &convert_call,  &convert_if,      &convert_case,
    &convert_while,    &convert_switch,       &convert_merge, &convert_nothing, &convert_cast,
    &convert_fourier,  &convert_complex_part, &convert_conj,  &convert_eig};
constexpr Converter kOfEachPart[] = {&convert_reshape,
                                     &convert_squeeze,
                                     &convert_expand_dims,
                                     &convert_transpose,
                                     &convert_concat,
                                     &convert_pack,
                                     &convert_unpack,
                                     &convert_split,
                                     &convert_split_v,
                                     &convert_slice,
                                     &convert_strided_slice,
                                     &convert_pad,
                                     &convert_mirror_pad,
                                     &convert_reverse,
                                     &convert_tile,
                                     &convert_broadcast_to,
                                     &convert_roll,
                                     &convert_fill,
                                     &convert_gather,
                                     &convert_gather_nd,
                                     &convert_select,
                                     &convert_ensure_shape,
                                     &convert_add_n,
                                     &convert_scatter_nd,
                                     &convert_reverse_sequence,
                                     &convert_parallel_concat};
constexpr Converter kOfShape[] = {&convert_shape, &convert_rank, &convert_size};
constexpr Converter kProducts[] = {&convert_matmul, &convert_einsum};

template <size_t kCount>
bool is_among(const Converter (&all)[kCount], Converter convert) {
  return std::find(std::begin(all), std::end(all), convert) != std::end(all);
}

/// Whether it is linear in what it takes of its operands.
bool is_linear(std::string_view op) {
  constexpr std::string_view kLinear[] = {"Neg", "Add", "AddV2", "Sub", "Sum", "Mean", "Cumsum", "ZerosLike"};
  return std::find(std::begin(kLinear), std::end(kLinear), op) != std::end(kLinear);
}

/// The results of the node whose complex operands are one of their parts.
std::vector<Item> of_parts(NodeContext& node, Converter convert, const std::vector<bool>& is_imaginary) {
  std::vector<Item> items;
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const auto* given = std::get_if<Complex>(&node.item(i).value);
    items.push_back({node.item(i).value, {}});
    if (given != nullptr) items.back().value = is_imaginary[i] ? given->imaginary : given->real;
  }
  NodeContext inner(node, items);
  convert(inner);
  return inner.take_outputs();
}

void set_complex(NodeContext& node, size_t index, const Item& real, const Item& imaginary) {
  const V *a = std::get_if<V>(&real.value), *b = std::get_if<V>(&imaginary.value);
  if (a == nullptr || b == nullptr) node.unsupported("result", "complex numbers are not implemented here");
  node.set_item(index, {Complex{*a, *b}, {}});
}

void convert_each_part(NodeContext& node, Converter convert) {
  const std::vector<Item> real = of_parts(node, convert, std::vector<bool>(node.num_inputs(), false));
  const std::vector<Item> imaginary = of_parts(node, convert, std::vector<bool>(node.num_inputs(), true));
  for (size_t i = 0; i < real.size(); ++i) set_complex(node, i, real[i], imaginary[i]);
  if (node.op() == "ConjugateTranspose") {
    const Complex& turned = std::get<Complex>(node.outputs()[0].value);
    node.set_item(0, {Complex{turned.real, Compose(node).unary("neg", turned.imaginary)}, {}});
  }
}

/// A product of two operands, whatever it sums over.
void convert_product(NodeContext& node, Converter convert) {
  if (node.num_inputs() != 2)
    node.unsupported("operands", "products of so many complex ones are not implemented");
  const auto product = [&](bool a, bool b) {
    const std::vector<Item> made = of_parts(node, convert, {a, b});
    return std::get<V>(made.at(0).value);
  };
  Compose c(node);
  const V real = c.sub(product(false, false), product(true, true));
  const V imaginary = c.add(product(false, true), product(true, false));
  node.set_item(0, {Complex{real, imaginary}, {}});
}

}  // namespace

bool has_complex_operand(const NodeContext& node) {
  for (size_t i = 0; i < node.num_inputs(); ++i)
    if (std::holds_alternative<Complex>(node.item(i).value)) return true;
  return false;
}

void convert_complex_node(NodeContext& node, Converter convert) {
  const std::string_view op = node.op();
  if (is_among(kOfComplex, convert)) return convert(node);
  if (is_among(kOfEachPart, convert) || is_linear(op)) return convert_each_part(node, convert);
  if (is_among(kOfShape, convert))
    return node.set_items(of_parts(node, convert, std::vector<bool>(node.num_inputs(), false)));
  if (is_among(kProducts, convert) || op == "Mul") return convert_product(node, convert);
  if (op == "RealDiv" || op == "Div")
    return node.set_item(0, {build::complex_quotient(node, node.complex(0), node.complex(1)), {}});
  if (op == "Square") return node.set_item(0, {build::complex_square(node, node.complex(0)), {}});
  if (op == "Exp") return node.set_item(0, {build::complex_exponential(node, node.complex(0)), {}});
  node.unsupported("operands", "complex numbers are not implemented here");
}

}  // namespace tensormill::frontend::tensorflow
