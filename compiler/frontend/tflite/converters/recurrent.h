/// What layers that go through steps have alike, of real numbers and of integers. Thread-safety: as the
/// context.
#pragma once

#include <vector>

#include "compiler/frontend/tflite/node_context.h"

namespace tensormill::frontend::tflite {

/// x [steps,batch,features] or, where the time is not the first axis, [batch,steps,features], as the first
/// form.
V steps_first(NodeContext& node, V x, bool time_major);

/// How many steps x has as the first form; throws UnsupportedForm for a number that is free or too large to
/// be unrolled into kernels.
int64_t step_count(const NodeContext& node, V x);

/// Values [batch,features] one behind the other along a first axis, or behind the batch.
V stacked(NodeContext& node, const std::vector<V>& steps, bool time_major);

/// UNIDIRECTIONAL_SEQUENCE_LSTM of int8 with cells of int16, as the reference kernel computes it, bit for
/// bit.
void set_integer_lstm(NodeContext& node, const UnidirectionalSequenceLSTMOptions& options);

}  // namespace tensormill::frontend::tflite
