// Operators whose operands or results are complex. What moves elements, and what is linear, does so to the
// real and to the imaginary parts, where a real operand beside complex ones has imaginary parts of 0;
// products are those of parts.
#include <algorithm>
#include <iterator>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr Converter kOfComplex[] = {
    &convert_complex, &convert_polar,      &convert_complex_part, &convert_view_as_real,
    &convert_conj,    &convert_adjoint,    &convert_angle,        &convert_view_as_complex,
    &convert_fft,     &convert_fft_kernel, &convert_stft,         &convert_istft,
    &convert_nothing, &convert_cond,       &convert_wrapped,      &convert_eig};
constexpr Converter kOfEachPart[] = {&convert_reshape,
                                     &convert_flatten,
                                     &convert_unflatten,
                                     &convert_permute,
                                     &convert_transpose,
                                     &convert_movedim,
                                     &convert_squeeze,
                                     &convert_unsqueeze,
                                     &convert_expand,
                                     &convert_slice,
                                     &convert_select,
                                     &convert_narrow,
                                     &convert_split,
                                     &convert_split_sizes,
                                     &convert_tensor_split,
                                     &convert_unbind,
                                     &convert_diagonal,
                                     &convert_alias,
                                     &convert_clone,
                                     &convert_contiguous,
                                     &convert_dropout,
                                     &convert_to,
                                     &convert_type_as,
                                     &convert_cat,
                                     &convert_stack,
                                     &convert_stack_form,
                                     &convert_repeat,
                                     &convert_repeat_interleave,
                                     &convert_flip,
                                     &convert_roll,
                                     &convert_fftshift,
                                     &convert_tri,
                                     &convert_broadcast,
                                     &convert_pad,
                                     &convert_unfold,
                                     &convert_filled,
                                     &convert_scalar_tensor,
                                     &convert_fill,
                                     &convert_copy,
                                     &convert_index_select,
                                     &convert_gather,
                                     &convert_take_along_dim,
                                     &convert_take,
                                     &convert_index,
                                     &convert_index_put,
                                     &convert_index_rows,
                                     &convert_select_scatter,
                                     &convert_slice_scatter,
                                     &convert_masked_fill,
                                     &convert_masked_scatter,
                                     &convert_where,
                                     &convert_diag_embed,
                                     &convert_trace,
                                     &convert_rot90,
                                     &convert_diff,
                                     &convert_positive,
                                     &convert_add,
                                     &convert_sum,
                                     &convert_mean,
                                     &convert_sym_size};
constexpr Converter kProducts[] = {&convert_mul, &convert_matmul, &convert_outer, &convert_einsum};

template <size_t kCount>
bool is_among(const Converter (&all)[kCount], Converter convert) {
  return std::find(std::begin(all), std::end(all), convert) != std::end(all);
}

bool is_linear(const NodeContext& node) {
  constexpr std::string_view kLinear[] = {"neg", "negative", "cumsum"};
  return std::find(std::begin(kLinear), std::end(kLinear), node.op()) != std::end(kLinear);
}

constexpr Parts kImaginaryOfAll{Part::kImaginary, Part::kImaginary, {}, true};

void convert_each_part(NodeContext& node, Converter convert) {
  if (takes(node, "alpha") && node.is_complex("alpha"))
    node.unsupported("alpha", "complex factors are not implemented");
  const std::map<size_t, PartResult> real = node.of_parts({}, convert);
  const bool is_any =
      std::any_of(real.begin(), real.end(), [&](const auto& each) { return node.makes_complex(each.first); });
  std::map<size_t, PartResult> imaginary;
  if (is_any) imaginary = node.of_parts(kImaginaryOfAll, convert);
  for (const auto& [index, made] : real) {
    // Of what becomes real the real part is left.
    if (!node.makes_complex(index)) {
      node.set_output(index, made.value);
      continue;
    }
    const V other = imaginary.at(index).value;
    const bool is_one = node.op().find("ones") != std::string::npos;
    node.set_parts(index, made, is_one ? Compose(node).times(other, 0) : other);
  }
}

V result_of(NodeContext& node, Converter convert, const Parts& parts) {
  return node.of_parts(parts, convert).at(0).value;
}

/// The second operand of a product.
const char* second_name(const NodeContext& node) {
  for (const char* name : {"tensors", "other", "mat2", "vec2", "vec", "tensor"})
    if (takes(node, name)) return name;
  return "other";
}

/// A product of two operands, whatever it sums over, or a quotient of a complex one and a real one.
void convert_product(NodeContext& node, Converter convert) {
  Compose c(node);
  const char* second = second_name(node);
  const bool is_list = second == std::string_view("tensors");
  const size_t count = is_list ? node.num_tensors(second) : 2;
  const bool has_first = is_list ? node.is_complex_in(second, 0) : node.is_complex("self");
  const bool has_second = is_list ? count == 2 && node.is_complex_in(second, 1) : node.is_complex(second);
  const auto product = [&](Part a, Part b) { return result_of(node, convert, {a, b, second, false}); };
  const V real = product(Part::kReal, Part::kReal);
  const auto of_first = [&] { return product(Part::kImaginary, Part::kReal); };
  const auto of_second = [&] { return product(Part::kReal, Part::kImaginary); };
  // That of the first operand's conjugate.
  const bool is_conjugate = node.op() == "vdot";
  if (!has_second) {
    const V imaginary = of_first();
    return node.set_complex(0, {real, is_conjugate ? c.unary("neg", imaginary) : imaginary});
  }
  if (!has_first) return node.set_complex(0, {real, of_second()});
  const V both_imaginary = product(Part::kImaginary, Part::kImaginary);
  if (is_conjugate) return node.set_complex(0, {c.add(real, both_imaginary), c.sub(of_second(), of_first())});
  node.set_complex(0, {c.sub(real, both_imaginary), c.add(of_second(), of_first())});
}

