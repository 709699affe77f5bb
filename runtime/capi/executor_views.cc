// What the package says of its ports, tensors in the caller's memory, times of steps.
#include <cstdint>
#include <string>

#include "runtime/base/cpu_count.h"
#include "runtime/base/error.h"
#include "runtime/capi/handles.h"

using tensormill::Error;
using tensormill::ErrorCode;
using tensormill::capi::check_aligned;
using tensormill::capi::DeclaredPort;
using tensormill::capi::fill;
using tensormill::capi::guarded;
using tensormill::capi::place_of;
using tensormill::capi::require;
using tensormill::capi::view_of;

namespace {

using Ports = std::vector<std::unique_ptr<const DeclaredPort>>;

int32_t port_at(const tm_package* package, Ports tm_package::*ports, int32_t index, tm_port* port) {
  return guarded([&] {
    require(package, "package");
    require(port, "port");
    const Ports& list = package->*ports;
    const DeclaredPort& found = *list[place_of(index, list.size(), "port")];
    *port = {found.name.c_str(), static_cast<tm_dtype>(found.dtype), static_cast<int32_t>(found.shape.size()),
             found.shape.data(), found.dim_names.data()};
  });
}

}  // namespace

void tensormill::capi::check_aligned(const void* data) {
  if (reinterpret_cast<uintptr_t>(data) % kTensorAlignment != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "a tensor that is lent starts at a multiple of " + std::to_string(kTensorAlignment));
  }
}

void tensormill::capi::fill(tm_tensor& tensor, const TensorView& view, Shape& shape) {
  shape = view.shape;
  tensor = {static_cast<tm_dtype>(view.dtype), static_cast<int32_t>(shape.size()), shape.data(), view.data,
            static_cast<size_t>(num_bytes(shape, view.dtype))};
}

