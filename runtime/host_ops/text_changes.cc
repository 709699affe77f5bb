#include "runtime/host_ops/text_changes.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/host_ops/fingerprint.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/pattern.h"
#include "runtime/host_ops/text_case.h"
#include "runtime/host_ops/text_io.h"

namespace tensormill::host_ops {

namespace {

template <typename Change>
void change_each(const HostCall& call, const Change& change) {
  const Texts x = texts_of(call, 0);
  TextWriter out(call, 0, x.count());
  for (int64_t i = 0; i < x.count(); ++i) out.put(i, change(x[i]));
}

template <typename Measure>
void measure_each(const HostCall& call, const Measure& measure) {
  expect(call, 1, 1);
  const Texts x = texts_of(call, 0);
  auto* out = storage<int64_t>(call, 0, x.count());
  for (int64_t i = 0; i < x.count(); ++i) out[i] = measure(x[i]);
}

std::string_view stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

/// With `distance` added to the bytes first ... last.
std::string moved_bytes(std::string_view text, char first, char last, int distance) {
  std::string result(text);
  for (char& each : result)
    if (each >= first && each <= last) each = static_cast<char>(each + distance);
  return result;
}

int64_t number_at(const HostCall& call, size_t operand, int64_t index) {
  return static_cast<const int64_t*>(call.inputs[operand].data)[index];
}

/// Bytes of the first `count` letters.
size_t bytes_of_letters(std::string_view text, int64_t count) {
  size_t bytes = 0;
  for (; count > 0 && bytes < text.size(); --count) bytes += letter_bytes(text.substr(bytes));
  return bytes;
}

std::string_view part_of(std::string_view text, int64_t first, int64_t count, bool by_letters,
                         int64_t index) {
  const int64_t size = by_letters ? letters_of(text) : static_cast<int64_t>(text.size());
  const int64_t begin = first < 0 ? size + first : first;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kTensorData, "string " + std::to_string(index) + " of " + std::to_string(size) +
                                            (by_letters ? " letters" : " bytes") + ": " + what);
  };
  if (begin < 0 || begin > size) fail("position " + std::to_string(first) + " is outside");
  const int64_t taken = std::min(std::max<int64_t>(count, 0), size - begin);
  if (by_letters) {
    text.remove_prefix(bytes_of_letters(text, begin));
    return text.substr(0, bytes_of_letters(text, taken));
  }
  const std::string_view part = text.substr(static_cast<size_t>(begin), static_cast<size_t>(taken));
  if (!is_utf8(part)) fail("the part cuts a letter");
  return part;
}

}  // namespace

RewriteParts parts_of_rewrite(std::string_view rewrite) {
  RewriteParts parts;
  for (size_t i = 0; i < rewrite.size(); ++i) {
    const bool is_escape = rewrite[i] == '\\' && i + 1 < rewrite.size();
    const bool is_group = is_escape && rewrite[i + 1] >= '0' && rewrite[i + 1] <= '9';
    ++(is_group ? parts.groups : parts.bytes);
    if (is_group || (is_escape && rewrite[i + 1] == '\\')) ++i;
  }
  return parts;
}

void change_text(const HostCall& call) {
  expect(call, 1, 1);
  const std::string how = Attributes(call).text("how");
  if (how == "lower") return change_each(call, &lower_case);
  if (how == "upper") return change_each(call, &upper_case);
  if (how == "strip") return change_each(call, &stripped);
  constexpr int kDistance = 'a' - 'A';
  if (how == "ascii_lower")
    return change_each(call, [](std::string_view text) { return moved_bytes(text, 'A', 'Z', kDistance); });
  require_text(how == "ascii_upper", "no such change");
  change_each(call, [](std::string_view text) { return moved_bytes(text, 'a', 'z', -kDistance); });
}

void replace_text(const HostCall& call) {
  expect(call, 1, 1);
  const Attributes attributes(call);
  const Pattern pattern(attributes.text("pattern"));
  const std::string rewrite = attributes.text("rewrite");
  const bool all = attributes.flag("all");
  change_each(call, [&](std::string_view text) { return pattern.replaced(text, rewrite, all); });
}

void text_length(const HostCall& call) {
  const bool by_letters = Attributes(call).flag("letters");
  measure_each(call, [&](std::string_view text) {
    return by_letters ? letters_of(text) : static_cast<int64_t>(text.size());
  });
}

void part_of_text(const HostCall& call) {
  expect(call, 3, 1);
  const Texts x = texts_of(call, 0);
  for (const size_t operand : {1, 2})
    require_text(call.inputs[operand].dtype == DType::kInt64 && call.inputs[operand].shape == x.shape(),
                 "operands of two shapes");
  const bool by_letters = Attributes(call).flag("letters");
  TextWriter out(call, 0, x.count());
  for (int64_t i = 0; i < x.count(); ++i)
    out.put(i, part_of(x[i], number_at(call, 1, i), number_at(call, 2, i), by_letters, i));
}

void hash_text(const HostCall& call) {
  constexpr uint64_t kMurmurSeed = 0xdecafcaffe;  // TensorFlow's
  const Attributes attributes(call);
  const int64_t buckets = attributes.integer("buckets");
  const std::string how = attributes.text("how");
  require_text(buckets >= 0, "no buckets");
  require_text(how == "farm" || how == "murmur" || how == "sip", "no such hash");
  std::array<uint64_t, 2> key = {};
  if (how == "sip") {
    const std::vector<int64_t> given = attributes.integers("key");
    require_text(given.size() == key.size(), "a key of another size");
    std::copy(given.begin(), given.end(), key.begin());
  }
  measure_each(call, [&](std::string_view text) {
    const uint64_t hash = how == "farm"     ? fingerprint64(text)
                          : how == "murmur" ? murmur_hash(text, kMurmurSeed)
                                            : keyed_hash(text, key);
    return static_cast<int64_t>(buckets == 0 ? hash : hash % static_cast<uint64_t>(buckets));
  });
}

}  // namespace tensormill::host_ops
