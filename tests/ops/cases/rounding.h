/// How much of a result is rounding. A sum of n terms is off by n roundings of the sum of their magnitudes at
/// most (Higham, Accuracy and Stability of Numerical Algorithms, 4.2), however little is left of it where
/// they cancel: no part of the result's own size bounds that. What does is how far the reference moves when
/// each of its numbers is off by one rounding, which is a rounding of the terms' magnitudes, as often as a
/// sum has terms. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ops_cases {

/// By how much each element of the graph's outputs may be off, as the text above says it. Of outputs of
/// integers: 0.
std::vector<std::vector<double>> rounding_of(const ir::Graph& graph, const std::vector<Tensor>& inputs);
/// The same of the outputs of one node of it; `values`: what the reference makes of each value.
std::vector<std::vector<double>> rounding_of(const ir::Graph& graph, const ir::Node& node,
                                             const std::vector<Tensor>& values);

/// As difference (cases.h); empty, too, where no element is further off than `rounding` says.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance,
                       const std::vector<double>& rounding);

}  // namespace tensormill::ops_cases
