/// The layers of a Keras model as they stand in its file, call by call. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "compiler/frontend/facts/file_graph.h"
#include "compiler/frontend/keras/import.h"

namespace tensormill::frontend::keras {

/// (layer, call) of a network in an order in which each has its inputs. Throws Error(kInvalidModel) where
/// calls wait for each other.
std::vector<std::pair<size_t, size_t>> call_order(const Network& network);

/// Models that are layers stand where they are called; paths are the labels of layers, "model/block/dense".
/// Throws as call_order.
FileGraph file_graph(const Model& model);

}  // namespace tensormill::frontend::keras
