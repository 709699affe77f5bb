/// The layers that are measured alone: one operator with a ReLU behind it. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::bench {

struct Layer {
  std::string net;        ///< "resnet50"
  std::string name;       ///< "3x3 64>64 56"
  std::string algorithm;  ///< "direct", "depthwise"
  std::string op;
  ir::Attrs attrs;
  std::vector<Shape> inputs;  ///< activations first, then weights and bias
  double flops = 0;  ///< of the direct algorithm over the real channels; a multiply-add counts as two
  int count = 1;     ///< how often the network has it
};

/// The convolutions of ResNet-50, ResNet-18 and MobileNetV2 on `batch` images of 224 x 224, in blocks of
/// `block` channels; those that minimal filtering F(tile,3) fits by that algorithm where `tile` is 2 or 4.
std::vector<Layer> all_layers(int64_t block, int64_t batch, int64_t tile);

}  // namespace tensormill::bench
