#include "runtime/host_ops/text_steps.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/pattern.h"
#include "runtime/host_ops/text_case.h"
#include "runtime/host_ops/text_io.h"

namespace tensormill::host_ops {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

Tensor numbers_of(const TensorView& view) {
  return Tensor(view.dtype, view.shape, nullptr, const_cast<void*>(view.data));
}

template <typename T>
std::string float_text(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  // An exponent where numpy writes one.
  const T size = std::abs(value);
  const bool is_plain = value == 0 || (size >= T(1e-4) && size < T(1e16));
  char text[64];
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  return {text, std::to_chars(text, text + sizeof text, value, format).ptr};
}

std::string number_text(const Tensor& x, int64_t index) {
  if (x.dtype() == DType::kFloat64) return float_text(x.element_as_double(index));
  if (is_float(x.dtype())) return float_text(static_cast<float>(x.element_as_double(index)));
  if (x.dtype() == DType::kUInt64) return std::to_string(static_cast<uint64_t>(x.element_as_int(index)));
  return std::to_string(x.element_as_int(index));
}

/// Whether all of `text` is a number of the type.
template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  return parsed.ptr == end && parsed.ec == std::errc();
}

/// Stores what `text` says; false when that is no number.
bool store_number(Tensor& out, int64_t index, std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-' && text[1] != '+') text.remove_prefix(1);
  if (text.empty()) {
    out.set_element_int(index, 0);
    return true;
  }
  int64_t integer = 0;
  uint64_t natural = 0;
  float single = 0;
  double real = 0;
  if (!is_float(out.dtype()) && text.find_first_of(".eEnNiI") == std::string_view::npos) {
    // Beyond 64 bits nothing is an integer of any type.
    const bool is_integer = parse_whole(text, integer);
    if (!is_integer && !parse_whole(text, natural)) return false;
    out.set_element_int(index, is_integer ? integer : static_cast<int64_t>(natural));
    return true;
  }
  // Directly to float: a detour through double would round twice.
  const bool is_single = out.dtype() == DType::kFloat32;
  if (is_single ? !parse_whole(text, single) : !parse_whole(text, real)) return false;
  out.set_element(index, is_single ? static_cast<double>(single) : real);
  return true;
}

}  // namespace

int64_t max_parts(int64_t width, int64_t delimiter_bytes, int64_t limit) {
  const int64_t most = delimiter_bytes == 0 ? (width + 1) / 2 : width / delimiter_bytes + 1;
  return limit < 0 || limit >= most ? most : limit + 1;
}

void text_from_numbers(const HostCall& call) {
  expect(call, 1, 1);
  const Tensor x = numbers_of(call.inputs[0]);
  TextWriter out(call, 0, x.num_elements());
  for (int64_t i = 0; i < x.num_elements(); ++i) out.put(i, number_text(x, i));
}

void numbers_from_text(const HostCall& call) {
  expect(call, 1, 1);
  const Texts texts = texts_of(call, 0);
  const auto dtype = dtype_from_name(Attributes(call).text("to"));
  require_text(dtype && *dtype != kString, "no type of numbers");
  Tensor out(*dtype, texts.shape(), nullptr, call.outputs[0]);
  require_text(call.output_bytes[0] == out.num_bytes(), "a result of another size");
  for (int64_t i = 0; i < texts.count(); ++i) {
    if (!store_number(out, i, texts[i]))
      throw Error(ErrorCode::kTensorData, "string " + std::to_string(i) + ", \"" +
                                              std::string(texts[i].substr(0, 40)) + "\", is no number");
  }
}

void equal_text(const HostCall& call) {
  expect(call, 2, 1);
  const Texts a = texts_of(call, 0), b = texts_of(call, 1);
  require_text(a.shape() == b.shape(), "operands of two shapes");
  auto* out = storage<uint8_t>(call, 0, a.count());
  for (int64_t i = 0; i < a.count(); ++i) out[i] = a[i] == b[i] ? 1 : 0;
}

void match_text(const HostCall& call) {
  expect(call, 1, 1);
  const Texts x = texts_of(call, 0);
  const Pattern pattern(Attributes(call).text("pattern"));
  auto* out = storage<uint8_t>(call, 0, x.count());
  for (int64_t i = 0; i < x.count(); ++i) out[i] = pattern.matches(x[i]) ? 1 : 0;
}

void find_text(const HostCall& call) {
  expect(call, 2, 1);
  const Texts x = texts_of(call, 0), keys = texts_of(call, 1);
  auto* out = storage<int64_t>(call, 0, x.count());
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t low = 0, high = keys.count();
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (keys[middle] < x[i]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    out[i] = low < keys.count() && keys[low] == x[i] ? low : keys.count();
  }
}

void join_text(const HostCall& call) {
  expect(call, 2, 1);
  const Texts a = texts_of(call, 0), b = texts_of(call, 1);
  require_text(a.shape() == b.shape(), "operands of two shapes");
  TextWriter out(call, 0, a.count());
  for (int64_t i = 0; i < a.count(); ++i) out.put(i, std::string(a[i]) + std::string(b[i]));
}

