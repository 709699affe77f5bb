// Shapes of symbolic integers: their elements, strides and broadcasting.
#include <algorithm>

#include "compiler/ir/sym_int.h"
#include "runtime/base/error.h"

namespace tensormill::ir {

SymShape::SymShape(const Shape& shape) : CheckedList(shape.begin(), shape.end()) {}

SymShape::operator Ints() const { return Ints(begin(), end()); }

bool SymShape::is_constant() const {
  return std::all_of(begin(), end(), [](const SymInt& extent) { return extent.is_constant(); });
}

Shape SymShape::hints() const {
  Shape shape;
  for (const SymInt& extent : *this) shape.push_back(extent.hint());
  return shape;
}

std::vector<te::Expr> SymShape::exprs() const { return {begin(), end()}; }

bool operator==(const SymShape& a, const SymShape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

bool same(const SymShape& a, const SymShape& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SymInt& x, const SymInt& y) { return same(x, y); });
}

std::string to_string(const SymShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ",") + to_string(shape[i]);
  return text + "]";
}

SymInt num_elements(const SymShape& shape) {
  const int64_t hint = tensormill::num_elements(shape.hints());
  if (shape.is_constant()) return hint;
  SymInt product = 1;
  for (const SymInt& extent : shape) product *= extent;
  return product;
}

SymShape row_major_strides(const SymShape& shape) {
  SymShape strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * shape[i - 1];
  return strides;
}

namespace {

/// That the extent is 1 or `other`, which is 2 or more: as an equation of it and what it has to be.
bool demand_one_or(const SymInt& extent, int64_t other) {
  return demand(Relation::kLessEqual, 1, extent) &&
         demand(Relation::kEqual, extent, min(other, (other - 1) * (extent - 1) + 1));
}

/// Whether two extents of an axis can be equal, which is a guard then: one of them may be 1 as well.
bool spread_alike(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) return a.hint() == b.hint();
  const bool may_be_one = !is_proven(Relation::kLess, 1, a) || !is_proven(Relation::kLess, 1, b);
  SymbolTable* table = a.is_constant() ? b.table() : a.table();
  return table->demand(Relation::kEqual, a, b, !may_be_one);
}

}  // namespace

SymShape broadcast_shapes(const SymShape& a, const SymShape& b) {
  const size_t rank = std::max(a.size(), b.size());
  SymShape result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const SymInt left = i < a.size() ? a[a.size() - 1 - i] : SymInt(1);
    const SymInt right = i < b.size() ? b[b.size() - 1 - i] : SymInt(1);
    if (same(left, right)) {
      result[rank - 1 - i] = left;
      continue;
    }
    const bool left_is_one = is_proven(Relation::kEqual, left, 1);
    const bool right_is_one = is_proven(Relation::kEqual, right, 1);
    if (left_is_one || right_is_one) {
      result[rank - 1 - i] = left_is_one ? right : left;
      continue;
    }
    // Beside a number there are two extents, of which the result is the larger one.
    const bool is_number = left.is_constant() != right.is_constant();
    const SymInt& number = left.is_constant() ? left : right;
    const SymInt& other = left.is_constant() ? right : left;
    const bool may_be_one = is_number && number.hint() > 1 && !is_proven(Relation::kLess, 1, other) &&
                            !is_proven(Relation::kEqual, left, right);
    if (may_be_one && demand_one_or(other, number.hint())) {
      result[rank - 1 - i] = number;
      continue;
    }
    if (!spread_alike(left, right)) {
      throw Error(ErrorCode::kInvalidModel,
                  "shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    result[rank - 1 - i] = left;
  }
  return result;
}

}  // namespace tensormill::ir
