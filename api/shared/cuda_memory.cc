#include "api/shared/cuda_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::shared {

struct CudaFunctions {
  /// CUipcMemHandle, which is passed by value.
  struct IpcHandle {
    char bytes[kIpcHandleBytes];
  };
#define TM_CUDA(symbol, parameters) int(*symbol) parameters = nullptr;
#include "api/shared/cuda_driver.def"
#undef TM_CUDA
};

namespace {

using Address = unsigned long long;

/// Throws Error(`code`) with what the driver says of `result`.
void check(const CudaFunctions& cuda, int result, const char* call, ErrorCode code) {
  if (result == 0) return;
  const char* name = nullptr;
  const char* text = nullptr;
  std::string what = std::string(call) + ": ";
  what += cuda.cuGetErrorName(result, &name) == 0 && name != nullptr ? name : "error";
  what += " " + std::to_string(result);
  if (cuda.cuGetErrorString(result, &text) == 0 && text != nullptr) what += std::string(" (") + text + ")";
  throw Error(code, what);
}

/// The context that all users of a GPU in this process share, held while this lives.
class Context {
public:
  Context(std::shared_ptr<const CudaFunctions> cuda, int ordinal) : cuda_(std::move(cuda)) {
    check(*cuda_, cuda_->cuDeviceGet(&device_, ordinal), "cuDeviceGet", ErrorCode::kIo);
    check(*cuda_, cuda_->cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain",
          ErrorCode::kIo);
  }
  ~Context() { cuda_->cuDevicePrimaryCtxRelease_v2(device_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  const CudaFunctions& cuda() const { return *cuda_; }
  void* get() const { return context_; }

private:
  const std::shared_ptr<const CudaFunctions> cuda_;
  int device_ = 0;
  void* context_ = nullptr;
};

/// The calling thread's context is that one while this lives; the one that it had comes back.
class Current {
public:
  explicit Current(const Context& context) : cuda_(context.cuda()) {
    check(cuda_, cuda_.cuCtxPushCurrent_v2(context.get()), "cuCtxPushCurrent", ErrorCode::kIo);
  }
  ~Current() {
    void* popped = nullptr;
    cuda_.cuCtxPopCurrent_v2(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

private:
  const CudaFunctions& cuda_;
};

/// A handle's allocation in the address space of this process, while this lives. The driver counts: one that
/// is opened twice has one address, and is unmapped with the last.
class Mapping {
public:
  Mapping(const Context& context, std::string_view bytes) : context_(context) {
    constexpr unsigned kLazyEnablePeerAccess = 1;  // the one flag that there is, which must be set
    CudaFunctions::IpcHandle handle{};
    std::copy_n(bytes.begin(), kIpcHandleBytes, handle.bytes);
    const Current current(context_);
    check(cuda(), cuda().cuIpcOpenMemHandle_v2(&address_, handle, kLazyEnablePeerAccess),
          "cuIpcOpenMemHandle", ErrorCode::kInvalidArgument);
  }
  ~Mapping() {
    // A context that no thread may use any more has nothing mapped.
    if (cuda().cuCtxPushCurrent_v2(context_.get()) != 0) return;
    cuda().cuIpcCloseMemHandle(address_);
    void* popped = nullptr;
    cuda().cuCtxPopCurrent_v2(&popped);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Address address() const { return address_; }

private:
  const CudaFunctions& cuda() const { return context_.cuda(); }

  const Context& context_;
  Address address_ = 0;
};

class CudaMemory final : public ClientMemory {
public:
  CudaMemory(std::shared_ptr<const CudaFunctions> cuda, int ordinal, std::string_view handle)
      : context_(std::move(cuda), ordinal), mapping_(context_, handle) {
    Address base = 0;
    size_t size = 0;
    const Current current(context_);
    check(context_.cuda(), context_.cuda().cuMemGetAddressRange_v2(&base, &size, mapping_.address()),
          "cuMemGetAddressRange", ErrorCode::kInvalidArgument);
    size_ = size - std::min<uint64_t>(size, mapping_.address() - base);
  }

  uint64_t size() const override { return size_; }

  void read(uint64_t at, std::span<std::byte> into) const override {
    if (into.empty()) return;
    const Current current(context_);
    const CudaFunctions& cuda = context_.cuda();
    check(cuda, cuda.cuMemcpyDtoH_v2(into.data(), mapping_.address() + at, into.size()), "cuMemcpyDtoH",
          ErrorCode::kIo);
  }

  void write(uint64_t at, std::span<const std::byte> from) const override {
    if (from.empty()) return;
    const Current current(context_);
    const CudaFunctions& cuda = context_.cuda();
    check(cuda, cuda.cuMemcpyHtoD_v2(mapping_.address() + at, from.data(), from.size()), "cuMemcpyHtoD",
          ErrorCode::kIo);
    // That call may return while bytes are on their way, and the client reads as soon as it has its answer.
    check(cuda, cuda.cuStreamSynchronize(nullptr), "cuStreamSynchronize", ErrorCode::kIo);
  }

private:
  const Context context_;
  const Mapping mapping_;
  uint64_t size_ = 0;
};

std::shared_ptr<const CudaFunctions> load(const std::string& name) {
  const auto fail = [&] {
    const char* why = ::dlerror();
    throw Error(ErrorCode::kNotSupported, "memory of a GPU needs the NVIDIA driver's library " + name + ": " +
                                              (why != nullptr ? why : "unknown error"));
  };
  // It is never unloaded: it has handlers of the process' end.
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail();
  const auto cuda = std::make_shared<CudaFunctions>();
#define TM_CUDA(symbol, parameters)                                                   \
  cuda->symbol = reinterpret_cast<decltype(cuda->symbol)>(::dlsym(library, #symbol)); \
  if (cuda->symbol == nullptr) fail();
#include "api/shared/cuda_driver.def"
#undef TM_CUDA
  try {
    check(*cuda, cuda->cuInit(0), "cuInit", ErrorCode::kNotSupported);
  } catch (Error& error) {
    error.add_context(name);
    throw;
  }
  return cuda;
}

}  // namespace

CudaDriver::CudaDriver(std::string library) : library_(std::move(library)) {}

std::shared_ptr<const CudaFunctions> CudaDriver::functions() {
  const std::lock_guard lock(mutex_);
  if (functions_ == nullptr) functions_ = load(library_);
  return functions_;
}

std::unique_ptr<const ClientMemory> CudaDriver::open(std::string_view handle, int64_t device_id) {
  if (handle.size() != kIpcHandleBytes)
    throw Error(ErrorCode::kInvalidArgument, "raw_handle has " + std::to_string(handle.size()) +
                                                 " bytes, a cudaIpcMemHandle_t has " +
                                                 std::to_string(kIpcHandleBytes));
  std::shared_ptr<const CudaFunctions> cuda = functions();
  int count = 0;
  check(*cuda, cuda->cuDeviceGetCount(&count), "cuDeviceGetCount", ErrorCode::kIo);
  if (device_id < 0 || device_id >= count)
    throw Error(ErrorCode::kInvalidArgument, "device_id " + std::to_string(device_id) + " is none of the " +
                                                 std::to_string(count) + " GPUs that the driver shows here");
  return std::make_unique<CudaMemory>(std::move(cuda), static_cast<int>(device_id), handle);
}

}  // namespace tensormill::shared
