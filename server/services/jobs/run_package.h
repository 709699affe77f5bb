/// One run of an executor as the API describes it: inputs by name, filled where allowed, repeated, timed.
/// Used by the in-process host and by the runner child. Thread-safety: as GraphExecutor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/services/package_service.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::server {

/// "zeros", "ones", "random".
const char* fill_mode_name(services::FillMode mode);
/// From such a name; throws Error(kInvalidArgument) otherwise.
services::FillMode parse_fill_mode(const std::string& text);
/// Random: floats uniform in [-1,1), integers in [0,128) cut to the type, bools fair.
Tensor filled_tensor(DType dtype, const Shape& shape, services::FillMode mode, uint64_t seed);
/// Runs with the inputs that are set, as often as the options say. Throws what GraphExecutor::run throws.
services::Timing measured_run(exec::GraphExecutor& executor, const services::RunOptions& options,
                              parallel::ThreadPool& pool, const exec::RunOptions& run_options);
/// Fills the inputs from `inputs` and `options`, runs, and copies the outputs. `dims`: of the free dims, that
/// inputs have which are filled; none: the package's first ones. Throws Error(kInvalidTensor),
/// Error(kTensorData), and what GraphExecutor::run throws.
services::RunResult run_executor(exec::GraphExecutor& executor, const services::NamedTensors& inputs,
                                 const services::RunOptions& options, parallel::ThreadPool& pool,
                                 const exec::RunOptions& run_options, const std::vector<int64_t>& dims = {});

}  // namespace tensormill::server
