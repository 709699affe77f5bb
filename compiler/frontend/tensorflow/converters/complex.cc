// Fourier transforms, and what makes complex numbers and takes their parts.
#include "compiler/build/numbers/complex.h"
#include "compiler/build/numbers/arithmetic.h"
#include "compiler/build/signal/fourier.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

// Over the last one to three axes. Of real numbers operand 1 says how long the lines are; of the last axis
// half of the transform is there.
void convert_fourier(NodeContext& node) {
  Compose c(node);
  const std::string_view op = node.op();
  const size_t dims = op.ends_with("3D") ? 3 : op.ends_with("2D") ? 2 : 1;
  const bool is_inverse = op.starts_with("I"), is_real = op.find("RFFT") != std::string_view::npos;
  V x = is_real && !is_inverse ? c.unsqueeze(node.input(0), node.rank(node.input(0)))
                               : build::paired(node, node.complex(0));
  const ir::SymShape shape = node.shape(x);
  if (shape.size() < dims + 1) node.invalid("an operand of rank " + std::to_string(shape.size() - 1));
  const size_t first = shape.size() - 1 - dims;
  const auto behind = shape.begin() + static_cast<std::ptrdiff_t>(first);
  const ir::SymShape lengths = is_real ? node.known_ints(1, "fft_length")
                                       : ir::SymShape(behind, behind + static_cast<std::ptrdiff_t>(dims));
  if (lengths.size() != dims) node.invalid("fft_length has " + std::to_string(lengths.size()) + " numbers");
  for (const ir::SymInt& length : lengths)
    if (!ir::demand(ir::Relation::kLessEqual, 1, length)) node.invalid("lines of " + to_string(length));
  const bool is_half = is_real && !is_inverse;
  if (is_half) x = build::fourier(node, x, ir::kAbsent, lengths.back(), true, false);
  const size_t whole = is_real ? dims - 1 : dims;
  for (size_t d = 0; d < whole; ++d)
    x = build::fourier_along(node, x, static_cast<int64_t>(first + d), lengths[d], false, is_inverse);
  if (!is_real || is_half) return node.set_item(0, {build::parts_of(node, x), {}});
  const V lines = build::fourier_real(node, x, lengths.back());
  node.set_output(0, c.squeeze(lines, node.rank(lines) - 1));
}

void convert_complex(NodeContext& node) {
  Compose c(node);
  const V real = node.input(0), imaginary = node.input(1);
  const ir::SymShape shape = ir::broadcast_shapes(node.shape(real), node.shape(imaginary));
  node.set_item(0, {Complex{c.expand(real, shape), c.expand(imaginary, shape)}, {}});
}

void convert_complex_part(NodeContext& node) {
  const Complex& x = node.complex(0);
  const std::string_view op = node.op();
  node.set_output(0, op == "Real"    ? x.real
                     : op == "Imag"  ? x.imaginary
                     : op == "Angle" ? build::atan2(node, x.imaginary, x.real)
                                     : build::hypotenuse(node, x.real, x.imaginary));
}

void convert_conj(NodeContext& node) { node.set_item(0, {build::conjugate(node, node.complex(0)), {}}); }

}  // namespace tensormill::frontend::tensorflow
