/// Host steps on strings (runtime/base/text.h). Results whose extent depends on data are stored as
/// data_steps.h says. Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// Bytes that the text of a number may have.
inline constexpr int64_t kNumberWidth = 32;
/// Parts that a split string of `width` bytes can have. `limit`: attribute "maxsplit", negative for none.
int64_t max_parts(int64_t width, int64_t delimiter_bytes, int64_t limit);

/// Numbers -> strings: the shortest decimal form that reads back as the same number, "NaN", "INF", "-INF".
void text_from_numbers(const HostCall& call);
/// Strings -> numbers of attribute "to" (a name of dtype.def): decimal forms, those words in any case,
/// and 0 for an empty string. Throws Error(kTensorData) for anything else.
void numbers_from_text(const HostCall& call);
/// a, b of one shape -> bool.
void equal_text(const HostCall& call);
/// x -> bool: whether all of each string matches attribute "pattern" (pattern.h).
void match_text(const HostCall& call);
/// x, keys [k] in rising order of their bytes -> i64: the position of each string, k where it is not there.
void find_text(const HostCall& call);
/// a, b of one shape -> each string of a with that of b behind it.
void join_text(const HostCall& call);
/// x [...] -> its parts [..., most] with "" behind them, i64 [...] how many each has, and their count (i64
/// [1]) as data_steps.h says. Attributes "delimiter" ("": runs of white space, or of the bytes of attribute
/// "space") and "maxsplit".
void split_text(const HostCall& call);
/// Tokens that a string of `width` bytes can have, those that mark its ends too.
int64_t max_tokens(int64_t width, bool marks);
/// x [...], patterns [p] -> tokens [..., most] and their largest number (i64 [1]), attribute "pad" behind
/// those of each string. Attribute "form": "expression": what matches the only pattern; "separators": what is
/// between matches of one after the other; "letters": each letter. Tokens shorter than "least" letters are
/// left out; "mark": the bytes 2 and 3 stand around those of each string, if any string has a token.
void tokenize_text(const HostCall& call);
/// x [c] or [1,c], stop words [s] -> the strings that are no stop words, at least one, and their count.
/// Attributes "case" (0: as it is, 1: lower, 2: upper) and "case_sensitive".
void normalize_text(const HostCall& call);

}  // namespace tensormill::host_ops
