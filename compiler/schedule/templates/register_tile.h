/// What templates of products share: how large a tile of results stays in registers, and which stages it is
/// made of. Thread-safety: pure functions; a builder belongs to one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

struct RegisterTile {
  int64_t rows = 1;
  int64_t vectors = 1;
  double cycles = std::numeric_limits<double>::infinity();  ///< of all tiles, per step along the depth
};

/// The tile for rows x blocks vectors of sums of products, by an estimate of cycles; with `divides` only
/// tiles that leave no tail of rows.
RegisterTile choose_tile(int64_t rows, int64_t blocks, bool divides, const target::CpuFacts& facts);

/// What a tile is cut from: `root` owns the loops, `stage` accumulates inside them.
struct Anchor {
  std::string root;
  std::string stage;
};
/// The stage that reads reduction `name` in place, or, where there is none, `name` as a copy of a new
/// accumulating stage.
Anchor make_anchor(Builder& builder, const std::string& name);
/// The program's one output and its one reduction, which may be the same stage. Empty names where there is no
/// such pair: no or several outputs, no or several reductions.
Anchor only_reduction(const Builder& builder);

/// How many copies of a loop over `extent` steps are written out, as a knob: divisors of it up to `most`.
/// Splits the axis, unrolls the copies and returns the axes in its place, outermost first.
std::vector<std::string> tune_unroll(Builder& builder, const std::string& stage, const std::string& axis,
                                     const std::string& knob, int64_t analytic, int64_t most);

/// The one stage that `name` reads, or that reads it; "" where there is none or more than one.
std::string only_producer(const Builder& builder, const std::string& name);
std::string only_reader(const Builder& builder, const std::string& name);

/// Writes the iterations of `axes` of a stage out, its last axis in vectors.
void unroll_tile(Builder& builder, const std::string& stage, const std::vector<std::string>& axes,
                 const std::string& lane);
/// Computes a stage inside the consumer's loop `axis`, in registers.
void hold_in_registers(Builder& builder, const std::string& stage, const std::string& consumer,
                       const std::string& axis);

}  // namespace tensormill::schedule
