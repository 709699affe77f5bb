#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/sequence_steps.h"

namespace tensormill::host_ops {

namespace {

using Labels = std::span<const int64_t>;

/// Row after row of the table of distances between the first labels of both (Wagner and Fischer 1974).
size_t distance_of(Labels labels, Labels right) {
  std::vector<size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < labels.size(); ++i) {
    size_t across = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < right.size(); ++j) {
      const size_t exchanged = across + (labels[i] == right[j] ? 0 : 1);
      across = row[j + 1];
      row[j + 1] = std::min({across + 1, row[j] + 1, exchanged});
    }
  }
  return row.back();
}

/// Operands `first` and the one behind it: labels, and how long rows of them are.
class LabelRows {
public:
  LabelRows(const HostCall& call, size_t first)
      : labels_(integers_of(call, first)), lengths_(integers_of(call, first + 1)) {}

  size_t rows() const { return static_cast<size_t>(lengths_.num_elements()); }
  /// The labels of the next row.
  Labels next() {
    const Labels all(labels_.values<int64_t>());
    const int64_t length = lengths_.values<int64_t>()[row_++];
    if (length < 0 || static_cast<size_t>(length) > all.size() - begin_) fail();
    const size_t begin = begin_;
    begin_ += static_cast<size_t>(length);
    return all.subspan(begin, static_cast<size_t>(length));
  }

private:
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kInvalidPackage, "a host step compares what are no rows of labels");
  }
  static Tensor integers_of(const HostCall& call, size_t index) {
    const TensorView& view = call.inputs[index];
    if (view.dtype != DType::kInt64 || view.shape.size() != 1) fail();
    return copied(view);
  }

  const Tensor labels_, lengths_;
  size_t row_ = 0, begin_ = 0;
};

}  // namespace

void edit_distances(const HostCall& call) {
  expect(call, 4, 1);
  LabelRows given(call, 0), right(call, 2);
  if (given.rows() != right.rows())
    throw Error(ErrorCode::kInvalidPackage, "a host step compares different numbers of rows");
  const bool is_share = Attributes(call).flag("normalized");
  auto* distances = static_cast<float*>(storage(call, 0, given.rows(), sizeof(float)));
  for (size_t row = 0; row < given.rows(); ++row) {
    const Labels own = given.next(), wanted = right.next();
    distances[row] = static_cast<float>(distance_of(own, wanted));
    if (!is_share || distances[row] == 0) continue;
    distances[row] = wanted.empty() ? std::numeric_limits<float>::infinity()
                                    : distances[row] / static_cast<float>(wanted.size());
  }
}

}  // namespace tensormill::host_ops
