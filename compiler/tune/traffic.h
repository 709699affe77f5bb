/// What a store in a loop nest costs by a simple model of a core: cycles of its ports, and bytes that pass
/// between the levels of the cache. The cost model's features are made of it. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/target/target.h"
#include "compiler/te/stmt.h"

namespace tensormill::tune {

struct NestLoop {
  te::Var var;
  double extent = 1;
  te::ForKind kind = te::ForKind::kSerial;
};

/// One place that a store writes or reads.
struct NestAccess {
  bool in_register = false;
  double element_bytes = 4;
  double buffer_elements = 1;
  std::vector<int64_t> steps;  ///< by loop, outermost first, in elements; 0 where the loop does not move it
};

/// The first loop of the body: the unrolled and vectorized ones inside of the innermost other one.
size_t first_of_body(const std::vector<NestLoop>& loops);

/// Distinct elements that the loops from `first` on touch, at most the buffer's. Loops whose steps overlap (a
/// window that slides) count once: by ascending step, each either continues the run of the one before or
/// repeats it somewhere else.
double distinct_elements(const NestAccess& access, const std::vector<NestLoop>& loops, size_t first);

/// Bytes of whole cache lines instead.
double distinct_bytes(const NestAccess& access, const std::vector<NestLoop>& loops, size_t first);

/// Bytes that all runs of the loops move into a cache of `capacity` bytes. The outermost loops whose bytes
/// fit are filled once for each run of the loops around them, but for what those next to them do not move: it
/// is used again before it could be replaced.
double bytes_moved(const std::vector<NestAccess>& accesses, const std::vector<NestLoop>& loops,
                   double capacity);

struct PortCycles {
  double ideal = 0;    ///< of the arithmetic alone, as many operations a cycle as the core starts
  double ports = 0;    ///< the slowest of arithmetic, loads and stores, and the latency of what accumulates
  double entries = 0;  ///< of starting innermost loops
  double vectors = 0;  ///< registers that a copy of the body needs at once
};

/// `accesses`: the store's own first. `operations`: arithmetic of one run, weighted by what it costs.
/// What does not fit the registers is stored and loaded again. A core moves as many whole vectors a cycle as
/// it multiplies: where vectors are wider than its paths both take two cycles. Of a loop only a part of the
/// copies may run (live_bodies.h).
PortCycles port_cycles(const std::vector<NestAccess>& accesses, const std::vector<NestLoop>& loops,
                       double operations, const target::CpuFacts& facts);

}  // namespace tensormill::tune
