#include "runtime/capi/tensormill.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/capi/handles.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"

using tensormill::DType;
using tensormill::Error;
using tensormill::ErrorCode;
using tensormill::capi::DeclaredPort;
using tensormill::capi::guarded;
using tensormill::capi::require;
using tensormill::capi::view_of;

namespace {

static_assert(static_cast<int>(DType::kFloat32) == TM_FLOAT32 &&
                  static_cast<int>(DType::kBFloat16) == TM_BFLOAT16 &&
                  static_cast<int>(DType::kInt8) == TM_INT8 && static_cast<int>(DType::kUInt8) == TM_UINT8 &&
                  static_cast<int>(DType::kBool) == TM_BOOL &&
                  static_cast<int>(tensormill::kUInt4) == TM_UINT4 &&
                  static_cast<int>(tensormill::kUInt2) == TM_UINT2,
              "tm_dtype and dtype.def have the same order");

/// The one piece of per-thread state: the C convention for messages.
std::string& last_error() {
  thread_local std::string message;
  return message;
}

int32_t code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidTensor:
      return TM_ERR_INVALID_ARGUMENT;
    case ErrorCode::kInvalidPackage:
    case ErrorCode::kCpuFeatureMissing:
    case ErrorCode::kNotSupported:
      return TM_ERR_INVALID_PACKAGE;
    case ErrorCode::kNotFound:
      return TM_ERR_NOT_FOUND;
    case ErrorCode::kMemoryBudget:
      return TM_ERR_MEMORY;
    case ErrorCode::kTensorData:
      return TM_ERR_TENSOR_DATA;
    case ErrorCode::kDeadlineExceeded:
      return TM_ERR_DEADLINE;
    default:
      return TM_ERR_INTERNAL;
  }
}

std::vector<std::string> names_of(const std::vector<tensormill::package::Port>& ports) {
  std::vector<std::string> names;
  for (const tensormill::package::Port& port : ports) names.push_back(port.name);
  return names;
}

std::unique_ptr<const DeclaredPort> declared(const tensormill::package::TensorInfo& info) {
  auto port = std::make_unique<DeclaredPort>();
  port->name = info.name;
  port->dtype = info.dtype;
  for (const tensormill::Dim& dim : info.shape) {
    const auto* name = std::get_if<std::string>(&dim);
    port->shape.push_back(name != nullptr ? -1 : std::get<int64_t>(dim));
    port->dims.push_back(name != nullptr ? *name : "");
  }
  for (size_t i = 0; i < port->dims.size(); ++i)
    port->dim_names.push_back(port->shape[i] < 0 ? port->dims[i].c_str() : nullptr);
  return port;
}

tm_package* package_of(std::shared_ptr<const tensormill::package::Package> package) {
  auto handle =
      std::make_unique<tm_package>(tm_package{tensormill::package::LoadedPackage::load(std::move(package))});
  const tensormill::package::Metadata& metadata = handle->loaded->metadata();
  for (const auto& info : metadata.inputs) handle->inputs.push_back(declared(info));
  for (const auto& info : metadata.outputs) handle->outputs.push_back(declared(info));
  return handle.release();
}

const char* name_at(const std::vector<std::string>& names, int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < names.size() ? names[static_cast<size_t>(index)].c_str()
                                                                 : nullptr;
}

}  // namespace

tensormill::TensorView tensormill::capi::view_of(const tm_tensor& tensor) {
  if (tensor.dtype < TM_FLOAT32 || tensor.dtype > TM_UINT2) {
    throw Error(ErrorCode::kInvalidArgument,
                "dtype " + std::to_string(static_cast<int>(tensor.dtype)) + " is unknown");
  }
  if (tensor.rank < 0 || tensor.rank > 32 || (tensor.rank > 0 && tensor.shape == nullptr)) {
    throw Error(ErrorCode::kInvalidArgument, "rank is " + std::to_string(tensor.rank) + ", expected 0 to 32");
  }
  tensormill::TensorView view;
  view.dtype = static_cast<DType>(tensor.dtype);
  if (tensor.rank > 0) view.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  view.data = tensor.data;
  const int64_t bytes = tensormill::num_bytes(view.shape, view.dtype);
  if (tensor.bytes != static_cast<size_t>(bytes) || (bytes != 0 && tensor.data == nullptr)) {
    throw Error(ErrorCode::kInvalidArgument, "tensor has " + std::to_string(tensor.bytes) +
                                                 " bytes, its shape needs " + std::to_string(bytes));
  }
  return view;
}

size_t tensormill::capi::place_of(int32_t index, size_t size, const char* what) {
  if (index < 0 || static_cast<size_t>(index) >= size) {
    throw Error(ErrorCode::kInvalidArgument, std::string(what) + " " + std::to_string(index) +
                                                 " is not there, there are " + std::to_string(size));
  }
  return static_cast<size_t>(index);
}

