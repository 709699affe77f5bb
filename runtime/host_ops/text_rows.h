/// Host steps between strings and rows of their parts (runtime/base/text.h). Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// x [n,k], counts i64 [n] -> strings [n]: the first strings of each row, as many as its count, which is
/// within [0,k], says, with attribute "separator" between them.
void join_row(const HostCall& call);
/// x [n] -> the code points i64 [n,width] of each string, zeros behind them, how many these are, i64 [n], and
/// at which byte each begins, i64 [n,width]. What is no UTF-8 is U+FFFD, a byte each.
void points_of_text(const HostCall& call);
/// x i64 [...] -> the string of each code point; of what is none, of U+FFFD.
void letters_of_points(const HostCall& call);

/// Bytes of a code point's string at most.
inline constexpr int64_t kLetterWidth = 4;

}  // namespace tensormill::host_ops
