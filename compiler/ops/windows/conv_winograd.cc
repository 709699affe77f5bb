/// conv_winograd: 3×3 convolution of stride 1 on blocked activations by minimal filtering (winograd.h).
#include <algorithm>

#include "compiler/ops/gemm.h"
#include "compiler/ops/parts.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"
#include "compiler/ops/windows/winograd.h"

namespace tensormill::ops::conv_winograd_ops {

std::vector<ir::OpDef> family();

namespace {

constexpr DTypeSet kDtypes = set_of(DType::kFloat32) | set_of(DType::kFloat64);

/// Sizes by name. x is [batch, in_blocks, height, width, lanes], u [points², out_groups, in_blocks*lanes,
/// group*lanes]; tiles are counted row by row, image by image.
template <typename Extent>
struct GeometryOf {
  int64_t tile = 0, points = 0;
  Extent batch = 0, height = 0, width = 0;
  int64_t in_blocks = 0, lanes = 0, group = 0, out_blocks = 0;
  int64_t pad_top = 0, pad_left = 0;
  Extent out_height = 0, out_width = 0;
  Extent tile_rows = 0, tile_columns = 0;
  Extent tiles() const { return batch * tile_rows * tile_columns; }
};
using Geometry = GeometryOf<int64_t>;
using SymGeometry = GeometryOf<ir::SymInt>;

/// `Extents`: of x, a Shape or a SymShape.
template <typename Extents>
GeometryOf<typename Extents::value_type> read_geometry(const ir::Attrs& attrs, const Extents& x,
                                                       const Shape& u) {
  GeometryOf<typename Extents::value_type> g;
  g.tile = attr_int(attrs, "tile");
  g.points = g.tile + 2;
  g.batch = x[0], g.in_blocks = x[1], g.height = x[2], g.width = x[3], g.lanes = x[4];
  g.group = u[3] / g.lanes;
  g.out_blocks = u[1] * g.group;
  const ir::Ints pads = attr_ints(attrs, "pads", 4, 0, 0, kMaxWindow);
  g.pad_top = pads[0], g.pad_left = pads[1];
  g.out_height = g.height + pads[0] + pads[2] - 2;
  g.out_width = g.width + pads[1] + pads[3] - 2;
  g.tile_rows = (g.out_height + g.tile - 1) / g.tile;
  g.tile_columns = (g.out_width + g.tile - 1) / g.tile;
  return g;
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kDtypes);
  const Shape u = input_like_first(context, 1).shape;
  const int64_t tile = attr_int(context.attrs, "tile");
  if (tile != 2 && tile != 4) fail("attribute tile is " + std::to_string(tile) + ", expected 2 or 4");
  if (x.shape.size() != 5) fail("input 0 has shape " + to_string(x.shape) + ", expected [N,C/b,H,W,b]");
  const int64_t blocks = x.shape[1], lanes = x.shape[4];
  if (lanes < 1) fail("input 0 has blocks of " + std::to_string(lanes) + " channels");
  const int64_t points = (tile + 2) * (tile + 2), channels = blocks * lanes;
  if (u.size() != 4 || u[0] != points || u[2] != channels || u[3] < 1 || u[3] % lanes != 0) {
    fail("the transformed weights have shape " + to_string(u) + ", expected [" + std::to_string(points) +
         ",groups," + std::to_string(channels) + ",k*" + std::to_string(lanes) + "]");
  }
  if (u[1] > kMaxWindow || u[3] > kMaxWindow || x.shape[2].hint() > kMaxWindow ||
      x.shape[3].hint() > kMaxWindow) {
    fail("an extent exceeds " + std::to_string(kMaxWindow));
  }
  const SymGeometry g = read_geometry(context.attrs, x.shape, u);
  for (const ir::SymInt& extent : {g.out_height, g.out_width}) {
    if (demand(ir::Relation::kLessEqual, 1, extent)) continue;
    fail("the padded input of " + to_string(g.out_height + 2) + "x" + to_string(g.out_width + 2) +
         " is smaller than the kernel of 3x3");
  }
  if (has_input(context, 2)) {
    const ir::ValueType& bias = input_like_first(context, 2);
    if (bias.shape != ir::SymShape{u[1] * u[3]}) {
      fail("the bias has shape " + to_string(bias.shape) + ", expected [" + std::to_string(u[1] * u[3]) +
           "]");
    }
  }
  return {made_type(x.dtype, {g.batch, g.out_blocks, g.out_height, g.out_width, g.lanes})};
}

/// The inputs of a tile in one channel, zero outside of the image.
void gather_window(const Geometry& g, const std::vector<double>& x, int64_t tile, int64_t channel,
                   double* window) {
  const int64_t image = tile / (g.tile_rows * g.tile_columns);
  const int64_t top = tile / g.tile_columns % g.tile_rows * g.tile - g.pad_top;
  const int64_t left = tile % g.tile_columns * g.tile - g.pad_left;
  const int64_t base = (image * g.in_blocks + channel / g.lanes) * g.height;
  for (int64_t k = 0; k < g.points; ++k) {
    for (int64_t l = 0; l < g.points; ++l) {
      const int64_t row = top + k, column = left + l;
      const bool inside = row >= 0 && row < g.height && column >= 0 && column < g.width;
      const int64_t at = ((base + row) * g.width + column) * g.lanes + channel % g.lanes;
      window[k * g.points + l] = inside ? x[static_cast<size_t>(at)] : 0.0;
    }
  }
}

void reference(const ir::ReferenceContext& context) {
  const Tensor& x = *context.inputs[0];
  const Tensor& u = *context.inputs[1];
  Tensor& out = *context.outputs[0];
  if (out.num_elements() == 0) return;
  const Geometry g = read_geometry(context.attrs, x.shape(), u.shape());
  const WinogradMatrices matrices = winograd_matrices(g.tile);
  const int64_t points = g.points * g.points, tiles = g.tiles();
  const int64_t depth = g.in_blocks * g.lanes, channels = g.out_blocks * g.lanes;
  const std::vector<double> xs = to_doubles(x), us = to_doubles(u);
  std::vector<double> v(static_cast<size_t>(points * depth * tiles));
  std::vector<double> m(static_cast<size_t>(channels * tiles * points));
  double window[36], transformed[36];
  for (int64_t i = 0; i < depth * tiles; ++i) {
    gather_window(g, xs, i % tiles, i / tiles, window);
    winograd_transform(matrices.input, g.points, g.points, window, transformed);
    for (int64_t p = 0; p < points; ++p) v[static_cast<size_t>(p * depth * tiles + i)] = transformed[p];
  }
  for (int64_t p = 0; p < points; ++p) {
    GemmOperands gemm;
    gemm.rows = channels, gemm.columns = tiles, gemm.depth = depth;
    gemm.fill_row = [&](int64_t row, int64_t k0, int64_t count, double* block) {
      const int64_t width = g.group * g.lanes;
      const double* panel = us.data() + (p * channels + row / width * width) * depth;
      for (int64_t k = 0; k < count; ++k) block[k] = panel[(k0 + k) * width + row % width];
    };
    gemm.fill_column_block = [&](int64_t k, int64_t j0, int64_t count, double* block) {
      std::copy_n(v.data() + (p * depth + k) * tiles + j0, count, block);
    };
    gemm.take = [&](int64_t row, int64_t j0, int64_t count, const double* sums) {
      for (int64_t j = 0; j < count; ++j)
        m[static_cast<size_t>((row * tiles + j0 + j) * points + p)] = sums[j];
    };
    gemm_double(gemm);
  }
  const bool biased = context.inputs.size() > 2 && context.inputs[2] != nullptr;
  const std::vector<double> bias =
      biased ? to_doubles(*context.inputs[2]) : std::vector<double>(static_cast<size_t>(channels), 0.0);
  std::vector<double> values(static_cast<size_t>(out.num_elements()));
  for (int64_t i = 0; i < channels * tiles; ++i) {
    const int64_t channel = i / tiles, tile = i % tiles;
    winograd_transform(matrices.output, g.tile, g.points, m.data() + i * points, transformed);
    const int64_t image = tile / (g.tile_rows * g.tile_columns);
    const int64_t top = tile / g.tile_columns % g.tile_rows * g.tile, left = tile % g.tile_columns * g.tile;
    const int64_t base = (image * g.out_blocks + channel / g.lanes) * g.out_height;
    for (int64_t r = 0; r < std::min(g.tile, g.out_height - top); ++r) {
      for (int64_t s = 0; s < std::min(g.tile, g.out_width - left); ++s) {
        const int64_t at = ((base + top + r) * g.out_width + left + s) * g.lanes + channel % g.lanes;
        values[static_cast<size_t>(at)] = transformed[r * g.tile + s] + bias[static_cast<size_t>(channel)];
      }
    }
  }
  store_doubles(out, values);
}

using Values = std::vector<Expr>;

/// The element of `values` at `index`: once the index is a constant, that element alone.
Expr pick(const Expr& index, const Values& values) {
  Expr result = values.back();
  for (size_t i = values.size() - 1; i-- > 0;)
    result = te::select(index == Expr(static_cast<int64_t>(i)), values[i], result);
  return result;
}

constexpr double kNear = kWinogradNear, kFar = kWinogradFar;
constexpr double kNear2 = kNear * kNear, kFar2 = kFar * kFar;

/// value * factor + sum, rounded once in f32.
Expr multiply_add(const Expr& value, double factor, const Expr& sum) {
  const Expr constant = constant_like(value, factor);
  return value->type.dtype == DType::kFloat32 ? te::fma(value, constant, sum) : value * constant + sum;
}

/// Bᵀ d. What rows share is one node.
Values input_rows(const Values& d) {
  if (d.size() == 4) return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
  const Expr near_even = multiply_add(d[2], -kFar2, d[4]), near_odd = multiply_add(d[1], -kFar2, d[3]);
  const Expr far_even = multiply_add(d[2], -kNear2, d[4]), far_odd = multiply_add(d[1], -kNear2, d[3]);
  return {multiply_add(d[0], kNear2 * kFar2, multiply_add(d[2], -kNear2 - kFar2, d[4])),
          multiply_add(near_odd, kNear, near_even),
          multiply_add(near_odd, -kNear, near_even),
          multiply_add(far_odd, kFar, far_even),
          multiply_add(far_odd, -kFar, far_even),
          multiply_add(d[1], kNear2 * kFar2, multiply_add(d[3], -kNear2 - kFar2, d[5]))};
}

/// Aᵀ m.
Values output_rows(const Values& m) {
  if (m.size() == 4) return {m[0] + m[1] + m[2], m[1] - m[2] - m[3]};
  const Expr a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
  return {m[0] + a + c, multiply_add(b, kNear, constant_like(d, kFar) * d),
          multiply_add(a, kNear2, constant_like(c, kFar2) * c),
          multiply_add(b, kNear2 * kNear, multiply_add(d, kFar2 * kFar, m[5]))};
}

/// `from` [rows, blocks, tiles, columns, lanes] transformed along its rows (`axis` 0) or its columns (`axis`
/// 3). A row's columns lie side by side, so that what is written for one tile is in few pages.
te::Tensor transform_stage(const std::string& name, const te::Tensor& from, size_t axis, int64_t extent,
                           const std::function<Values(const Values&)>& rows) {
  std::vector<Expr> shape = from->shape;
  const int64_t taps = *te::as_int(shape[axis]);
  shape[axis] = Expr(extent);
  return te::compute(name, shape, [&](const Values& axes) {
    Values taken;
    for (int64_t k = 0; k < taps; ++k) taken.push_back(te::read(from, replaced(axes, axis, Expr(k))));
    return pick(axes[axis], rows(taken));
  });
}

/// The windows of all tiles: [points, in_blocks, tiles, points, lanes].
te::Tensor window_stage(const std::string& name, const te::Tensor& x, const SymGeometry& g) {
  const ir::SymShape shape = {g.points, g.in_blocks, g.tiles(), g.points, g.lanes};
  const bool is_single = is_one(g.batch);
  return te::compute(name, shape.exprs(), [&](const Values& axes) {
    const Expr& tile = axes[2];
    const Expr line = te::floordiv(tile, Expr(g.tile_columns));
    const Expr row = is_single ? line : te::floormod(line, Expr(g.tile_rows));
    // A block of tiles may end past the last image: the index stays in bounds by itself.
    const Expr image =
        is_single ? Expr(0)
                  : te::min(te::floordiv(tile, Expr(g.tile_columns * g.tile_rows)), Expr(g.batch - 1));
    const Expr y = row * Expr(g.tile) + axes[0] - Expr(g.pad_top);
    const Expr z = te::floormod(tile, Expr(g.tile_columns)) * Expr(g.tile) + axes[3] - Expr(g.pad_left);
    const Expr value =
        te::read(x, {image, axes[1], clamp_index(y, g.height), clamp_index(z, g.width), axes[4]});
    return te::select(te::logical_and(in_range(y, g.height), in_range(z, g.width)), value,
                      constant_like(value, 0));
  });
}

/// Of whole tiles: what a tile gives depends on all of its inputs where u is no transform of weights.
bool part(ir::PartContext& context) {
  const ir::Part& wanted = context.wanted;
  const int64_t tile = attr_int(context.attrs, "tile"), extent = context.output.shape[wanted.axis];
  const bool is_tiles = wanted.begin % tile == 0 && (wanted.end % tile == 0 || wanted.end == extent);
  return (wanted.axis == 0 || is_tiles) && part_of_windows(context, read_window(context.attrs, Shape{3, 3}));
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& x = context.input_types[0].shape;
  const SymGeometry g = read_geometry(context.attrs, x, Shape(context.input_types[1].shape));
  const std::string& name = context.name;
  if (is_empty(out.shape) || is_empty(x)) {
    const bool biased = context.inputs.size() > 2 && context.inputs[2] != nullptr;
    return {compute_safe(name, out.shape, out.dtype, [&](const Values& axes) {
      if (!biased) return te::imm_like({out.dtype, 1}, 0);
      return te::read(context.inputs[2], {axes[1] * Expr(g.lanes) + axes[4]});
    })};
  }
  const te::Tensor window = window_stage(name + "_window", context.inputs[0], g);
  const te::Tensor half = transform_stage(name + "_rows", window, 0, g.points, input_rows);
  const te::Tensor v = transform_stage(name + "_v", half, 3, g.points, input_rows);
  const te::Tensor m = te::reduce(
      name, te::ReduceOp::kSum, ir::SymShape{g.points, g.out_blocks, g.tiles(), g.points, g.lanes}.exprs(),
      {Expr(g.in_blocks), Expr(g.lanes)}, [&](const Values& axes, const Values& channel) {
        const Expr column = te::floormod(axes[1], Expr(g.group)) * Expr(g.lanes) + axes[4];
        return te::read(v, {axes[0], channel[0], axes[2], axes[3], channel[1]}) *
               te::read(context.inputs[1],
                        {axes[0] * Expr(g.points) + axes[3], te::floordiv(axes[1], Expr(g.group)),
                         channel[0] * Expr(g.lanes) + channel[1], column});
      });
  const te::Tensor left = transform_stage(name + "_left", m, 0, g.tile, output_rows);
  const te::Tensor y = transform_stage(name + "_y", left, 3, g.tile, output_rows);
  return {te::compute(name + "_out", out.shape.exprs(), [&](const Values& axes) {
    const Expr row = te::floordiv(axes[2], Expr(g.tile)), column = te::floordiv(axes[3], Expr(g.tile));
    const Expr tile = (axes[0] * Expr(g.tile_rows) + row) * Expr(g.tile_columns) + column;
    Expr value = te::read(y, {te::floormod(axes[2], Expr(g.tile)), axes[1], tile,
                              te::floormod(axes[3], Expr(g.tile)), axes[4]});
    if (context.inputs.size() < 3 || context.inputs[2] == nullptr) return value;
    return value + te::read(context.inputs[2], {axes[1] * Expr(g.lanes) + axes[4]});
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "conv_winograd";
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.pattern = ir::Pattern::kComplex;
  // F(4,3) in f32: the transforms cost some bits more than a direct sum.
  def.tolerance = 2e-5;
  def.infer = &infer;
  def.reference = &reference;
  def.part = &part;
  def.compute = &compute;
  def.doc =
      "3x3 convolution, stride 1; inputs x [N,C/b,H,W,b], u [(tile+2)^2,K/(k*b),C,k*b] (weights transformed "
      "by winograd_weights), bias [K] (optional); attributes tile (2 or 4), pads (ints, begins then ends, "
      "0); gives [N,K/b,OH,OW,b]";
  return {def};
}

}  // namespace tensormill::ops::conv_winograd_ops
