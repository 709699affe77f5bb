// Functions of mathematics that a step of the host computes in double precision.
#include "compiler/build/numbers/special.h"

#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

using build::OpName;
/// Of one number, of two, of which the second is "other", and of the derivative's number and one.
constexpr std::array kSpecial = {OpName{"i0", "bessel_i0"},
                                 OpName{"special_i0", "bessel_i0"},
                                 OpName{"special_i0e", "bessel_i0e"},
                                 OpName{"special_i1", "bessel_i1"},
                                 OpName{"special_i1e", "bessel_i1e"},
                                 OpName{"special_bessel_j0", "bessel_j0"},
                                 OpName{"special_bessel_j1", "bessel_j1"},
                                 OpName{"special_bessel_y0", "bessel_y0"},
                                 OpName{"special_bessel_y1", "bessel_y1"},
                                 OpName{"special_modified_bessel_i0", "bessel_i0"},
                                 OpName{"special_modified_bessel_i1", "bessel_i1"},
                                 OpName{"special_modified_bessel_k0", "bessel_k0"},
                                 OpName{"special_modified_bessel_k1", "bessel_k1"},
                                 OpName{"special_scaled_modified_bessel_k0", "bessel_k0e"},
                                 OpName{"special_scaled_modified_bessel_k1", "bessel_k1e"},
                                 OpName{"igamma", "gamma_lower"},
                                 OpName{"special_gammainc", "gamma_lower"},
                                 OpName{"igammac", "gamma_upper"},
                                 OpName{"special_gammaincc", "gamma_upper"},
                                 OpName{"special_zeta", "zeta"},
                                 OpName{"polygamma", "polygamma"},
                                 OpName{"special_polygamma", "polygamma"}};

}  // namespace

void convert_special(NodeContext& node) {
  const char* name = build::graph_name(node, kSpecial, node.op());
  const bool is_derivative = takes(node, "n");
  std::vector<Operand> operands{node.operand(takes(node, "x") ? "x" : "self")};
  if (takes(node, "other")) operands.push_back(node.operand("other"));
  const DType common = node.common_type(operands), dtype = is_float(common) ? common : DType::kFloat32;
  std::vector<V> values;
  for (const Operand& operand : operands) values.push_back(node.as(operand, dtype));
  if (is_derivative) {
    const int64_t number = node.integer("n");
    if (number < 0) node.invalid("n is " + std::to_string(number));
    values.insert(values.begin(), Compose(node).number(values[0], static_cast<double>(number)));
  }
  node.set_output(0, build::special_function(node, name, values));
}

// log gamma of several dims: the sum of those of x, x - 1/2 ...
void convert_multigamma(NodeContext& node) {
  constexpr int64_t kMostDims = 64;
  Compose c(node);
  const V given = floated(node, node.tensor("self")), x = c.cast(given, DType::kFloat64);
  const int64_t dims = node.integer("p");
  if (dims < 1) node.invalid("p is " + std::to_string(dims));
  if (dims > kMostDims) node.unsupported("p", std::to_string(dims) + " dims are not implemented");
  const auto count = static_cast<double>(dims);
  V y = c.number(x, count * (count - 1) / 4 * std::log(std::numbers::pi));
  for (int64_t i = 0; i < dims; ++i)
    y = c.add(y, build::log_gamma(node, c.minus(x, 0.5 * static_cast<double>(i))));
  node.set_output(0, c.cast(y, node.dtype(given)));
}

}  // namespace tensormill::frontend::pytorch
