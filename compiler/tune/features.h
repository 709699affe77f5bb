/// What the cost model sees of a candidate: numbers of its loop nest before lowering, without running it.
///
/// For each of the three stores that run most often, most first (zeros where there are fewer), as
/// log2(1 + x) unless stated:
///   loops: runs of the store; product of its serial, unrolled, vectorized and parallel extents; depth of its
///   nest (plain); extents of the innermost and of the second innermost serial loop;
///   arithmetic of one run: float additions, products and fused ones, divisions and roots, vector math,
///   integer, comparisons and selections, loads;
///   reuse: runs inside of the outermost loop whose touched bytes still fit half of L1, and of L2; bytes
///   touched by all loops;
///   the body that is straight code (unrolled and vectorized loops inside of the innermost other one): its
///   runs in vectors, its loads from memory, those of one element for all lanes among them, runs for each
///   load (plain); conditions around it (plain): all, quotients and remainders that they ask for, those
///   inside of the innermost serial loop; what they leave of the body (live_bodies.h): the mean share of its
///   runs (plain), and the runs of the smallest piece; cycles (traffic.h), of a piece those that it takes:
///   vectors that the body needs at once for each register of the target (plain), and log2 of shares, within
///   ±16: the ports' cycles of all with the starts of loops, cycles of bytes from the second cache and from
///   beyond it of the ports' cycles; the four accesses that touch most bytes, the store's own first: bytes
///   touched, runs for each distinct element, step along the vectorized and along the innermost serial loop
///   in elements, 1 when in registers.
/// And for the whole nest: stores, loops, unrolled copies of all stores, bytes of temporaries in memory, runs
/// of all stores; vectors in registers for each register of the target (plain); tasks of the parallel loops;
/// share of the cores that the last round of tasks keeps busy (plain); cycles of all stores by ports, starts
/// of loops and caches, added up, and with caches beside the ports, as they are and (log2 of shares) over the
/// cycles of the arithmetic alone; those of the ports over the same; runs of the stores to memory for each
/// element that they write (plain).
///
/// Steps are found by evaluating an index at the loops' first iterations and at the second of one loop; what
/// depends on data counts as 0. Distinct elements: traffic.h. After the features of Zheng et al., "Ansor"
/// (OSDI 2020), appendix B, cut to what a CPU's register tiles differ in. Thread-safety: pure function.
#pragma once

#include <vector>

#include "compiler/target/target.h"
#include "compiler/te/stmt.h"
#include "compiler/tune/records/feature_version.h"

namespace tensormill::tune {

/// kFeatureCount numbers of a function at te::Level::kLoops, in steps of 1/64.
std::vector<float> loop_features(const te::Function& function, const target::CpuFacts& facts);

}  // namespace tensormill::tune
