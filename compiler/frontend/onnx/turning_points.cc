#include "compiler/frontend/onnx/turning_points.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

constexpr std::array<std::string_view, 8> kComparing = {
    "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Min", "Max", "Clip"};

/// Of an operand of the node; none where they are not known, or many.
std::vector<double> known_numbers(const NodeContext& context, size_t index) {
  constexpr int64_t kFew = 4;
  const ir::ValueId operand = context.optional_input(index);
  if (operand == ir::kAbsent) return {};
  const ir::ValueType& type = context.type(operand);
  const bool is_number = type.dtype != kString && type.dtype != DType::kBool && !is_narrow(type.dtype);
  if (!is_number || num_elements(type.shape) > kFew || !context.is_computable(operand)) return {};
  std::vector<double> numbers;
  try {
    const Tensor& tensor = context.known_value(operand, "a number that is compared");
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      numbers.push_back(is_float(type.dtype) ? tensor.element_as_double(i)
                                             : static_cast<double>(tensor.element_as_int(i)));
  } catch (const Error&) {
    // What an operator refuses is reported when the model runs.
  }
  return numbers;
}

/// Along one dim; extents are counted in what the dim is a multiple of.
class Turns {
public:
  Turns(const ImportAt& import, const DifferencesAt& differences, ir::SampleSet& set, size_t dim)
      : import_(import), differences_(differences), set_(set), dim_(dim) {}

  void add_checks() {
    constexpr int kMostTurns = 8;
    int64_t at = set_.samples.front().dims[dim_] / set_.multiples[dim_];
    for (int i = 0; i < kMostTurns; ++i) {
      const std::optional<int64_t> turn = next_turn(at);
      if (!turn) return;
      // What is divided shows behind some more.
      for (const int64_t beside : {int64_t{-1}, int64_t{0}, int64_t{1}, kFar, *turn}) check(*turn + beside);
      at = *turn + 1;
    }
  }

private:
  // What is made of an extent squared fills the memory above.
  static constexpr int64_t kMost = int64_t{1} << 14;
  // Rounding of quotients is small beside what so many more make.
  static constexpr int64_t kFar = 128;

  std::vector<int64_t> dims_at(int64_t count) const {
    std::vector<int64_t> dims = set_.samples.front().dims;
    dims[dim_] = count * set_.multiples[dim_];
    return ir::with_dependents(std::move(dims), set_.dependents);
  }

  const std::vector<double>& at(int64_t count) {
    const auto [found, is_new] = known_.try_emplace(count);
    if (is_new) found->second = differences_(dims_at(count));
    return found->second;
  }

  /// -1, 0 or 1; nothing where the model does not take the count or compares other things there.
  std::optional<int> sign_at(int64_t count, size_t which, size_t all) {
    const std::vector<double>& differences = at(count);
    if (differences.size() != all) return std::nullopt;
    return (differences[which] > 0 ? 1 : 0) - (differences[which] < 0 ? 1 : 0);
  }

  /// The least count above `begin` at which a difference has another sign than there.
  std::optional<int64_t> next_turn(int64_t begin) {
    const std::vector<double>&here = at(begin), &there = at(begin + kFar);
    if (here.empty() || here.size() != there.size()) return std::nullopt;
    std::set<std::pair<int64_t, size_t>> expected;
    for (size_t i = 0; i < here.size(); ++i) {
      const double growth = (there[i] - here[i]) / static_cast<double>(kFar);
      const double count = static_cast<double>(begin) - here[i] / growth;
      const bool is_ahead = std::isfinite(count) && count > static_cast<double>(begin) &&
                            count <= static_cast<double>(kMost / set_.multiples[dim_]);
      if (is_ahead) expected.emplace(static_cast<int64_t>(std::ceil(count)), i);
    }
    for (const auto& [count, which] : expected) {
      if (const std::optional<int64_t> turn = turn_of(begin, count, which, here.size())) return turn;
    }
    return std::nullopt;
  }

  std::optional<int64_t> turn_of(int64_t begin, int64_t expected, size_t which, size_t all) {
    const int64_t margin = (expected - begin) / 8 + 2;
    const std::optional<int> before = sign_at(begin, which, all);
    int64_t low = std::max(begin, expected - margin), high = expected + margin;
    if (sign_at(low, which, all) != before) low = begin;
    const std::optional<int> behind = sign_at(high, which, all);
    if (!behind || behind == before) return std::nullopt;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      const std::optional<int> sign = sign_at(middle, which, all);
      if (!sign) return std::nullopt;
      (sign == before ? low : high) = middle;
    }
    return high;
  }

  void check(int64_t count) {
    std::vector<int64_t> dims = dims_at(count);
    const bool is_checked = std::any_of(set_.checks.begin(), set_.checks.end(),
                                        [&](const ir::ShapeCheck& each) { return each.dims == dims; });
    if (is_checked) return;
    const std::optional<ir::Graph> graph = import_(dims);
    if (!graph) return;
    ir::ShapeCheck check{std::move(dims), {}};
    for (const ir::ValueId output : graph->outputs())
      check.outputs.push_back(graph->value(output).type.shape);
    set_.checks.push_back(std::move(check));
  }

  const ImportAt& import_;
  const DifferencesAt& differences_;
  ir::SampleSet& set_;
  const size_t dim_;
  std::map<int64_t, std::vector<double>> known_;
};

}  // namespace

void add_differences(const NodeContext& context, std::vector<double>& differences) {
  const NodeProto& node = context.node();
  const bool compares = std::find(kComparing.begin(), kComparing.end(), node.op_type) != kComparing.end();
  if (!compares || !node.domain.empty()) return;
  const std::vector<double> first = known_numbers(context, 0);
  for (size_t i = 1; !first.empty() && i < context.num_inputs(); ++i) {
    const std::vector<double> other = known_numbers(context, i);
    const size_t count = std::max(first.size(), other.size());
    for (size_t k = 0; !other.empty() && count % first.size() + count % other.size() == 0 && k < count; ++k)
      differences.push_back(first[k % first.size()] - other[k % other.size()]);
  }
}

void add_turning_checks(const ImportAt& import, const DifferencesAt& differences, size_t own_dims,
                        ir::SampleSet& set) {
  for (size_t dim = 0; dim < own_dims; ++dim) {
    const bool is_dependent =
        std::any_of(set.dependents.begin(), set.dependents.end(),
                    [&](const ir::DependentDim& dependent) { return dependent.dim == dim; });
    if (!is_dependent && !set.samples.empty()) Turns(import, differences, set, dim).add_checks();
  }
}

}  // namespace tensormill::frontend::onnx
