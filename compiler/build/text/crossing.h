/// Hashes of combinations, as TensorFlow's crossed features have them. Thread-safety: as the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// The key that combinations have where none is given.
inline constexpr uint64_t kCrossingKey = 0xdecafcaffe;

/// Of tables [rows,n], [rows,m] ... of strings or integers each combination of one column of each, those of
/// the last table next to each other, as a bucket i64 [rows,n * m ...] of `buckets`: FarmHash's fingerprints
/// of the strings, or the integers, mixed one after the other into the key. Throws Error(kInvalidModel) for
/// what are no tables of as many rows.
ir::ValueId crossed_tables(OpBuilder& builder, const std::vector<ir::ValueId>& tables, uint64_t key,
                           uint64_t buckets);

}  // namespace tensormill::build
