/// Rows of a batch in and out of an executor: tensors whose first dim is the batch's. Rows past those that
/// are given are zero. Thread-safety: as GraphExecutor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/services/package_service.h"
#include "runtime/exec/graph_executor.h"

namespace tensormill::server {

/// The first dim that all inputs and outputs of `executor` have in common; 0 when there is none.
int64_t batch_dim(const exec::GraphExecutor& executor);

/// The request's tensors in the order of the executor's inputs, with those that are not given filled as the
/// options say. Throws Error(kInvalidTensor) naming the tensor unless all have the same number of rows, 1 to
/// `max_rows`, and otherwise the executor's dtype and shape.
std::vector<Tensor> ordered_rows(const exec::GraphExecutor& executor, services::NamedTensors&& inputs,
                                 const services::RunOptions& options, int64_t max_rows);

/// Sets the executor's inputs from the rows of each request, one after the other.
void gather_rows(exec::GraphExecutor& executor, const std::vector<const std::vector<Tensor>*>& requests);

/// Rows `first` … `first + count - 1` of each output.
services::NamedTensors scatter_rows(const exec::GraphExecutor& executor, int64_t first, int64_t count);

/// Runs twice with the same first and last row and others in between, or around; throws
/// Error(kInvalidArgument) pointing at /max_batch when that changes the first row's results in any bit, or
/// when data decides how often a loop goes round.
void check_rows_are_independent(exec::GraphExecutor& executor, parallel::ThreadPool& pool,
                                const exec::RunOptions& options);

}  // namespace tensormill::server
