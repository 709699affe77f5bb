/// Convolution nets of the generated architectures' building blocks, small enough for the reference.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::small_nets {

/// A graph in the making; every constant is seeded.
class Net {
public:
  Net();
  /// `free`: the symbol of each axis that is of any extent, the one of `shape` being its hint, "." of others;
  /// "": none is. Each symbol once a net.
  ir::ValueId input(const Shape& shape, const std::string& free = "");
  /// [N,C,H,W]; is_free: of any N, H and W.
  ir::ValueId image(const Shape& shape, bool is_free);
  ir::ValueId constant(const Shape& shape, double scale = 1.0);
  ir::ValueId add(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attrs attrs = {});
  /// Square kernel, padded by kernel / 2.
  ir::ValueId conv(ir::ValueId x, int64_t channels, int64_t kernel, int64_t stride = 1, int64_t group = 1);
  ir::ValueId conv_relu(ir::ValueId x, int64_t channels, int64_t kernel, int64_t stride = 1);
  ir::ValueId max_pool(ir::ValueId x);
  ir::ValueId global_pool(ir::ValueId x);
  std::vector<ir::ValueId> split_in_two(ir::ValueId x);
  ir::ValueId shuffle_in_two(ir::ValueId x);
  ir::ValueId dense(ir::ValueId x, int64_t features);
  const ir::SymShape& shape(ir::ValueId x) const { return graph.value(x).type.shape; }
  ir::Graph finish(std::vector<ir::ValueId> outputs);

  ir::Graph graph;

private:
  uint64_t seed_ = 1;
};

/// Bottlenecks with and without projection behind a 7x7 convolution and a pool.
ir::Graph residual_net();
/// Inverted residuals with clip.
ir::Graph mobile_net();
/// Fire modules; the last pool is a window as large as its input.
ir::Graph squeeze_net();
/// Units of stride 2 and 1 with splits and shuffles of parts that fill no block.
ir::Graph shuffle_net();

/// The same of images as Net::image's.
ir::Graph residual_net_of(bool is_free);
ir::Graph mobile_net_of(bool is_free);
ir::Graph shuffle_net_of(bool is_free);

std::vector<Tensor> seeded_inputs(const ir::Graph& graph);
int64_t count(const ir::Graph& graph, const std::string& op);
/// Largest |a - b| over largest |b|.
double distance(const Tensor& a, const Tensor& b);
/// The graph at the hints of its symbols.
ir::Graph at_hints(const ir::Graph& graph);
/// Expects that `after` is sound and gives what `before` does on seeded inputs, which is more than zeros,
/// within `tolerance` (as distance).
void expect_same(const ir::Graph& before, const ir::Graph& after, double tolerance = 1e-5);

}  // namespace tensormill::small_nets