extern "C" {

const char* tm_error_name(int32_t code) {
  switch (code) {
    case TM_ERR_INVALID_ARGUMENT:
      return "TM_ERR_INVALID_ARGUMENT";
    case TM_ERR_INVALID_PACKAGE:
      return "TM_ERR_INVALID_PACKAGE";
    case TM_ERR_NOT_FOUND:
      return "TM_ERR_NOT_FOUND";
    case TM_ERR_MEMORY:
      return "TM_ERR_MEMORY";
    case TM_ERR_TENSOR_DATA:
      return "TM_ERR_TENSOR_DATA";
    case TM_ERR_DEADLINE:
      return "TM_ERR_DEADLINE";
    case TM_ERR_INTERNAL:
      return "TM_ERR_INTERNAL";
    default:
      return "";
  }
}

const char* tm_version(void) { return TENSORMILL_VERSION; }

int32_t tm_default_threads(void) { return tensormill::usable_cores(); }

int32_t tm_dtype_bytes(tm_dtype dtype) {
  if (dtype < TM_FLOAT32 || dtype > TM_UINT2) return 0;
  return static_cast<int32_t>(tensormill::dtype_bytes(static_cast<tensormill::DType>(dtype)));
}

int32_t tm_package_holds_model(const tm_package* package) {
  return package != nullptr && package->loaded->package().plans().model ? 1 : 0;
}

int32_t tm_package_input_count(const tm_package* package) {
  return package == nullptr ? 0 : static_cast<int32_t>(package->inputs.size());
}

int32_t tm_package_output_count(const tm_package* package) {
  return package == nullptr ? 0 : static_cast<int32_t>(package->outputs.size());
}

int32_t tm_package_input(const tm_package* package, int32_t index, tm_port* port) {
  return port_at(package, &tm_package::inputs, index, port);
}

int32_t tm_package_output(const tm_package* package, int32_t index, tm_port* port) {
  return port_at(package, &tm_package::outputs, index, port);
}

int32_t tm_executor_input_index(const tm_executor* executor, const char* name, int32_t* index) {
  return guarded([&] {
    require(executor, "executor");
    require(name, "name");
    require(index, "index");
    *index = static_cast<int32_t>(executor->executor.input_index(name));
  });
}

int32_t tm_executor_output_index(const tm_executor* executor, const char* name, int32_t* index) {
  return guarded([&] {
    require(executor, "executor");
    require(name, "name");
    require(index, "index");
    *index = static_cast<int32_t>(executor->executor.output_index(name));
  });
}

int32_t tm_executor_set_input_at(tm_executor* executor, int32_t index, const tm_tensor* tensor) {
  return guarded([&] {
    require(executor, "executor");
    require(tensor, "tensor");
    const size_t place = place_of(index, executor->input_names.size(), "input");
    executor->executor.lend_input(place, nullptr);
    executor->executor.set_input(place, view_of(*tensor));
  });
}

int32_t tm_executor_lend_input(tm_executor* executor, int32_t index, const tm_tensor* tensor,
                               int32_t* is_lent) {
  return guarded([&] {
    require(executor, "executor");
    const size_t place = place_of(index, executor->input_names.size(), "input");
    bool lent = false;
    if (tensor == nullptr) {
      executor->executor.lend_input(place, nullptr);
    } else {
      const tensormill::TensorView view = view_of(*tensor);
      check_aligned(view.data);
      lent = executor->executor.set_input_in_place(place, view);
    }
    if (is_lent != nullptr) *is_lent = lent ? 1 : 0;
  });
}

int32_t tm_executor_input_buffer(tm_executor* executor, int32_t index, void** data, tm_tensor* tensor) {
  return guarded([&] {
    require(executor, "executor");
    require(data, "data");
    const size_t place = place_of(index, executor->input_names.size(), "input");
    executor->executor.lend_input(place, nullptr);
    *data = executor->executor.input_bytes(place).data();
    if (tensor == nullptr) return;
    const tensormill::package::Port& port = executor->executor.inputs()[place];
    fill(*tensor, {port.dtype, tensormill::concrete_shape(port.shape), *data}, executor->input_shapes[place]);
  });
}

int32_t tm_executor_clear_inputs(tm_executor* executor) {
  return guarded([&] {
    require(executor, "executor");
    for (size_t i = 0; i < executor->input_names.size(); ++i) executor->executor.lend_input(i, nullptr);
    executor->executor.clear_inputs();
  });
}

int64_t tm_executor_output_bytes(const tm_executor* executor, int32_t index) {
  int64_t bytes = 0;
  const int32_t code = guarded([&] {
    require(executor, "executor");
    const size_t place = place_of(index, executor->output_names.size(), "output");
    bytes = static_cast<int64_t>(executor->executor.output_bytes(place));
  });
  return code != 0 ? code : bytes;
}

int32_t tm_executor_lend_output(tm_executor* executor, int32_t index, void* data, size_t bytes,
                                int32_t* is_lent) {
  return guarded([&] {
    require(executor, "executor");
    const size_t place = place_of(index, executor->output_names.size(), "output");
    check_aligned(data);
    if (data != nullptr && bytes < executor->executor.output_bytes(place)) {
      throw Error(ErrorCode::kInvalidArgument, "output \"" + executor->output_names[place] + "\" needs " +
                                                   std::to_string(executor->executor.output_bytes(place)) +
                                                   " bytes, " + std::to_string(bytes) + " are given");
    }
    const bool lent = executor->executor.lend_output(place, data);
    if (is_lent != nullptr) *is_lent = lent && data != nullptr ? 1 : 0;
  });
}

int32_t tm_executor_get_output_at(tm_executor* executor, int32_t index, tm_tensor* tensor) {
  return guarded([&] {
    require(executor, "executor");
    require(tensor, "tensor");
    const size_t place = place_of(index, executor->output_names.size(), "output");
    // Bound dims and data decide about the shape anew in every run.
    fill(*tensor, executor->executor.output(place), executor->output_shapes[place]);
  });
}

int32_t tm_executor_set_profiling(tm_executor* executor, int32_t on) {
  return guarded([&] {
    require(executor, "executor");
    executor->is_profiled = on != 0;
    executor->profile.clear();
  });
}

int32_t tm_executor_step_count(const tm_executor* executor) {
  return executor == nullptr ? 0 : static_cast<int32_t>(executor->profile.size());
}

int32_t tm_executor_step(const tm_executor* executor, int32_t index, tm_step* step) {
  return guarded([&] {
    require(executor, "executor");
    require(step, "step");
    const tensormill::exec::StepTime& time =
        executor->profile[place_of(index, executor->profile.size(), "step")];
    // Inputs of other shapes since the run have a plan of other steps.
    const auto& steps = executor->executor.plan().steps;
    if (time.step >= steps.size())
      throw Error(ErrorCode::kInvalidArgument, "the steps are those of other shapes");
    const tensormill::package::Step& found = steps[time.step];
    *step = {found.name.c_str(), found.origins.empty() ? "" : found.origins.front().c_str(),
             time.start_ns,      time.duration_ns,
             found.flops,        found.bytes};
  });
}

}  // extern "C"
