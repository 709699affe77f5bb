/// Values whose channels stand last, [N,spatial...,C]. Thread-safety: as the context.
#pragma once

#include "compiler/build/compose.h"

namespace tensormill::build {

/// x [N,spatial...,C] as [N,C,spatial...].
inline ir::ValueId channels_first(OpBuilder& context, ir::ValueId x) {
  const int64_t rank = context.rank(x);
  if (rank < 3) context.invalid("the input has rank " + std::to_string(rank));
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return Compose(context).transpose(x, perm);
}

/// What `convert` makes of x with its channels first, with the channels last again.
template <typename Convert>
ir::ValueId with_channels_first(OpBuilder& context, ir::ValueId x, Convert convert) {
  const int64_t rank = context.rank(x);
  std::vector<int64_t> perm{0};
  for (int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return Compose(context).transpose(convert(channels_first(context, x)), perm);
}

}  // namespace tensormill::build
