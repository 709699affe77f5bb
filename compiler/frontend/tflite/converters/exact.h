/// What the exact forms of int8 operators have alike. Thread-safety: as the context.
#pragma once

#include <functional>
#include <vector>

#include "compiler/build/numbers/fixed_point.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

/// Of a tensor of int8: real = scale * (q - zero).
struct Int8Scale {
  float scale = 1;
  int32_t zero = 0;
};

class ExactNode {
public:
  /// Throws UnsupportedForm for operands and results that are not int8 with one scale.
  explicit ExactNode(NodeContext& node) : c(node), fixed(node), node_(node) {}
  Int8Scale input(size_t index) const { return scale_of(node_.input_tensor(index), "operand", index); }
  Int8Scale output() const { return scale_of(node_.output_tensor(0), "output", 0); }

  /// q - zero in float64.
  V centered(size_t index);
  /// Output 0 of integers in float64, to which its zero point is added.
  void set(V integers, Activation activation = Activation::kNone);
  /// Output 0 as a function of each element of operand 0: what `compute` makes of q - zero, plus the output's
  /// zero point.
  void set_by_table(const std::function<int32_t(int32_t)>& compute,
                    Activation activation = Activation::kNone);
  /// Saturated, in the range that the activation leaves.
  struct Range {
    int32_t low = -128, high = 127;
  };
  Range range(Activation activation) const;

  Compose c;
  build::FixedPoint fixed;

private:
  Int8Scale scale_of(const Tensor& tensor, const char* what, size_t index) const;
  NodeContext& node_;
};

}  // namespace tensormill::frontend::tflite
