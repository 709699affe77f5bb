// Winograd convolution (compiler/ops/conv_winograd.cc): V = BᵀdB of a block of tiles for all input channels,
// then a matrix product for each point with a register tile of tiles x output blocks, then Y = AᵀMA with the
// epilogue in registers. V and M of a block stay in L2.
#include <algorithm>

#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

namespace {

/// The stages of the program, by what they do.
struct Parts {
  std::string window, half, input;  ///< d, Bᵀd, V: [points, points, in blocks, tiles, lanes]
  std::string product;              ///< M: [points, points, out blocks, tiles, lanes]
  std::string left, output;         ///< AᵀM, Y
  std::string root;                 ///< [batch, out blocks, rows, columns, lanes]
};

/// The one stage that `name` reads and that is computed; "" when there is none or more than one.
std::string only_producer(const Builder& builder, const std::string& name) {
  std::string found;
  for (const std::string& other : builder.stage_names()) {
    if (!contains(builder.readers(other), name)) continue;
    if (!found.empty()) return "";
    found = other;
  }
  return found;
}

std::string only_reader(const Builder& builder, const std::string& name) {
  const std::vector<std::string> readers = builder.readers(name);
  return readers.size() == 1 ? readers[0] : "";
}

/// Finds the parts, having inlined what follows Y up to the output. False when the program has another form.
bool find_parts(Builder& builder, Parts& parts) {
  std::vector<std::string> outputs;
  for (const std::string& name : builder.stage_names()) {
    if (builder.stage(name).is_output) outputs.push_back(name);
    if (!builder.stage(name).reduction) continue;
    if (!parts.product.empty()) return false;
    parts.product = name;
  }
  if (parts.product.empty() || outputs.size() != 1) return false;
  parts.root = outputs[0];
  parts.input = only_producer(builder, parts.product);
  parts.half = parts.input.empty() ? "" : only_producer(builder, parts.input);
  parts.window = parts.half.empty() ? "" : only_producer(builder, parts.half);
  parts.left = only_reader(builder, parts.product);
  parts.output = parts.left.empty() ? "" : only_reader(builder, parts.left);
  if (parts.window.empty() || parts.output.empty() || parts.output == parts.root) return false;
  for (const std::string& name : {parts.window, parts.product, parts.output, parts.root}) {
    if (builder.stage(name).shape.size() != 5) return false;
  }
  builder.inline_injective({parts.window, parts.half, parts.input, parts.left, parts.output});
  return true;
}

/// How the loops are cut.
struct Cut {
  int64_t tile;   ///< side of a tile of outputs
  int64_t group;  ///< output blocks whose weights lie side by side
  int64_t tiles;  ///< of the whole output
  int64_t block;  ///< tiles whose V and M are held at a time
  int64_t rows;   ///< tiles of a register tile
  bool whole;     ///< one block: V of all tiles is computed first, by all workers
};

int64_t largest_divisor(int64_t extent, int64_t limit) {
  for (int64_t factor = std::min(extent, limit); factor > 1; --factor) {
    if (extent % factor == 0) return factor;
  }
  return 1;
}

}  // namespace

bool template_winograd(Builder& builder) {
  Parts parts;
  if (!find_parts(builder, parts)) return false;
  const Stage& input = builder.stage(parts.input);
  const Stage& product = builder.stage(parts.product);
  Cut cut{};
  cut.tile = builder.stage(parts.output).shape[0];
  cut.tiles = product.shape[3];
  const int64_t lanes = product.shape[4];
  (void)input;
  cut.group = 2;
  cut.rows = largest_divisor(cut.tiles, 14);
  cut.block = cut.rows;
  const std::string& root = parts.root;
  const std::string tile = std::to_string(cut.tile);
  builder.step("split", {root, "i2", tile});
  builder.step("split", {root, "i3", tile});
  builder.step("reorder", {root, "i0", "i2.o", "i3.o", "i1", "i2.i", "i3.i", "i4"});
  const std::string tiles = builder.fuse(root, {"i0", "i2.o", "i3.o"});
  builder.step("split", {root, tiles, std::to_string(cut.block)});
  const std::string outer = tiles + ".o", inner = tiles + ".i";
  builder.step("reorder", {root, outer, "i1", inner, "i2.i", "i3.i", "i4"});
  builder.step("parallel", {root, outer});
  builder.step("unroll", {root, "i2.i"});
  builder.step("unroll", {root, "i3.i"});
  builder.step("vectorize", {root, "i4"});
  for (const std::string& name : {parts.output, parts.left}) {
    builder.step("unroll", {name, "i0"});
    builder.step("unroll", {name, "i1"});
    builder.step("vectorize", {name, "i4"});
    builder.step("compute_at", {name, root, inner});
    builder.step("store_in", {name, "register"});
  }
  builder.step("reorder", {parts.left, "i1", "i0"});

  const std::string m = parts.product, c = m + ".c";
  builder.step("cache_write", {m});
  builder.step("compute_at", {m, root, outer});
  for (const std::string& name : {m, c}) {
    builder.step("split", {name, "i2", std::to_string(cut.group)});
    builder.step("split", {name, "i3", std::to_string(cut.rows)});
  }
  builder.step("reorder", {m, "i0", "i1", "i2.o", "i3.o", "i3.i", "i2.i", "i4"});
  builder.step("reorder", {c, "i0", "i1", "i2.o", "i3.o", "r0", "r1", "i3.i", "i2.i", "i4"});
  for (const std::string& name : {m, c}) {
    builder.step("unroll", {name, "i3.i"});
    builder.step("unroll", {name, "i2.i"});
    builder.step("vectorize", {name, "i4"});
  }
  builder.step("compute_at", {c, m, "i3.o"});
  builder.step("store_in", {c, "register"});

  const std::string& v = parts.input;
  builder.step("reorder", {v, "i2", "i3", "i0", "i1", "i4"});
  builder.step("unroll", {v, "i0"});
  builder.step("unroll", {v, "i1"});
  builder.step("vectorize", {v, "i4"});
  builder.step("compute_at", {v, root, outer});
  for (const std::string& name : {parts.half, parts.window}) {
    builder.step("unroll", {name, "i0"});
    builder.step("unroll", {name, "i1"});
    builder.step("vectorize", {name, "i4"});
    builder.step("compute_at", {name, v, "i3"});
    builder.step("store_in", {name, "register"});
  }
  (void)lanes;
  return true;
}

}  // namespace tensormill::schedule
