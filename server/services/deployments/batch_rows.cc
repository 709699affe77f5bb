#include "server/services/deployments/batch_rows.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/text.h"
#include "runtime/package/loops.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::server {

namespace {

std::string quoted(const package::Port& port) { return "input \"" + port.name + "\""; }

Shape rows_shape(const package::Port& port, int64_t rows) {
  Shape shape = concrete_shape(port.shape);
  shape.front() = rows;
  return shape;
}

void check_row(const package::Port& port, const Tensor& tensor, int64_t max_rows) {
  if (!dtype_fits(port.dtype, tensor.dtype())) {
    throw Error(ErrorCode::kInvalidTensor, quoted(port) + " has dtype " +
                                               std::string(dtype_long_name(tensor.dtype())) + ", expected " +
                                               std::string(dtype_long_name(port.dtype)));
  }
  check_elements(port.dtype, tensor.data(), tensor.num_elements(), quoted(port));
  const Shape& shape = tensor.shape();
  const bool has_rows = port.dtype != kString || shape.size() > 1;
  if (has_rows && !shape.empty() && shape.front() >= 1 && shape.front() <= max_rows &&
      shape == rows_shape(port, shape.front())) {
    return;
  }
  Shape expected = shown_shape(port.dtype, concrete_shape(port.shape));
  if (!expected.empty()) expected.erase(expected.begin());
  std::string rest;
  for (const int64_t extent : expected) rest += "," + std::to_string(extent);
  throw Error(ErrorCode::kInvalidTensor, quoted(port) + " has shape " +
                                             to_string(shown_shape(port.dtype, shape)) + ", expected [1.." +
                                             std::to_string(max_rows) + rest + "]");
}

/// Gives strings the width of the input's.
void fit_strings(const package::Port& port, Tensor& tensor) {
  try {
    tensor = fitted_text({tensor.dtype(), tensor.shape(), tensor.data()}, concrete_shape(port.shape).back());
  } catch (Error& error) {
    error.add_context(quoted(port));
    throw;
  }
}

/// Fills input `index` with seeded values; row 0 and the last one come from `seed`, the others from `other`.
void fill_rows(exec::GraphExecutor& executor, size_t index, int64_t rows, uint64_t seed, uint64_t other) {
  const package::Port& port = executor.inputs()[index];
  const Tensor ends = filled_tensor(port.dtype, rows_shape(port, 1), services::FillMode::kRandom, seed);
  const Tensor middle =
      filled_tensor(port.dtype, concrete_shape(port.shape), services::FillMode::kRandom, other);
  const std::span<std::byte> bytes = executor.input_bytes(index);
  std::memcpy(bytes.data(), middle.data(), middle.num_bytes());
  std::memcpy(bytes.data(), ends.data(), ends.num_bytes());
  if (rows > 2) {
    std::memcpy(bytes.data() + ends.num_bytes() * static_cast<size_t>(rows - 1), ends.data(),
                ends.num_bytes());
  }
}

services::NamedTensors first_row_with(exec::GraphExecutor& executor, int64_t rows, uint64_t other,
                                      parallel::ThreadPool& pool, const exec::RunOptions& options) {
  for (size_t i = 0; i < executor.inputs().size(); ++i) fill_rows(executor, i, rows, i, other + i);
  executor.run(pool, options);
  return scatter_rows(executor, 0, 1);
}

}  // namespace

int64_t batch_dim(const exec::GraphExecutor& executor) {
  // Where data decides an extent, no row lies at a known place.
  const auto is_open = [](const Dim& dim) { return dim == Dim(std::string()); };
  for (const package::TensorInfo& output : executor.package().metadata().outputs) {
    if (std::any_of(output.shape.begin(), output.shape.end(), is_open)) return 0;
  }
  int64_t rows = -1;
  for (const auto* ports : {&executor.inputs(), &executor.outputs()}) {
    for (const package::Port& port : *ports) {
      const Shape shape = shown_shape(port.dtype, concrete_shape(port.shape));
      const int64_t first = shape.empty() ? 0 : shape.front();
      if (rows >= 0 && first != rows) return 0;
      rows = first;
    }
  }
  return std::max<int64_t>(rows, 0);
}

