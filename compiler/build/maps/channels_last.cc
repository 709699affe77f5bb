#include "compiler/build/maps/channels_last.h"

#include <algorithm>

#include "compiler/build/compose.h"
#include "compiler/build/maps/channels.h"

namespace tensormill::build {

ir::ValueId ChannelsLast::first(OpBuilder& builder, ir::ValueId x) {
  if (const auto made = first_.find(x); made != first_.end()) return made->second;
  if (const auto known = transposed_.find(x); known != transposed_.end()) return known->second;
  const ir::ValueId result = channels_first(builder, x);
  transposed_.emplace(x, result);
  return result;
}

ir::ValueId ChannelsLast::last(OpBuilder& builder, ir::ValueId y) {
  std::vector<int64_t> perm{0};
  for (int64_t axis = 2; axis < builder.rank(y); ++axis) perm.push_back(axis);
  perm.push_back(1);
  const ir::ValueId result = Compose(builder).transpose(y, perm);
  first_.emplace(result, y);
  return result;
}

int64_t ChannelsLast::axis_first(int64_t axis, int64_t rank) {
  if (axis == 0) return 0;
  return axis == rank - 1 ? 1 : axis + 1;
}

ir::ValueId ChannelsLast::broadcast_first(OpBuilder& builder, ir::ValueId x, size_t rank) {
  const ir::SymShape shape = builder.type(x).shape;
  if (shape.size() == rank) return first(builder, x);
  // A row of channels, or of none: ones stand in front of it.
  ir::SymShape whole(rank, 1);
  if (!shape.empty())
    std::copy(shape.begin(), shape.end(), whole.end() - static_cast<std::ptrdiff_t>(shape.size()));
  const bool is_scalar =
      std::all_of(shape.begin(), shape.end(), [](const ir::SymInt& extent) { return same(extent, 1); });
  if (is_scalar) return Compose(builder).reshape(x, {});
  ir::SymShape moved(whole);
  std::rotate(moved.begin() + 1, moved.end() - 1, moved.end());
  const bool is_row =
      std::all_of(whole.begin(), whole.end() - 1, [](const ir::SymInt& extent) { return same(extent, 1); });
  return is_row ? builder.reshape(x, moved) : channels_first(builder, builder.reshape(x, whole));
}

ir::ValueId ChannelsLast::elementwise(OpBuilder& builder, const std::string& op,
                                      const std::vector<ir::ValueId>& operands, const ir::Attrs& attrs) {
  size_t rank = 0;
  bool is_first = false;
  for (const ir::ValueId operand : operands) {
    rank = std::max(rank, builder.type(operand).shape.size());
    is_first = is_first || is_made(operand);
  }
  is_first = is_first && rank > 2;
  for (const ir::ValueId operand : operands)
    is_first = is_first && (!is_made(operand) || builder.type(operand).shape.size() == rank);
  if (!is_first) return builder.add(op, operands, attrs);
  std::vector<ir::ValueId> moved;
  for (const ir::ValueId operand : operands) moved.push_back(broadcast_first(builder, operand, rank));
  return last(builder, builder.add(op, moved, attrs));
}

}  // namespace tensormill::build
