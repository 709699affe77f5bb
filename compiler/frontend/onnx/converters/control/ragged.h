/// Sequences whose elements have other extents each along one axis, one behind the other along it, with the
/// length of each: flat values and row lengths, as ragged tensors have them elsewhere. Iterations that bind
/// symbols hand on such lists; no length bounds another one. Thread-safety: as the builder.
#pragma once

#include <string>

#include "compiler/frontend/onnx/graph/builder.h"

namespace tensormill::frontend::onnx {

/// A list, or such a sequence, whose elements follow each other along `axis`: one without an element is like
/// `like`. Throws UnsupportedForm for what is neither, naming `what`.
Binding ragged_of(StructureContext& context, const Binding& sequence, size_t axis, ir::ValueId like,
                  const std::string& what);
/// The sequence with one more element, behind the last. Throws UnsupportedForm for one of another type or
/// rank, or where no extents are known at which those of the other axes are equal.
Binding ragged_with(StructureContext& context, const Binding& all, ir::ValueId element);
/// The same elements as a stack, with capacity for the longest.
Binding stack_of_ragged(const StructureContext& context, const Binding& all);

}  // namespace tensormill::frontend::onnx