int32_t tensormill::capi::guarded(const std::function<void()>& action) {
  last_error().clear();
  try {
    action();
    return 0;
  } catch (const Error& error) {
    last_error() = error.message();
    return code_of(error.code());
  } catch (const std::bad_alloc&) {
    last_error() = "out of memory";
    return TM_ERR_MEMORY;
  } catch (const std::exception& error) {
    last_error() = error.what();
    return TM_ERR_INTERNAL;
  }
}

extern "C" {

const char* tm_last_error(void) { return last_error().c_str(); }

int32_t tm_runtime_create(int32_t threads, tm_runtime** runtime) {
  return guarded([&] {
    require(runtime, "runtime");
    constexpr int32_t kMaxThreads = 4096;
    if (threads < 1 || threads > kMaxThreads) {
      throw Error(ErrorCode::kInvalidArgument,
                  "threads is " + std::to_string(threads) + ", expected 1 to " + std::to_string(kMaxThreads));
    }
    *runtime = std::make_unique<tm_runtime>(threads).release();
  });
}

void tm_runtime_destroy(tm_runtime* runtime) { std::default_delete<tm_runtime>()(runtime); }

int32_t tm_package_load(const char* path, tm_package** package) {
  return guarded([&] {
    require(path, "path");
    require(package, "package");
    *package = package_of(tensormill::package::Package::open(path));
  });
}

int32_t tm_package_load_memory(const void* data, size_t size, tm_package** package) {
  return guarded([&] {
    require(data, "data");
    require(package, "package");
    const std::span bytes(static_cast<const std::byte*>(data), size);
    *package = package_of(tensormill::package::Package::from_archive_bytes(bytes));
  });
}

int32_t tm_package_load_static(const void* data, size_t size, tm_package** package) {
  return guarded([&] {
    require(data, "data");
    require(package, "package");
    const std::span bytes(static_cast<const std::byte*>(data), size);
    *package = package_of(tensormill::package::Package::over_archive_bytes(bytes));
  });
}

void tm_package_destroy(tm_package* package) { std::default_delete<tm_package>()(package); }

const char* tm_package_metadata(const tm_package* package) {
  return package == nullptr ? "" : package->loaded->package().metadata_text().c_str();
}

int32_t tm_executor_create(tm_runtime* runtime, const tm_package* package, int64_t max_memory,
                           tm_executor** executor) {
  return guarded([&] {
    require(runtime, "runtime");
    require(package, "package");
    require(executor, "executor");
    tensormill::exec::ExecutorOptions options;
    options.max_threads = runtime->pool.cores();
    if (max_memory > 0) options.memory_budget = max_memory;
    tensormill::exec::GraphExecutor graph(package->loaded, options);
    std::vector<std::string> inputs = names_of(graph.inputs()), outputs = names_of(graph.outputs());
    std::vector<tensormill::Shape> input_shapes(inputs.size()), output_shapes(outputs.size());
    *executor = std::make_unique<tm_executor>(tm_executor{&runtime->pool, std::move(graph), std::move(inputs),
                                                          std::move(outputs), std::move(input_shapes),
                                                          std::move(output_shapes)})
                    .release();
  });
}

void tm_executor_destroy(tm_executor* executor) { std::default_delete<tm_executor>()(executor); }

int32_t tm_executor_input_count(const tm_executor* executor) {
  return executor == nullptr ? 0 : static_cast<int32_t>(executor->input_names.size());
}

int32_t tm_executor_output_count(const tm_executor* executor) {
  return executor == nullptr ? 0 : static_cast<int32_t>(executor->output_names.size());
}

const char* tm_executor_input_name(const tm_executor* executor, int32_t index) {
  return executor == nullptr ? nullptr : name_at(executor->input_names, index);
}

const char* tm_executor_output_name(const tm_executor* executor, int32_t index) {
  return executor == nullptr ? nullptr : name_at(executor->output_names, index);
}

int32_t tm_executor_set_input(tm_executor* executor, const char* name, const tm_tensor* tensor) {
  return guarded([&] {
    require(executor, "executor");
    require(name, "name");
    require(tensor, "tensor");
    const size_t index = executor->executor.input_index(name);
    executor->executor.lend_input(index, nullptr);
    executor->executor.set_input(index, view_of(*tensor));
  });
}

int32_t tm_executor_get_output(tm_executor* executor, const char* name, tm_tensor* tensor) {
  int32_t index = 0;
  const int32_t code = tm_executor_output_index(executor, name, &index);
  return code != 0 ? code : tm_executor_get_output_at(executor, index, tensor);
}

}  // extern "C"
