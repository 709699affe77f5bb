#include "compiler/schedule/templates/register_tile.h"

#include <algorithm>

namespace tensormill::schedule {

namespace {

// Cycles of one tile's step along the depth: two multiply-adds or two loads a cycle, at least the latency of
// a multiply-add. Loads and what comes from the L2 cache take place beside them, but not for nothing: the
// shares are those that rank tiles of AVX-512 by their times (bench/README.md, "Transformers").
double step_cycles(int64_t rows, int64_t vectors, int64_t vector_bytes) {
  constexpr double kLatency = 4, kLoadShare = 0.2, kL2Bytes = 256;
  const double products = static_cast<double>(rows * vectors) / 2;
  const double loads = static_cast<double>(rows + vectors);
  const double bytes = static_cast<double>(vectors * vector_bytes + rows * 4);
  return std::max({products, loads / 2, kLatency}) + loads * kLoadShare + bytes / kL2Bytes;
}

bool reads_in_place(const Builder& builder, const std::string& reader, const std::string& stage) {
  const Shape shape = builder.stage(stage).shape;
  if (builder.stage(reader).shape != shape || builder.stage(reader).reduction) return false;
  const Shape strides = row_major_strides(shape);
  for (const Access& access : builder.accesses(reader)) {
    if (access.tensor != builder.stage(stage).tensor.get()) continue;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (access.irregular[d] || (shape[d] != 1 && access.stride[d] != strides[d])) return false;
    }
  }
  return true;
}

}  // namespace

// Accumulators, one row of vectors and a broadcast element share the registers.
RegisterTile choose_tile(int64_t rows, int64_t blocks, bool divides, const target::CpuFacts& facts) {
  constexpr double kTail = 2;  // a loop of its own
  // One row reads its panels once and waits for memory: no more of them beside each other than hide the
  // latency of the products.
  const int64_t widest = rows == 1 && facts.products_per_cycle == 1 ? 4 : 8;
  RegisterTile best;
  const int64_t bytes = facts.vector_bits / 8;
  for (int64_t vectors = 1; vectors <= std::min(blocks, widest); ++vectors) {
    const int64_t most = (facts.vector_registers - 1 - vectors) / vectors;
    const double panels = static_cast<double>((blocks + vectors - 1) / vectors);
    for (int64_t height = 1; height <= std::min<int64_t>(most, rows); ++height) {
      const int64_t rest = rows % height;
      if (divides && rest != 0) continue;
      double cycles = static_cast<double>(rows / height) * step_cycles(height, vectors, bytes);
      if (rest != 0) cycles += step_cycles(rest, vectors, bytes) + kTail;
      if (cycles * panels < best.cycles) best = {height, vectors, cycles * panels};
    }
  }
  return best;
}

Anchor make_anchor(Builder& builder, const std::string& name) {
  const std::vector<std::string> readers = builder.readers(name);
  const bool fused = !builder.stage(name).is_output && readers.size() == 1 &&
                     builder.stage(name).dtypes.size() == 1 && builder.stage(readers[0]).relations.empty() &&
                     reads_in_place(builder, readers[0], name);
  if (fused) return {readers[0], name};
  builder.step("cache_write", {name});
  return {name, name + ".c"};
}

Anchor only_reduction(const Builder& builder) {
  Anchor found;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if ((stage.reduction && !found.stage.empty()) || (stage.is_output && !found.root.empty())) return {};
    if (stage.reduction) found.stage = name;
    if (stage.is_output) found.root = name;
  }
  return found.stage.empty() || found.root.empty() ? Anchor{} : found;
}

std::vector<std::string> tune_unroll(Builder& builder, const std::string& stage, const std::string& axis,
                                     const std::string& knob, int64_t analytic, int64_t most) {
  const int64_t extent = builder.extent(stage, axis);
  const std::vector<int64_t> copies = divisors(extent, most);
  const int64_t chosen = copies.size() > 1 ? builder.knob(knob, analytic, copies) : analytic;
  if (chosen <= 1) return {axis};
  if (chosen == extent) {
    builder.step("unroll", {stage, axis});
    return {axis};
  }
  builder.step("split", {stage, axis, std::to_string(chosen)});
  builder.step("unroll", {stage, axis + ".i"});
  return {axis + ".o", axis + ".i"};
}

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

void unroll_tile(Builder& builder, const std::string& stage, const std::vector<std::string>& axes,
                 const std::string& lane) {
  for (const std::string& axis : axes) builder.step("unroll", {stage, axis});
  builder.step("vectorize", {stage, lane});
}

void hold_in_registers(Builder& builder, const std::string& stage, const std::string& consumer,
                       const std::string& axis) {
  builder.step("compute_at", {stage, consumer, axis});
  builder.step("store_in", {stage, "register"});
}

}  // namespace tensormill::schedule
