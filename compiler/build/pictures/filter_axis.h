/// Pictures resampled by filters of any width, as TensorFlow's ScaleAndTranslate and ResizeArea have them: a
/// product with the matrix of all weights of an axis, whose extents and scale may be a run's.
/// Thread-safety: as the builder.
#pragma once

#include <string>

#include "compiler/build/compose.h"

namespace tensormill::build {

/// One axis; its numbers are f32 of one element.
struct FilterAxis {
  ir::SymInt in, out;
  ir::ValueId scale;  ///< output elements an input element
  ir::ValueId shift;  ///< output elements that the picture is moved by; kAbsent: none
};
/// x, f32, along `dim`: what lies outside of it has no weight, and places outside of it are 0. With
/// `antialias` the filter is as wide as an output element where that is the wider one. Filters: lanczos1,
/// lanczos3, lanczos5, gaussian, box, triangle, keyscubic, mitchellcubic; UnsupportedForm for another one, or
/// for more than kMaxListed weights.
ir::ValueId filtered(OpBuilder& builder, ir::ValueId x, int64_t dim, const FilterAxis& axis,
                     const std::string& filter, bool antialias);
/// x, f32, along `dim`: means over as many elements as one of the output covers.
ir::ValueId area_means(OpBuilder& builder, ir::ValueId x, int64_t dim, const ir::SymInt& out,
                       bool align_corners);

}  // namespace tensormill::build
