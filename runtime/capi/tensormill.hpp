/// The C interface (tensormill.h) for C++17: objects that free themselves, errors as exceptions, shapes as
/// vectors. Header-only: nothing of it crosses the library's border, so any compiler and C++ library may use
/// it.
///
///     tensormill::Runtime runtime;                       // threads
///     tensormill::Package package("net.tar");            // code and weights
///     tensormill::Executor executor(runtime, package);   // buffers: as many as runs at once
///     executor.set_input(0, pixels.data(), {1, 3, 224, 224});
///     executor.run();
///     tensormill::View<float> scores = executor.output<float>(0);
///
/// Thread-safety: a Runtime and a Package may be shared by threads; an Executor belongs to one thread at a
/// time. Executors of one Package share its weights. A Runtime outlives its executors; a Package need not.
#pragma once

#include <tensormill.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tensormill {

/// What a function of the library refused; code() is TM_ERR_...
class Error : public std::runtime_error {
public:
  Error(std::int32_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  std::int32_t code() const noexcept { return code_; }
  /// "TM_ERR_MEMORY"
  const char* name() const noexcept { return tm_error_name(code_); }

private:
  std::int32_t code_;
};

inline void check(std::int32_t code) {
  if (code != 0) throw Error(code, tm_last_error());
}

using Shape = std::vector<std::int64_t>;

/// The tm_dtype of a C++ type: float, double, bool, the integers of 8 to 64 bits. Others are set by
/// tm_tensor.
template <typename T>
constexpr tm_dtype dtype_of() {
  static_assert(std::is_arithmetic<T>::value, "no element type of a tensor");
  if (std::is_same<T, bool>::value) return TM_BOOL;
  if (std::is_floating_point<T>::value) {
    static_assert(!std::is_floating_point<T>::value || sizeof(T) == 4 || sizeof(T) == 8,
                  "no element type of a tensor");
    return sizeof(T) == 4 ? TM_FLOAT32 : TM_FLOAT64;
  }
  const bool is_signed = std::is_signed<T>::value;
  switch (sizeof(T)) {
    case 1:
      return is_signed ? TM_INT8 : TM_UINT8;
    case 2:
      return is_signed ? TM_INT16 : TM_UINT16;
    case 4:
      return is_signed ? TM_INT32 : TM_UINT32;
    default:
      return is_signed ? TM_INT64 : TM_UINT64;
  }
}

/// Elements in row-major order that something else owns.
template <typename T>
class View {
public:
  View(T* data, std::size_t size, Shape shape) : data_(data), size_(size), shape_(std::move(shape)) {}
  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  const Shape& shape() const { return shape_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](std::size_t index) const { return data_[index]; }

private:
  T* data_;
  std::size_t size_;
  Shape shape_;
};

/// An input or output as the model declares it. shape: -1 for a free dim, whose name is in dims (""
/// elsewhere).
struct Port {
  std::string name;
  tm_dtype dtype = TM_FLOAT32;
  Shape shape;
  std::vector<std::string> dims;
};

/// How long a step of a run took.
struct StepTime {
  std::string name;
  std::string origin;  ///< the model's first node that it came from
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
};

/// Bytes that start at a multiple of 64 and have 64 readable ones behind them: what Executor::lend_... take.
template <typename T>
class Buffer {
public:
  explicit Buffer(std::size_t size) : size_(size), bytes_(size * sizeof(T) + 2 * kAlignment) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    data_ = reinterpret_cast<T*>(bytes_.data() + (kAlignment - address % kAlignment) % kAlignment);
  }
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t index) { return data_[index]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

private:
  static constexpr std::size_t kAlignment = 64;
  std::size_t size_;
  std::vector<unsigned char> bytes_;
  T* data_;
};

/// The threads that runs share. With 1 a run takes its caller's thread alone.
class Runtime {
public:
  /// threads: 0 for as many as this process may use CPUs.
  explicit Runtime(std::int32_t threads = 0) {
    tm_runtime* made = nullptr;
    check(tm_runtime_create(threads > 0 ? threads : tm_default_threads(), &made));
    handle_.reset(made);
  }
  tm_runtime* handle() const { return handle_.get(); }

private:
  struct Free {
    void operator()(tm_runtime* runtime) const { tm_runtime_destroy(runtime); }
  };
  std::unique_ptr<tm_runtime, Free> handle_;
};

/// Code and weights of a compiled model.
class Package {
public:
  /// An archive, or a folder with its members.
  explicit Package(const std::string& path) {
    tm_package* made = nullptr;
    check(tm_package_load(path.c_str(), &made));
    handle_.reset(made);
  }
  /// An archive in memory, which is copied.
  Package(const void* data, std::size_t size) {
    tm_package* made = nullptr;
    check(tm_package_load_memory(data, size, &made));
    handle_.reset(made);
  }
  /// One that is linked into the program: `entry` is the function that its bundle's header declares.
  explicit Package(std::int32_t (*entry)(tm_package**)) {
    tm_package* made = nullptr;
    check(entry(&made));
    handle_.reset(made);
  }
  tm_package* handle() const { return handle_.get(); }
  /// metadata.json
  std::string metadata() const { return tm_package_metadata(handle()); }
  std::vector<Port> inputs() const { return ports(tm_package_input_count(handle()), tm_package_input); }
  std::vector<Port> outputs() const { return ports(tm_package_output_count(handle()), tm_package_output); }

private:
  struct Free {
    void operator()(tm_package* package) const { tm_package_destroy(package); }
  };
  std::vector<Port> ports(std::int32_t count,
                          std::int32_t (*get)(const tm_package*, std::int32_t, tm_port*)) const {
    std::vector<Port> found;
    for (std::int32_t i = 0; i < count; ++i) {
      tm_port port{};
      check(get(handle(), i, &port));
      Port made{port.name, port.dtype, Shape(port.shape, port.shape + port.rank), {}};
      for (std::int32_t d = 0; d < port.rank; ++d)
        made.dims.emplace_back(port.dim_names[d] != nullptr ? port.dim_names[d] : "");
      found.push_back(std::move(made));
    }
    return found;
  }
  std::unique_ptr<tm_package, Free> handle_;
};