void convert_complex_einsum(NodeContext& node) {
  const size_t count = node.num_tensors("tensors");
  if (count < 2) return convert_each_part(node, &convert_einsum);
  if (count > 2)
    node.unsupported("tensors", "a product of more than two complex operands is not implemented");
  convert_product(node, &convert_einsum);
}

/// What was computed in longer parts.
void set_rounded(NodeContext& node, const build::Complex& z, DType dtype) {
  Compose c(node);
  node.set_complex(0, {c.cast(z.real, dtype), c.cast(z.imaginary, dtype)});
}

void convert_complex_div(NodeContext& node) {
  const bool has_mode = takes(node, "rounding_mode") && node.has("rounding_mode");
  if (has_mode || node.op() == "floor_divide") node.invalid("complex numbers have no whole quotients");
  if (!node.is_complex("other")) return convert_product(node, &convert_div);
  const DType own = node.common_part_type({"self", "other"}), dtype = computed_in(own);
  set_rounded(node, build::complex_quotient(node, node.complex("self", dtype), node.complex("other", dtype)),
              own);
}

/// Of each part for itself, then both together.
void convert_test(NodeContext& node, Converter convert, const char* joined) {
  const V real = result_of(node, convert, {});
  node.set_output(0, node.add(joined, {real, result_of(node, convert, kImaginaryOfAll)}));
}

/// z^p of a real p: |z|^p at p times the angle.
build::Complex power(NodeContext& node, const build::Complex& z, double p) {
  Compose c(node);
  if (p == 1) return z;
  if (p == 2) return build::complex_square(node, z);
  if (p == 0.5) return build::complex_root(node, z);
  const V length = build::hypotenuse(node, z.real, z.imaginary);
  const V angle = build::atan2(node, z.imaginary, z.real);
  return build::complex_of_polar(node, c.binary("pow", length, c.number(length, p)), c.times(angle, p));
}

build::Complex reciprocal(NodeContext& node, const build::Complex& z) {
  Compose c(node);
  return build::complex_quotient(node, {c.number(z.real, 1), c.number(z.real, 0)}, z);
}

/// z / |z|, of 0 itself.
build::Complex direction(NodeContext& node, const build::Complex& z) {
  Compose c(node);
  const V length = build::hypotenuse(node, z.real, z.imaginary);
  const V by = c.where(is_zero(node, length), c.number(length, 1), length);
  return {c.div(z.real, by), c.div(z.imaginary, by)};
}

/// Functions of one complex number; whether the operator is one of them.
bool convert_function(NodeContext& node) {
  const std::string& op = node.op();
  if (!takes(node, "self") || !node.is_complex("self")) return false;
  const DType own_type = node.common_part_type({"self"}), dtype = computed_in(own_type);
  const auto set = [&](const build::Complex& made) { set_rounded(node, made, own_type); };
  const auto z = [&] { return node.complex("self", dtype); };
  if (op == "abs" || op == "absolute") {
    const build::Complex own = z();
    node.set_output(0, Compose(node).cast(build::hypotenuse(node, own.real, own.imaginary), own_type));
  } else if (op == "exp") {
    set(build::complex_exponential(node, z()));
  } else if (op == "log") {
    set(build::complex_logarithm(node, z()));
  } else if (op == "sqrt") {
    set(build::complex_root(node, z()));
  } else if (op == "square") {
    set(build::complex_square(node, z()));
  } else if (op == "reciprocal") {
    set(reciprocal(node, z()));
  } else if (op == "sgn") {
    set(direction(node, z()));
  } else if (op == "pow" && !node.is_tensor("exponent") && !node.is_complex("exponent")) {
    set(power(node, z(), node.real("exponent")));
  } else {
    return false;
  }
  return true;
}

}  // namespace

void convert_node(NodeContext& node) {
  const Converter convert = node.row().convert;
  if (!node.has_complex() || is_among(kOfComplex, convert)) return convert(node);
  const std::string& op = node.op();
  if (is_among(kOfEachPart, convert) || is_linear(node)) return convert_each_part(node, convert);
  if (convert == &convert_einsum) return convert_complex_einsum(node);
  if (is_among(kProducts, convert)) return convert_product(node, convert);
  if (convert == &convert_div) return convert_complex_div(node);
  if (op == "eq" || op == "isfinite") return convert_test(node, convert, "and");
  if (op == "ne" || op == "not_equal" || op == "isnan" || op == "isinf")
    return convert_test(node, convert, "or");
  if (convert == &convert_norm)
    return node.set_output(0, result_of(node, convert, {Part::kLength, Part::kLength, {}, false}));
  if (convert_function(node)) return;
  node.unsupported("operands", "complex numbers are not implemented here");
}

}  // namespace tensormill::frontend::pytorch
