#include "runtime/host_ops/text_rows.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/text_io.h"

namespace tensormill::host_ops {

namespace {

constexpr char32_t kReplacement = 0xfffd;

bool is_point(int64_t value) { return value >= 0 && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff); }

}  // namespace

void join_row(const HostCall& call) {
  expect(call, 2, 1);
  const Texts x = texts_of(call, 0);
  const TensorView& counts = call.inputs[1];
  require_text(x.shape().size() == 2 && counts.dtype == DType::kInt64 && counts.shape == Shape{x.shape()[0]},
               "rows without their counts");
  const std::string separator = Attributes(call).text("separator");
  const int64_t rows = x.shape()[0], columns = x.shape()[1];
  TextWriter out(call, 0, rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = static_cast<const int64_t*>(counts.data)[row];
    if (count < 0 || count > columns)
      throw Error(ErrorCode::kTensorData, "row " + std::to_string(row) + " of " + std::to_string(columns) +
                                              " strings has a count of " + std::to_string(count));
    std::string joined;
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) joined += separator;
      joined += x[row * columns + i];
    }
    out.put(row, joined);
  }
}

void points_of_text(const HostCall& call) {
  expect(call, 1, 3);
  const Texts x = texts_of(call, 0);
  auto* points = storage<int64_t>(call, 0, x.count() * x.width());
  auto* counts = storage<int64_t>(call, 1, x.count());
  auto* begins = storage<int64_t>(call, 2, x.count() * x.width());
  std::fill_n(points, x.count() * x.width(), 0);
  std::fill_n(begins, x.count() * x.width(), 0);
  for (int64_t i = 0; i < x.count(); ++i) {
    std::string_view rest = x[i];
    int64_t place = i * x.width();
    while (!rest.empty()) {
      const std::string_view letter = rest.substr(0, letter_bytes(rest));
      const bool is_letter = is_utf8(letter);
      points[place] = is_letter ? code_points(letter)[0] : kReplacement;
      begins[place++] = static_cast<int64_t>(x[i].size() - rest.size());
      rest.remove_prefix(is_letter ? letter.size() : 1);
    }
    counts[i] = place - i * x.width();
  }
}

void letters_of_points(const HostCall& call) {
  expect(call, 1, 1);
  const TensorView& x = call.inputs[0];
  require_text(x.dtype == DType::kInt64, "code points of another type");
  const int64_t count = num_elements(x.shape);
  TextWriter out(call, 0, count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t point = static_cast<const int64_t*>(x.data)[i];
    std::string letter;
    append_utf8(letter, is_point(point) ? static_cast<char32_t>(point) : kReplacement);
    out.put(i, letter);
  }
}

}  // namespace tensormill::host_ops
