/// Loops that append to what they hand on and do not look at it: what an iteration appends is a stacked part,
/// and all parts are put behind the initial value once. Thread-safety: as the builder.
#pragma once

#include <optional>
#include <vector>

#include "compiler/frontend/onnx/converters/control/loops.h"

namespace tensormill::frontend::onnx {

struct AppendedValues {
  struct Value {
    size_t carried = 0;  ///< which of the values handed on
    int64_t axis = 0;    ///< of Concat, as the model has it
  };
  std::vector<Value> values;
  /// The loop's body without them, and with what is appended to each as the last outputs.
  GraphProto body;
};
/// Of a body of Loop; nothing where it appends so to none of the values that begin with `initial`. A cast to
/// the type that the value has is none.
std::optional<AppendedValues> find_appended(const StructureContext& context, const GraphProto& body,
                                            const std::vector<Binding>& initial);

/// As convert_as_loop, of the loop without the appended values among `form`'s. Throws UnsupportedForm where
/// data decides about the extents of what is appended: where the form binds_symbols, those of the appended
/// axis.
std::optional<std::vector<Binding>> convert_appending_loop(StructureContext& context, const LoopForm& form,
                                                           const AppendedValues& appended);

}  // namespace tensormill::frontend::onnx
