/// Host steps on sequences of labels. Thread-safety: pure functions.
#pragma once

#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// Scores [steps,batch,classes] (float32, float64) of each label at each step, of which the last class is
/// none, i64 [batch]: how many steps count -> i64 [paths,batch,steps]: the labels of the most likely
/// sequences, zeros behind them; i64 [paths,batch]: how long each is; [batch,paths]: the logarithm of each
/// likelihood, by the softmax of each step's scores. A search that keeps attribute "width"
/// of them (Graves et al. 2006, "Connectionist Temporal Classification"), of equal ones those that
/// TensorFlow's search keeps; attribute "merges": 1 for sequences whose equal neighbours become one.
/// Error(kTensorData) for more steps than there are, and where fewer sequences than paths are possible.
/// O(steps width classes) a row.
void likely_labels(const HostCall& call);
/// Labels i64 [n], which of rows they are behind each other: how long each is i64 [rows], and the same of the
/// labels that are right -> f32 [rows]: how many labels at least are put in, left out or exchanged to make
/// each row the right one; with attribute "normalized" as a share of those that are right, infinite where
/// there are none but others. O(n m) a row.
void edit_distances(const HostCall& call);

}  // namespace tensormill::host_ops