namespace {

std::vector<std::string_view> parts_of(std::string_view text, std::string_view delimiter,
                                       std::string_view space, int64_t limit) {
  const bool by_space = delimiter.empty();
  const auto skip_space = [&] { text.remove_prefix(std::min(text.find_first_not_of(space), text.size())); };
  std::vector<std::string_view> parts;
  if (by_space) skip_space();
  if (by_space && text.empty()) return parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t end = by_space ? text.find_first_of(space) : text.find(delimiter);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(by_space ? end : end + delimiter.size());
    if (by_space) skip_space();
    if (by_space && text.empty()) return parts;
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

void split_text(const HostCall& call) {
  expect(call, 1, 3);
  const Texts x = texts_of(call, 0);
  const Attributes attributes(call);
  const std::string delimiter = attributes.text("delimiter");
  const std::string space = attributes.has("space") ? attributes.text("space") : std::string(kWhiteSpace);
  const int64_t limit = attributes.integer("maxsplit");
  const int64_t most = max_parts(x.width(), static_cast<int64_t>(delimiter.size()), limit);
  TextWriter out(call, 0, x.count() * most);
  auto* counts = storage<int64_t>(call, 1, x.count());
  int64_t largest = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    const std::vector<std::string_view> parts = parts_of(x[i], delimiter, space, limit);
    counts[i] = static_cast<int64_t>(parts.size());
    largest = std::max(largest, counts[i]);
    for (int64_t k = 0; k < counts[i]; ++k) out.put(i * most + k, parts[static_cast<size_t>(k)]);
  }
  *storage<int64_t>(call, 2, 1) = largest;
}

int64_t max_tokens(int64_t width, bool marks) { return width + (marks ? 2 : 0); }

namespace {

using Tokens = std::vector<std::string_view>;

/// What is between the matches; a match of nothing ends the text.
void split_by(const Pattern& separator, std::string_view text, Tokens& parts) {
  while (const std::optional<std::string_view> found = separator.find(text)) {
    const auto at = static_cast<size_t>(found->data() - text.data());
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + found->size());
  }
  parts.push_back(text);
}

class Tokenizer {
public:
  Tokenizer(const Attributes& attributes, const Texts& patterns)
      : form_(attributes.text("form")), least_(attributes.integer("least")) {
    require_text(
        form_ == "letters" || form_ == "separators" || (form_ == "expression" && patterns.count() == 1),
        "no such form of tokens");
    for (int64_t i = 0; i < patterns.count(); ++i)
      patterns_.push_back(std::make_unique<Pattern>(patterns[i], Pattern::Prefers::kLongest));
  }

  Tokens operator()(std::string_view text) const {
    Tokens parts;
    if (form_ == "separators") {
      parts = {text};
      for (const std::unique_ptr<Pattern>& separator : patterns_) {
        Tokens finer;
        for (const std::string_view part : parts) split_by(*separator, part, finer);
        parts = std::move(finer);
      }
    } else if (form_ == "letters") {
      for (; !text.empty(); text.remove_prefix(letter_bytes(text)))
        parts.push_back(text.substr(0, letter_bytes(text)));
    } else {
      while (const std::optional<std::string_view> found = patterns_[0]->find(text)) {
        parts.push_back(*found);
        text.remove_prefix(static_cast<size_t>(found->data() - text.data()) + found->size());
      }
    }
    std::erase_if(parts, [&](std::string_view part) {
      return part.empty() || (least_ > 1 && letters_of(part) < least_);
    });
    return parts;
  }

private:
  std::string form_;
  int64_t least_;
  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace

void tokenize_text(const HostCall& call) {
  expect(call, 2, 2);
  const Texts x = texts_of(call, 0), patterns = texts_of(call, 1);
  const Attributes attributes(call);
  const bool marks = attributes.flag("mark");
  const std::string pad = attributes.text("pad");
  const Tokenizer tokenize(attributes, patterns);
  std::vector<Tokens> all;
  size_t largest = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    all.push_back(tokenize(x[i]));
    largest = std::max(largest, all.back().size());
  }
  const int64_t most = max_tokens(x.width(), marks);
  const bool has_marks = marks && largest != 0;
  TextWriter out(call, 0, x.count() * most);
  for (size_t row = 0; row < all.size(); ++row) {
    int64_t at = static_cast<int64_t>(row) * most;
    const int64_t end = at + most;
    if (has_marks) out.put(at++, "\x02");
    for (const std::string_view token : all[row]) out.put(at++, token);
    if (has_marks) out.put(at++, "\x03");
    while (at < end) out.put(at++, pad);
  }
  *storage<int64_t>(call, 1, 1) = static_cast<int64_t>(largest) + (has_marks ? 2 : 0);
}

void normalize_text(const HostCall& call) {
  expect(call, 2, 2);
  const Texts x = texts_of(call, 0), words = texts_of(call, 1);
  const Attributes attributes(call);
  const int64_t change = attributes.integer("case");
  const bool sensitive = attributes.flag("case_sensitive");
  const auto compared = [&](std::string_view text) {
    return sensitive ? std::string(text) : lower_case(text);
  };
  std::set<std::string> stops;
  for (int64_t i = 0; i < words.count(); ++i) stops.insert(compared(words[i]));
  TextWriter out(call, 0, std::max<int64_t>(x.count(), 1));
  int64_t kept = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    if (stops.count(compared(x[i])) != 0) continue;
    out.put(kept++, change == 0 ? std::string(x[i]) : change == 1 ? lower_case(x[i]) : upper_case(x[i]));
  }
  // Nothing left is one empty string.
  *storage<int64_t>(call, 1, 1) = std::max<int64_t>(kept, 1);
}

}  // namespace tensormill::host_ops
