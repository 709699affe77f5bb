/// Resizing along an axis: by tables where its extents are known, else by nodes of one form for every extent,
/// as where they are free, and where a run works out extents, scales or the part that is read.
/// Thread-safety: as the context.
#pragma once

#include "compiler/build/compose.h"
#include "compiler/build/pictures/resize_taps.h"

namespace tensormill::build {

/// Whether make_taps can be written as nodes: the number of taps is the same for every extent.
bool has_formula(const ResizeAxis& axis, const ResizeOptions& options);
/// Of an axis of a run: whether it leaves it as it is, bool [1].
ir::ValueId is_left(Compose& c, const ResizeAxis& axis, const ResizeOptions& options);
/// Which output elements lie outside of the input, bool [out].
ir::ValueId outside_nodes(Compose& c, const ResizeAxis& axis, const ResizeOptions& options);
/// x resized along `dim` from one extent to another that are known: the taps' weighted sum, or the nearest
/// element.
ir::ValueId resize_by_table(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                            const ResizeOptions& options);
/// x resized along `dim` as has_formula says.
ir::ValueId resize_by_nodes(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                            const ResizeOptions& options);
/// The same as a product with a matrix of all weights: for filters whose number of taps depends on extents.
/// Elements outside are the nearest inside, as far as any filter reaches.
ir::ValueId resize_by_product(Compose& c, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                              const ResizeOptions& options);
/// x resized along `dim` by that of the ways above that suits the axis, which is none of a run. Refuses one
/// without elements that is to have some.
ir::ValueId resize_along(OpBuilder& builder, ir::ValueId x, int64_t dim, const ResizeAxis& axis,
                         const ResizeOptions& options);
/// floor(extent * factor), also of a free extent; the factor is 0 to 65536. Throws UnsupportedForm about
/// `name` where the factor is no fraction of a power of two.
ir::SymInt scaled_by_fraction(OpBuilder& builder, const char* name, const ir::SymInt& extent, double factor);

}  // namespace tensormill::build
