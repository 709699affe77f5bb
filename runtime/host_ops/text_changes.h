/// Host steps that make of each string another one, or a number (runtime/base/text.h). Thread-safety: pure
/// functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// Groups of a match that a rewrite names, and its other bytes (pattern.h). A backslash at the end or before
/// what is neither digit nor backslash counts as a byte.
struct RewriteParts {
  int64_t groups = 0, bytes = 0;
};
RewriteParts parts_of_rewrite(std::string_view rewrite);

/// x -> each string as attribute "how" says: "lower", "upper" (text_case.h), "ascii_lower", "ascii_upper",
/// "strip" (without white space at its ends).
void change_text(const HostCall& call);
/// x -> each string with attribute "rewrite" in place of what matches attribute "pattern", all of it or,
/// where attribute "all" is 0, the first.
void replace_text(const HostCall& call);
/// x -> i64: the bytes of each string, or, where attribute "letters" is 1, its code points.
void text_length(const HostCall& call);
/// x, first i64, count i64, of one shape -> that part of each string, in bytes or (attribute "letters") code
/// points; a negative first counts from the end, and what is behind the end is left out. Throws
/// Error(kTensorData) where first lies outside of the string, or the part cuts a code point.
void part_of_text(const HostCall& call);
/// x -> i64: of each string the hash (fingerprint.h) that attribute "how" says, modulo attribute "buckets",
/// or, where that is 0, all of its bits: "farm", "murmur", or "sip" with attribute "key" of two integers.
void hash_text(const HostCall& call);

}  // namespace tensormill::host_ops
