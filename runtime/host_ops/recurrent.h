/// Recurrent layers over a sequence whose length is free: the steps of an LSTM, a GRU or a plain RNN, one
/// behind the other. Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// Inputs, all of f32 or all of f64 but the last: what the sequence adds to the gates [steps, batch, gates *
/// hidden], the recurrent weights [hidden, gates * hidden], their bias [gates * hidden], the first state and
/// the first cell [batch, hidden], the peepholes [3 * hidden] (i, o, f; of an LSTM), i64 lengths [batch].
/// Outputs: the states [steps, batch, hidden], 0 past a row's length, the last state and the last cell.
/// Attribute gates: 1 (RNN), 3 (GRU: z, r, h) or 4 (LSTM: i, o, f, c); reverse, linear_before_reset and
/// input_forget (0 or 1) as ONNX has them, clip (float, if any), and of activation i (one, two or three):
/// activation_i (its name in ONNX), alpha_i and beta_i (floats).
void recurrent(const HostCall& call);

}  // namespace tensormill::host_ops
