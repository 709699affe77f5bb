#include "api/http/trace_context.h"

#include <array>

#include "runtime/base/hex.h"

namespace tensormill::http {

std::string trace_id_of(std::string_view traceparent) {
  // version "-" trace-id "-" parent-id "-" flags; later versions may add fields.
  constexpr std::array<size_t, 4> kSizes = {2, 32, 16, 2};
  std::array<std::string_view, 4> fields;
  std::string_view rest = traceparent;
  for (size_t i = 0; i < fields.size(); ++i) {
    fields[i] = rest.substr(0, kSizes[i]);
    if (fields[i].size() != kSizes[i] || !is_hex(fields[i])) return "";
    rest.remove_prefix(kSizes[i]);
    if (i + 1 == fields.size()) break;
    if (!rest.starts_with('-')) return "";
    rest.remove_prefix(1);
  }
  const bool more_is_fine = fields[0] != "00" && rest.starts_with('-');
  const auto is_zero = [](std::string_view text) {
    return text.find_first_not_of('0') == std::string_view::npos;
  };
  if (fields[0] == "ff" || (!rest.empty() && !more_is_fine) || is_zero(fields[1]) || is_zero(fields[2]))
    return "";
  return std::string(fields[1]);
}

std::string recorded_trace_of(const Headers& headers) {
  constexpr size_t kFlags = 53;
  const std::string_view field = headers.get("traceparent").value_or("");
  std::string trace = trace_id_of(field);
  // The last bit of the flags' last digit: whoever began the trace records it.
  return trace.empty() || hex_digit(field[kFlags + 1]) % 2 == 0 ? "" : trace;
}

}  // namespace tensormill::http
