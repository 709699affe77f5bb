/// Finds the free dims that a model takes as 1 beside others, though elsewhere they are other dims or
/// numbers: a row of an operand that stands for all rows of another one, a mask for all batches and heads.
/// Thread-safety: pure functions.
#pragma once

#include "compiler/frontend/onnx/shape_samples.h"
#include "compiler/ir/variants.h"

namespace tensormill::frontend::onnx {

/// Generic plans of a package, all in all, of a model whose graph has so many nodes: each has samples of its
/// own, which of a large one take long to compile.
size_t most_generic_plans(size_t nodes);

/// Fills `spread`, its samples and checks in the set: which of its dependents may be 1, and what the model is
/// there.
void add_spread_dims(const ImportAt& import, ir::SampleSet& set);

struct SpecialSets {
  std::vector<ir::SampleSet> sets;
  bool leaves_out = false;  ///< the model takes such shapes, too, of which there is no set
};

/// Sets of samples at which dims are 1 that dependents of `set` are made of; each has its spread dims. A dim
/// that was made of one that is 1 is free there. And those where one of the first `own_dims` is 1 that
/// nothing else follows from, and the model computes something else than in the samples: they go before
/// others, and come last. most_generic_plans with `set` at most.
SpecialSets sets_of_ones(const ImportAt& import, const ir::SampleSet& set, size_t own_dims);

}  // namespace tensormill::frontend::onnx
