#include "compiler/tune/traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tensormill::tune {

namespace {

constexpr double kLineBytes = 64;
constexpr double kElementsPerCycle = 2;  // loads of one element for all lanes
constexpr double kLatency = 4;           // of a fused multiply-add
constexpr double kEntryCycles =
    6;  // of a loop: its first iteration waits, its end is mispredicted now and then

struct Moves {
  double step = 1;
  double extent = 1;
};

/// Loops that move the access, by ascending step.
std::vector<Moves> moves_of(const NestAccess& access, const std::vector<NestLoop>& loops, size_t first) {
  std::vector<Moves> moves;
  for (size_t i = first; i < loops.size(); ++i) {
    if (access.steps[i] != 0 && loops[i].extent > 1)
      moves.push_back({static_cast<double>(std::abs(access.steps[i])), loops[i].extent});
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const Moves& a, const Moves& b) { return a.step < b.step; });
  return moves;
}

/// The body's loops of one access.
struct Body {
  double copies = 1;     ///< distinct places in unrolled loops
  double lanes = 1;      ///< of vectorized loops
  double lane_step = 0;  ///< along them
};

Body body_of(const NestAccess& access, const std::vector<NestLoop>& loops) {
  Body body;
  for (size_t i = first_of_body(loops); i < loops.size(); ++i) {
    if (loops[i].kind == te::ForKind::kVectorized) {
      body.lanes *= loops[i].extent;
      body.lane_step = static_cast<double>(std::abs(access.steps[i]));
    } else if (loops[i].kind == te::ForKind::kUnrolled && access.steps[i] != 0) {
      body.copies *= loops[i].extent;
    }
  }
  return body;
}

/// Cycles of the loads or stores of a copy of the body: vectors, one element for all lanes, or an element a
/// lane.
double cycles_of_moves(const Body& body, double chunks, double vectors_per_cycle) {
  if (body.lane_step == 1) return body.copies * chunks / vectors_per_cycle;
  return body.copies * (body.lane_step == 0 ? 1 : body.lanes) / kElementsPerCycle;
}

}  // namespace

size_t first_of_body(const std::vector<NestLoop>& loops) {
  size_t body = loops.size();
  while (body > 0 &&
         (loops[body - 1].kind == te::ForKind::kUnrolled || loops[body - 1].kind == te::ForKind::kVectorized))
    --body;
  return body;
}

double distinct_elements(const NestAccess& access, const std::vector<NestLoop>& loops, size_t first) {
  double unit = 1, run = 1, repeats = 1;
  for (const Moves& move : moves_of(access, loops, first)) {
    if (move.step <= unit * run) {
      run += std::floor(move.step / unit) * (move.extent - 1);
    } else {
      repeats *= run;
      unit = move.step;
      run = move.extent;
    }
  }
  return std::min(repeats * run, access.buffer_elements);
}

double distinct_bytes(const NestAccess& access, const std::vector<NestLoop>& loops, size_t first) {
  const std::vector<Moves> moves = moves_of(access, loops, first);
  const double elements = distinct_elements(access, loops, first);
  const double apart = moves.empty() ? 1 : moves[0].step;
  return elements * std::min(access.element_bytes * apart, kLineBytes);
}

double bytes_moved(const std::vector<NestAccess>& accesses, const std::vector<NestLoop>& loops,
                   double capacity) {
  size_t fits = loops.size();
  for (; fits > 0; --fits) {
    double touched = 0;
    for (const NestAccess& access : accesses)
      touched += access.in_register ? 0 : distinct_bytes(access, loops, fits - 1);
    if (touched > capacity) break;
  }
  double moved = 0;
  for (const NestAccess& access : accesses) {
    if (access.in_register) continue;
    double bytes = distinct_bytes(access, loops, fits);
    size_t outer = fits;
    while (outer > 0 && (access.steps[outer - 1] == 0 || loops[outer - 1].extent <= 1)) --outer;
    for (size_t i = 0; i < outer; ++i) bytes *= loops[i].extent;
    moved += bytes;
  }
  return moved;
}

PortCycles port_cycles(const std::vector<NestAccess>& accesses, const std::vector<NestLoop>& loops,
                       double operations, const target::CpuFacts& facts) {
  double lanes = 1, copies = 1, iterations = 1, entries = 1;
  const size_t body = first_of_body(loops);
  for (size_t i = 0; i < loops.size(); ++i) {
    if (i >= body && loops[i].kind == te::ForKind::kVectorized) {
      lanes *= loops[i].extent;
    } else if (i >= body && loops[i].kind == te::ForKind::kUnrolled) {
      copies *= loops[i].extent;
    } else {
      iterations *= loops[i].extent;
      if (i + 1 != body) entries *= loops[i].extent;
    }
  }
  const double chunks = std::max(1.0, std::ceil(lanes * accesses[0].element_bytes * 8 / facts.vector_bits));
  PortCycles cycles;
  const double vectors_per_cycle = facts.products_per_cycle;
  double moves = 0, operands = 0;
  bool accumulates = false;
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Body one = body_of(accesses[i], loops);
    // What accumulates stays in registers, or is read where it is written.
    accumulates = accumulates || (i > 0 && accesses[i].steps == accesses[0].steps &&
                                  accesses[i].buffer_elements == accesses[0].buffer_elements);
    if (accesses[i].in_register) {
      if (i == 0) cycles.vectors += one.copies * chunks;
      continue;
    }
    moves += cycles_of_moves(one, chunks, vectors_per_cycle);
    if (i > 0 && one.lane_step != 0) operands = std::max(operands, one.copies * chunks);
  }
  cycles.vectors += operands + 1;
  const double spilled = std::max(0.0, cycles.vectors - facts.vector_registers);
  const double arithmetic = copies * chunks * operations / facts.products_per_cycle;
  const double ports =
      std::max({arithmetic, moves + 2 * spilled / vectors_per_cycle, accumulates ? kLatency : 1.0});
  cycles.ideal = arithmetic * iterations;
  cycles.ports = ports * iterations;
  cycles.entries = entries * kEntryCycles;
  return cycles;
}

}  // namespace tensormill::tune
