// What makes complex numbers, looks at them as pairs of real ones, and takes their parts.
#include <limits>

#include "compiler/build/numbers/arithmetic.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// Two real tensors of one type in the shape that they have together.
build::Complex expanded(NodeContext& node, const char* first, const char* second) {
  Compose c(node);
  const V a = node.tensor(first), b = node.tensor(second);
  const ir::SymShape whole = ir::broadcast_shapes(node.shape(a), node.shape(b));
  return {c.expand(a, whole), c.expand(b, whole)};
}

}  // namespace

void convert_complex(NodeContext& node) { node.set_complex(0, expanded(node, "real", "imag")); }

void convert_polar(NodeContext& node) {
  const build::Complex given = expanded(node, "abs", "angle");
  node.set_complex(0, build::complex_of_polar(node, given.real, given.imaginary));
}

// Of a real tensor the real part is the tensor itself.
void convert_complex_part(NodeContext& node) {
  if (!node.is_complex("self")) {
    if (node.op() == "imag") node.invalid("of real numbers");
    return node.set_alias("self");
  }
  const int64_t last = node.rank(node.pairs("self")) - 1;
  node.set_view_as(false, "self", {numbers_step(), select_step(last, node.op() == "imag" ? 1 : 0)});
}

void convert_view_as_real(NodeContext& node) {
  if (!node.is_complex("self")) node.invalid("of real numbers");
  node.set_view_as(false, "self", {numbers_step()});
}

void convert_view_as_complex(NodeContext& node) {
  const V x = node.tensor("self");
  const ir::SymShape shape = node.shape(x);
  if (!is_float(node.dtype(x)) || node.dtype(x) == DType::kBFloat16)
    node.invalid("complex numbers of elements of type " + std::string(dtype_name(node.dtype(x))));
  if (shape.empty() || !ir::demand(ir::Relation::kEqual, shape.back(), 2))
    node.invalid("pairs of shape " + to_string(shape));
  node.set_view_as(true, "self", {pairs_step()});
}

// The same bits as elements of another type, of as many bits.
void convert_view_dtype(NodeContext& node) {
  const V x = node.tensor("self");
  const DType from = node.dtype(x), to = node.output_dtype();
  static_cast<void>(node.optional_dtype("dtype"));
  if (dtype_bytes(from) != dtype_bytes(to))
    node.unsupported("dtype", std::string(dtype_name(from)) + " as " + std::string(dtype_name(to)) +
                                  ": elements of another width are not implemented");
  if (from == to) return node.set_alias("self");
  // A byte that is not 0 is a truth.
  const auto as = [](DType dtype) {
    return [dtype](build::OpBuilder& builder, V value) {
      return dtype == DType::kBool ? Compose(builder).cast(value, dtype)
                                   : builder.add("bit_cast", {value}, {{"to", dtype}});
    };
  };
  node.set_view(0, "self",
                std::make_shared<const ViewStep>(ViewStep{
                    as(to), [=](build::OpBuilder& builder, V, V part) { return as(from)(builder, part); }}));
}

// conj is a view that is written as others are; conj_physical and resolve_conj have elements of their own.
void convert_conj(NodeContext& node) {
  const std::string& op = node.op();
  const bool is_view = op == "conj" || op == "_conj";
  const bool is_complex = node.is_complex("self");
  if (op.starts_with("resolve")) {
    // A copy of what is to be turned yet, else the tensor itself.
    if (!is_complex) return node.set_maybe_shared("self", node.tensor("self"));
    const build::Complex own = build::parts_of(node, node.pairs("self"));
    return node.set_parts(0, {own.real, "self"}, own.imaginary);
  }
  if (!is_complex) {
    if (!op.ends_with("physical")) return node.set_alias("self");
    return node.set_output(0, node.add("identity", {node.tensor("self")}));
  }
  if (is_view) return node.set_view_as(true, "self", {conjugate_step()});
  node.set_complex(0, build::conjugate(node, build::parts_of(node, node.pairs("self"))));
}

// The last two axes exchanged, and of complex numbers the conjugates.
void convert_adjoint(NodeContext& node) {
  const bool is_complex = node.is_complex("self");
  const int64_t rank = is_complex ? node.rank(node.pairs("self")) - 1 : node.rank(node.tensor("self"));
  if (rank == 0 && node.op() == "matrix_H") return node.set_alias("self");
  if (rank < 2 || (node.op() == "matrix_H" && rank > 2))
    node.invalid("the input has rank " + std::to_string(rank));
  ir::Ints perm = Compose(node).count_to(rank);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  const auto step = transpose_step(std::move(perm));
  if (!is_complex) return node.set_view(0, "self", step);
  node.set_view_as(true, "self", {step_of_pairs(step), conjugate_step()});
}

// Of real numbers 0, or pi where they are below 0.
void convert_angle(NodeContext& node) {
  Compose c(node);
  if (node.is_complex("self")) {
    const build::Complex z = build::parts_of(node, node.pairs("self"));
    return node.set_output(0, build::atan2(node, z.imaginary, z.real));
  }
  const V x = floated(node, node.tensor("self"));
  const V angle = c.where(is_negative(node, x), c.number(x, std::numbers::pi), c.number(x, 0));
  node.set_output(0, c.where(node.add("is_nan", {x}), x, angle));
}

}  // namespace tensormill::frontend::pytorch
