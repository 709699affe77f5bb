/// Graphs of quantized values as importers write them, and all bytes as their inputs.
/// Thread-safety: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"

namespace tensormill::quantized_nets {

struct Net {
  using V = ir::ValueId;
  ir::Graph graph{ops::standard_ops()};

  V add(const std::string& op, std::vector<V> inputs, const ir::Attrs& attrs = {}) {
    return graph.add_node(op, std::move(inputs), attrs, {graph.unique_name(op)})[0];
  }
  V constant(const Tensor& tensor) { return graph.add_constant(graph.unique_name("c"), tensor); }
  V number(float value, const Shape& shape = {}) {
    return constant(Tensor::from<float>(shape, std::vector<float>{value}));
  }
  V zero_point(DType dtype, int64_t value) {
    Tensor tensor(dtype, {});
    tensor.set_element_int(0, value);
    return add("cast", {constant(tensor)}, {{"to", DType::kFloat32}});
  }
  V dequantize(V q, int64_t zero, float scale) {
    const V wide = add("cast", {q}, {{"to", DType::kFloat32}});
    const V centered = add("sub", {wide, zero_point(graph.value(q).type.dtype, zero)});
    return add("mul", {centered, number(scale)});
  }
  V quantize(V value, int64_t zero, float scale, DType to) {
    const V rounded = add("round", {add("div", {value, number(scale)})});
    return add("cast", {add("add", {rounded, zero_point(to, zero)})}, {{"to", to}});
  }
};

/// All bytes, one after the other.
inline Tensor all_bytes(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    static_cast<uint8_t*>(tensor.data())[i] = static_cast<uint8_t>(i);
  return tensor;
}

inline void expect_same_bytes(const ir::Graph& before, const ir::Graph& after, const Tensor& x) {
  const std::vector<Tensor> expected = ir::evaluate_reference(before, {x});
  const std::vector<Tensor> actual = ir::evaluate_reference(after, {x});
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t output = 0; output < expected.size(); ++output) {
    ASSERT_EQ(actual[output].dtype(), expected[output].dtype());
    for (int64_t i = 0; i < expected[output].num_elements(); ++i)
      ASSERT_EQ(actual[output].element_as_int(i), expected[output].element_as_int(i)) << output << " " << i;
  }
}

}  // namespace tensormill::quantized_nets
