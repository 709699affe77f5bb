/// Recurrent layers over sequences of any length: the part that goes from step to step. What the inputs add
/// to the gates is a product of its own, done before. Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// One direction of an RNN, GRU or LSTM as ONNX defines them, in f32 or f64. Attribute "kind" is "rnn" (one
/// gate), "gru" (z, r, h) or "lstm" (i, o, f, c). Inputs, of one type:
///
///   * sums [steps, batch, gates*hidden]: the inputs' share of the gates, with all biases but the one below
///   * weights [gates, panels, hidden, kPanelColumns]: the recurrence weights of each gate, whose column c is
///     column c % kPanelColumns of panel c / kPanelColumns; what is behind the last column is not read
///   * h [1, batch, hidden], and for an LSTM c [1, batch, hidden]: the initial state
///   * with attribute "peepholes" 1 (LSTM): [3*hidden], of i, o and f
///   * with "linear_before_reset" 1 (GRU): the recurrence bias of the gate h, [hidden]
///   * with "lengths" 1: i64 [batch], steps of each row; what is behind them gives 0 and keeps the state
///
/// Outputs: y [steps, batch, hidden], the last h [1, batch, hidden], and c of an LSTM. Further attributes:
/// "reverse" 1: the last step of each row comes first; "input_forget" 1: f is 1 - i; "clip" (if any) bounds
/// what goes into the gates' activations; "activations": names of ONNX behind commas, and of each its
/// "alpha0", "beta0" ... (see activations_of_kind). Work is steps*batch*gates*hidden^2, memory beside the
/// operands as much as a few dozen rows take.
void recurrent(const HostCall& call);

/// How many gates an attribute "kind" has, 0 where there is no such kind; and how many activations.
size_t gates_of_kind(std::string_view kind);
size_t activations_of_kind(std::string_view kind);
/// Whether "activations" may have the name.
bool is_activation(std::string_view name);

}  // namespace tensormill::host_ops
