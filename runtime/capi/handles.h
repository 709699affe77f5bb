/// What is behind the C interface's pointers, for other folders that add functions to it.
/// Thread-safety: as tensormill.h says of each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"
#include "runtime/capi/tensormill.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::capi {

/// An input or output as the model declares it, in the form that C reads.
struct DeclaredPort {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;          ///< -1 for a free dim
  std::vector<std::string> dims;       ///< its name, else ""
  std::vector<const char*> dim_names;  ///< of `dims`; null for a fixed extent
};

}  // namespace tensormill::capi

struct tm_runtime {
  explicit tm_runtime(int threads) : pool(threads) {}
  tensormill::parallel::ThreadPool pool;
};

struct tm_package {
  std::shared_ptr<const tensormill::package::LoadedPackage> loaded;
  // By unique pointer: C holds addresses inside.
  std::vector<std::unique_ptr<const tensormill::capi::DeclaredPort>> inputs = {}, outputs = {};
};

struct tm_executor {
  tensormill::parallel::ThreadPool* pool;
  tensormill::exec::GraphExecutor executor;
  // The executor's ports are those of its plan, and other shapes have other plans.
  std::vector<std::string> input_names, output_names;
  std::vector<tensormill::Shape> input_shapes, output_shapes;
  bool is_profiled = false;
  std::vector<tensormill::exec::StepTime> profile = {};
};

namespace tensormill::capi {

/// Runs `action`: 0, or the code of what it throws, whose message is tm_last_error()'s from then on.
int32_t guarded(const std::function<void()>& action);

/// Throws Error(kInvalidArgument) naming the null pointer.
template <typename T>
void require(const T* pointer, const char* name) {
  if (pointer == nullptr) throw Error(ErrorCode::kInvalidArgument, std::string(name) + " is null");
}

/// Throws Error(kInvalidArgument) for what is no tensor.
TensorView view_of(const tm_tensor& tensor);

/// Throws Error(kInvalidArgument) for an address that kernels cannot read or write at.
void check_aligned(const void* data);

/// Fills `tensor`, whose extents are from then on those of `shape`.
void fill(tm_tensor& tensor, const TensorView& view, Shape& shape);

/// `index` as a place in a list of `size`; throws Error(kInvalidArgument) naming both.
size_t place_of(int32_t index, size_t size, const char* what);

}  // namespace tensormill::capi