/// The buffers of one run at a time.
class Executor {
public:
  /// max_memory: bytes for the buffers, 0 for as many as the machine has.
  Executor(const Runtime& runtime, const Package& package, std::int64_t max_memory = 0) {
    tm_executor* made = nullptr;
    check(tm_executor_create(runtime.handle(), package.handle(), max_memory, &made));
    handle_.reset(made);
  }
  tm_executor* handle() const { return handle_.get(); }

  /// The place of an input or output by name, the model's or "input_0", "output_0" ...
  std::int32_t input_index(const std::string& name) const {
    std::int32_t index = 0;
    check(tm_executor_input_index(handle(), name.c_str(), &index));
    return index;
  }
  std::int32_t output_index(const std::string& name) const {
    std::int32_t index = 0;
    check(tm_executor_output_index(handle(), name.c_str(), &index));
    return index;
  }

  /// Copies. Another extent of a free dim binds it.
  template <typename T>
  void set_input(std::int32_t index, const T* data, const Shape& shape) {
    const tm_tensor tensor = tensor_of(data, shape);
    check(tm_executor_set_input_at(handle(), index, &tensor));
  }
  template <typename T>
  void set_input(const std::string& name, const T* data, const Shape& shape) {
    set_input(input_index(name), data, shape);
  }
  /// Runs read the elements where they lie, as tm_executor_lend_input says: a Buffer is such memory. False:
  /// they were copied.
  template <typename T>
  bool lend_input(std::int32_t index, const T* data, const Shape& shape) {
    const tm_tensor tensor = tensor_of(data, shape);
    std::int32_t lent = 0;
    check(tm_executor_lend_input(handle(), index, &tensor, &lent));
    return lent != 0;
  }
  /// The input's own storage, to write into; the input counts as set.
  template <typename T>
  View<T> input(std::int32_t index) {
    void* data = nullptr;
    tm_tensor tensor{};
    check(tm_executor_input_buffer(handle(), index, &data, &tensor));
    return view<T>(static_cast<T*>(data), tensor);
  }
  /// Runs write the output at `data`, `bytes` in all. False: this package has it elsewhere; take output().
  bool lend_output(std::int32_t index, void* data, std::size_t bytes) {
    std::int32_t lent = 0;
    check(tm_executor_lend_output(handle(), index, data, bytes, &lent));
    return lent != 0;
  }

  /// threads: 0 for all of the runtime's; time_limit_ms: 0 for none.
  void run(std::int32_t threads = 0, std::int64_t time_limit_ms = 0) {
    check(tm_executor_run(handle(), threads, time_limit_ms));
  }

  /// Valid until the next run. Throws Error(TM_ERR_INVALID_ARGUMENT) when the elements are none of T.
  template <typename T>
  View<const T> output(std::int32_t index) const {
    tm_tensor tensor{};
    check(tm_executor_get_output_at(handle(), index, &tensor));
    return view<const T>(static_cast<const T*>(tensor.data), tensor);
  }
  template <typename T>
  View<const T> output(const std::string& name) const {
    return output<T>(output_index(name));
  }

  /// Whether runs from here on note the time of each step.
  void set_profiling(bool on) { check(tm_executor_set_profiling(handle(), on ? 1 : 0)); }
  /// Of the last run that was noted.
  std::vector<StepTime> steps() const {
    std::vector<StepTime> times;
    for (std::int32_t i = 0; i < tm_executor_step_count(handle()); ++i) {
      tm_step step{};
      check(tm_executor_step(handle(), i, &step));
      times.push_back({step.name, step.origin, step.start_ns, step.duration_ns});
    }
    return times;
  }

private:
  struct Free {
    void operator()(tm_executor* executor) const { tm_executor_destroy(executor); }
  };
  template <typename T>
  static tm_tensor tensor_of(const T* data, const Shape& shape) {
    std::size_t bytes = sizeof(T);
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    return {dtype_of<T>(), static_cast<std::int32_t>(shape.size()), shape.data(), data, bytes};
  }
  template <typename T>
  static View<T> view(T* data, const tm_tensor& tensor) {
    if (tensor.dtype != dtype_of<typename std::remove_const<T>::type>())
      throw Error(TM_ERR_INVALID_ARGUMENT, "the tensor has elements of another type");
    return View<T>(data, tensor.bytes / sizeof(T), Shape(tensor.shape, tensor.shape + tensor.rank));
  }
  std::unique_ptr<tm_executor, Free> handle_;
};

}  // namespace tensormill
