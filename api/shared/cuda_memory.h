/// Memory of NVIDIA GPUs that other processes on this machine own and hand over by its IPC handle. The CUDA
/// driver is loaded when it is first needed: a process that opens none neither maps nor needs it.
/// Thread-safety: all methods from many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/shared/client_memory.h"

namespace tensormill::shared {

/// Of a cudaIpcMemHandle_t.
inline constexpr size_t kIpcHandleBytes = 64;

/// The driver's functions, in cuda_memory.cc.
struct CudaFunctions;

class CudaDriver {
public:
  /// `library`: as dlopen takes it.
  explicit CudaDriver(std::string library = "libcuda.so.1");
  /// The allocation of a handle, from the address on that its owner has exported, on the GPU that is
  /// `device_id` here. It stays open until the result's end, which may be after this object's. Throws
  /// Error(kInvalidArgument) for a handle of another length, a GPU that is not there and a handle that the
  /// driver refuses, Error(kNotSupported) where there is no driver or it finds no GPU; what the driver says
  /// is named.
  std::unique_ptr<const ClientMemory> open(std::string_view handle, int64_t device_id);

private:
  std::shared_ptr<const CudaFunctions> functions();

  const std::string library_;
  std::mutex mutex_;
  std::shared_ptr<const CudaFunctions> functions_;  ///< null until they are loaded
};

}  // namespace tensormill::shared
