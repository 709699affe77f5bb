/// Windows as TFLite's operators have them. Thread-safety: pure functions.
#pragma once

#include "compiler/build/maps/conv_pool.h"
#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

/// Windows over x [N,C,spatial...]. Throws Error(kInvalidModel) for numbers that are no geometry.
build::Windows windows_over(const NodeContext& node, V x, Padding padding, const std::vector<int64_t>& kernel,
                            std::vector<int64_t> strides, std::vector<int64_t> dilations);

/// CONV_2D or DEPTHWISE_CONV_2D over a map with its channels first.
struct ConvForm {
  build::ConvSpec spec;
  Shape perm, weights;  ///< how the filters are arranged: transposed, then of that shape
  Activation activation;
};
ConvForm conv_form(NodeContext& node, V map);

/// The pool of the node's options over a map with its channels first.
build::PoolSpec pool_over(NodeContext& node, V map);

/// FULLY_CONNECTED: weights [O,I]; without keep_num_dims all that is in front of the last I elements is the
/// batch.
struct Rows {
  V x;
  Shape weights;  ///< transposed: [I,O]
  Activation activation;
};
Rows rows_of(NodeContext& node, V x);

}  // namespace tensormill::frontend::tflite
