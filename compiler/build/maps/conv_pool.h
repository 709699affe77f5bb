/// Convolutions and pools over maps [N,C,spatial...]. Thread-safety: as the builder.
#pragma once

#include <functional>

#include "compiler/build/maps/windows.h"

namespace tensormill::build {

struct ConvSpec {
  Windows windows;
  int64_t groups = 1;
  bool exact = false;  ///< the sums are integers that must stay so
};
/// x [N,C,...] with weights [O,C/groups,kernel...]; `bias` [O] may be kAbsent. Integers of 32 bits at most
/// are summed modulo 2^bits: UnsupportedForm for wider ones.
ir::ValueId conv(OpBuilder& builder, ir::ValueId x, ir::ValueId w, ir::ValueId bias, ConvSpec spec);

/// The sums of products that `sums` makes of x and w, both of a float type or both integers of 32 bits at
/// most, of which it adds up `terms` products at most for an element. It is given float64 in place of
/// integers.
ir::ValueId exact_sums(OpBuilder& builder, ir::ValueId x, ir::ValueId w, const ir::SymInt& terms,
                       const std::function<ir::ValueId(ir::ValueId x, ir::ValueId w)>& sums);

struct PoolSpec {
  Windows windows;
  bool ceil_mode = false;
};
/// What is in the padding is no element. Integers are pooled without pads that follow from symbolic extents.
ir::ValueId max_pool(OpBuilder& builder, ir::ValueId x, PoolSpec spec);
/// The mean of the elements inside; what is in the padding does not count.
ir::ValueId avg_pool(OpBuilder& builder, ir::ValueId x, PoolSpec spec);

}  // namespace tensormill::build
