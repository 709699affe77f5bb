/// Blocks of space as channels or as parts of the batch, of maps [N,spatial...,C]. Errors:
/// Error(kInvalidModel) for blocks that do not fit. Thread-safety: as the builder.
#pragma once

#include "compiler/build/compose.h"

namespace tensormill::build {

/// Of maps of rank 4.
ir::ValueId space_to_depth(OpBuilder& builder, ir::ValueId x, int64_t block);
ir::ValueId depth_to_space(OpBuilder& builder, ir::ValueId x, int64_t block);

/// A block an axis behind the batch; `paddings` [blocks,2] around them, of `zero`.
ir::ValueId space_to_batch(OpBuilder& builder, ir::ValueId x, const std::vector<int64_t>& blocks,
                           const ir::SymShape& paddings, double zero);
/// `crops` [blocks,2] are cut off.
ir::ValueId batch_to_space(OpBuilder& builder, ir::ValueId x, const std::vector<int64_t>& blocks,
                           const ir::SymShape& crops);

}  // namespace tensormill::build