std::vector<Tensor> ordered_rows(const exec::GraphExecutor& executor, services::NamedTensors&& inputs,
                                 const services::RunOptions& options, int64_t max_rows) {
  const std::vector<package::Port>& ports = executor.inputs();
  std::vector<Tensor> ordered(ports.size());
  std::vector<bool> given(ports.size());
  int64_t rows = 0;
  for (auto& [name, tensor] : inputs) {
    const size_t index = executor.input_index(name);
    if (given[index]) throw Error(ErrorCode::kInvalidTensor, quoted(ports[index]) + " is given twice");
    if (ports[index].dtype == kString && tensor.dtype() == kString) fit_strings(ports[index], tensor);
    check_row(ports[index], tensor, max_rows);
    if (rows != 0 && tensor.shape().front() != rows) {
      throw Error(ErrorCode::kInvalidTensor, quoted(ports[index]) + " has " +
                                                 std::to_string(tensor.shape().front()) +
                                                 " rows, the inputs before it " + std::to_string(rows));
    }
    rows = tensor.shape().front();
    given[index] = true;
    ordered[index] = std::move(tensor);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (given[i]) continue;
    if (!options.fill_mode) throw Error(ErrorCode::kInvalidTensor, quoted(ports[i]) + " is not set");
    ordered[i] = filled_tensor(ports[i].dtype, rows_shape(ports[i], std::max<int64_t>(rows, 1)),
                               *options.fill_mode, options.seed + i);
  }
  return ordered;
}

void gather_rows(exec::GraphExecutor& executor, const std::vector<const std::vector<Tensor>*>& requests) {
  for (size_t i = 0; i < executor.inputs().size(); ++i) {
    const std::span<std::byte> bytes = executor.input_bytes(i);
    size_t filled = 0;
    for (const std::vector<Tensor>* tensors : requests) {
      const Tensor& tensor = (*tensors)[i];
      TM_CHECK(tensor.num_bytes() <= bytes.size() - filled, "more rows than the executor is bound to");
      std::memcpy(bytes.data() + filled, tensor.data(), tensor.num_bytes());
      filled += tensor.num_bytes();
    }
    std::memset(bytes.data() + filled, 0, bytes.size() - filled);
  }
}

services::NamedTensors scatter_rows(const exec::GraphExecutor& executor, int64_t first, int64_t count) {
  services::NamedTensors outputs;
  for (size_t i = 0; i < executor.outputs().size(); ++i) {
    const package::Port& port = executor.outputs()[i];
    Tensor rows(port.dtype, rows_shape(port, count));
    const size_t row_bytes = rows.num_bytes() / static_cast<size_t>(count);
    const TensorView whole = executor.output(i);
    std::memcpy(rows.data(),
                static_cast<const std::byte*>(whole.data) + row_bytes * static_cast<size_t>(first),
                rows.num_bytes());
    outputs.emplace_back(port.name, std::move(rows));
  }
  return outputs;
}

void check_rows_are_independent(exec::GraphExecutor& executor, parallel::ThreadPool& pool,
                                const exec::RunOptions& options) {
  const auto refuse = [](const std::string& detail) {
    throw Error(ErrorCode::kInvalidArgument, "max_batch: " + detail, {{"/max_batch", detail}});
  };
  if (package::has_loops_decided_by_data(executor.plan()))
    refuse("a loop goes round as often as all rows of a batch say, so requests cannot share a run");
  const int64_t rows = batch_dim(executor);
  const services::NamedTensors before = first_row_with(executor, rows, 1000, pool, options);
  const services::NamedTensors after = first_row_with(executor, rows, 2000, pool, options);
  for (size_t i = 0; i < before.size(); ++i) {
    const Tensor& a = before[i].second;
    const Tensor& b = after[i].second;
    if (a.num_bytes() == 0 || std::memcmp(a.data(), b.data(), a.num_bytes()) == 0) continue;
    refuse("output \"" + before[i].first +
           "\" of one row depends on the other rows, so requests cannot share a run");
  }
}

}  // namespace tensormill::server
