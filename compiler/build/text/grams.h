/// Strings that are made of neighbours among the parts of a string. Thread-safety: as the graph.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/text/text.h"

namespace tensormill::build {

/// Of places i64 in rows in which n-grams of several lengths stand, those of the first length first: which of
/// the lengths the n-gram there has, the number of lengths behind the last one, and which one of these it is.
/// `counts`: how many of each length the row has, i64, broadcast to the places.
struct PlacedGrams {
  ir::ValueId which, index;
};
PlacedGrams placed_grams(OpBuilder& builder, ir::ValueId places, const std::vector<ir::ValueId>& counts);

/// The strings of rows [n,k], as many of each as counts i64 [n] say, with a separator between them: [n].
ir::ValueId joined_rows(OpBuilder& builder, ir::ValueId table, ir::ValueId counts,
                        const std::string& separator);

/// The code points of strings x [rows], as strings of their own.
TextParts letter_parts(OpBuilder& builder, ir::ValueId x);
/// Of each row of parts its n-grams of the lengths, 1 or more each, one length after the other.
TextParts gram_parts(OpBuilder& builder, const TextParts& parts, const std::vector<int64_t>& lengths,
                     const std::string& separator);

}  // namespace tensormill::build
