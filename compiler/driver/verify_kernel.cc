#include "compiler/driver/verify_kernel.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// splitmix64 (Steele, Lea, Flood 2014): one multiply-xor chain a value, the same on every machine.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

int32_t launch_serially(const tm_call* call, tm_task task, void* closure, int64_t tasks) {
  for (int64_t i = 0; i < tasks; ++i) {
    const int32_t code = task(call, closure, i, 0);
    if (code != TM_OK) return code;
  }
  return TM_OK;
}

[[noreturn]] void wrong(const plan::Kernel& kernel, const std::string& what) {
  throw Error(ErrorCode::kWrongAnswer, "kernel " + kernel.symbol + ": " + what);
}

/// Whether the kernel turns floats that it computed within a tolerance into integers: an error of any size
/// changes those.
bool rounds_sums(const plan::Kernel& kernel) {
  const ir::Graph& region = *kernel.region;
  return kernel.tolerance > 0 &&
         std::any_of(region.nodes().begin(), region.nodes().end(), [&](const ir::Node& node) {
           return node.op == "cast" && is_float(region.value(node.inputs[0]).type.dtype) &&
                  !is_float(region.value(node.outputs[0]).type.dtype);
         });
}

/// Seeded integers are below.
constexpr int64_t kSeededIntegers = 4;

/// Of how many elements one may lie so near to the middle between two integers that an error within the
/// tolerance takes it to the other one.
constexpr int64_t kElementsAtTheMiddle = 64;

/// By how much the reference's results move when its floats are off by about a rounding of float32: what is
/// computed near a zero of a logarithm moves far. Worked out where a result differs.
class Sensitivity {
public:
  Sensitivity(const plan::Kernel& kernel, const KernelReference& reference)
      : kernel_(kernel), reference_(reference) {}

  double of(size_t output, int64_t element) {
    if (moved_.empty()) moved_ = evaluate();
    return std::fabs(moved_[output].element_as_double(element) -
                     reference_.outputs[output].element_as_double(element));
  }

private:
  std::vector<Tensor> evaluate() const {
    std::vector<Tensor> inputs;
    uint64_t state = 0;
    for (const Tensor& given : reference_.inputs) {
      inputs.push_back(given.clone());
      if (!is_float(given.dtype())) continue;
      for (int64_t i = 0; i < given.num_elements(); ++i) {
        const double by = next_random(state) % 2 == 0 ? 0x1p-22 : -0x1p-22;
        inputs.back().set_element(i, given.element_as_double(i) * (1 + by));
      }
    }
    return ir::evaluate_reference(*kernel_.region, inputs);
  }

  const plan::Kernel& kernel_;
  const KernelReference& reference_;
  std::vector<Tensor> moved_;
};

/// So many times what the results move by, they may differ: sums round at each of their terms.
constexpr double kMovements = 16;

void compare(const plan::Kernel& kernel, const Tensor& actual, const KernelReference& reference,
             size_t output, Sensitivity& sensitivity) {
  const Tensor& expected = reference.outputs[output];
  int64_t spare =
      rounds_sums(kernel) ? (expected.num_elements() + kElementsAtTheMiddle - 1) / kElementsAtTheMiddle : 0;
  if (!is_float(expected.dtype())) {
    if (std::memcmp(actual.data(), expected.data(), expected.num_bytes()) == 0) return;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      const int64_t error = actual.element_as_int(i) - expected.element_as_int(i);
      if (error == 0 || (error >= -1 && error <= 1 && spare-- > 0)) continue;
      wrong(kernel, "element " + std::to_string(i) + " is " + std::to_string(actual.element_as_int(i)) +
                        ", the reference gives " + std::to_string(expected.element_as_int(i)));
    }
    return;
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double value = std::fabs(expected.element_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double allowed = kernel.tolerance * std::max<double>(largest, FLT_MIN);
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = actual.element_as_double(i);
    const double b = expected.element_as_double(i);
    const bool special = !std::isfinite(a) || !std::isfinite(b);
    bool fits = special ? (std::isnan(a) && std::isnan(b)) || a == b : std::fabs(a - b) <= allowed;
    if (!fits && !special && kernel.tolerance > 0)
      fits = std::fabs(a - b) <= allowed + kMovements * sensitivity.of(output, i);
    if (!fits && (special || spare-- <= 0)) {
      wrong(kernel, "element " + std::to_string(i) + " is " + std::to_string(a) + ", the reference gives " +
                        std::to_string(b) + ", allowed difference " + std::to_string(allowed));
    }
  }
}

/// Floats in [-1,1) as -2, -1, 1 and 2: sums of their products are exact, and one can divide by them.
void make_whole(Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.element_as_double(i);
    tensor.set_element(i, std::floor(2 * value) + (value < 0 ? 0 : 1));
  }
}

}  // namespace

int32_t run_kernel(tm_kernel entry, const std::vector<void*>& buffers, const plan::KernelWorkspace& workspace,
                   const std::vector<int64_t>& dims) {
  const std::shared_ptr<void> shared = allocate_aligned(static_cast<size_t>(workspace.shared_bytes));
  const std::shared_ptr<void> worker = allocate_aligned(static_cast<size_t>(workspace.worker_bytes));
  tm_parallel parallel{};
  parallel.workers = 1;
  parallel.launch = &launch_serially;
  int64_t error_index = 0;
  tm_call call{};
  call.abi_version = TM_ABI_VERSION;
  call.num_buffers = static_cast<uint32_t>(buffers.size());
  call.buffers = buffers.data();
  call.dims = dims.data();
  call.num_dims = static_cast<uint32_t>(dims.size());
  call.shared_workspace = shared.get();
  call.worker_workspace = worker.get();
  call.worker_workspace_stride = workspace.worker_bytes;
  call.parallel = &parallel;
  call.error_index = &error_index;
  return entry(&call);
}

Tensor seeded_tensor(const ir::ValueType& type, uint64_t seed) {
  Tensor tensor(type.dtype, type.shape);
  uint64_t state = seed;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const uint64_t bits = next_random(state);
    if (is_float(type.dtype)) {
      tensor.set_element(i, static_cast<double>(bits >> 40) * 0x1p-23 - 1.0);
    } else {
      tensor.set_element_int(i,
                             static_cast<int64_t>(bits % (type.dtype == DType::kBool ? 2 : kSeededIntegers)));
    }
  }
  return tensor;
}

namespace {

/// The reference on integers in [0, below).
KernelReference reference_below(const plan::Kernel& kernel, const std::vector<const Tensor*>& constants,
                                int64_t below) {
  const ir::Graph& region = *kernel.region;
  const bool whole = rounds_sums(kernel);
  KernelReference reference;
  for (size_t i = 0; i < region.inputs().size(); ++i) {
    const ir::ValueType& type = region.value(region.inputs()[i]).type;
    // Mapped constants have no alignment; the kernel may assume it.
    reference.inputs.push_back(constants[i] != nullptr ? constants[i]->clone() : seeded_tensor(type, i + 1));
    if (constants[i] != nullptr) continue;
    Tensor& input = reference.inputs.back();
    if (whole && is_float(type.dtype)) make_whole(input);
    for (int64_t e = 0; below < kSeededIntegers && !is_float(type.dtype) && e < input.num_elements(); ++e)
      input.set_element_int(e, input.element_as_int(e) % below);
  }
  try {
    reference.outputs = ir::evaluate_reference(region, reference.inputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
    reference.refusal = error.message();
  }
  return reference;
}

}  // namespace

KernelReference make_reference(const plan::Kernel& kernel, const std::vector<const Tensor*>& constants) {
  return reference_below(kernel, constants, kSeededIntegers);
}

KernelReference make_accepted_reference(const plan::Kernel& kernel,
                                        const std::vector<const Tensor*>& constants) {
  KernelReference reference = make_reference(kernel, constants);
  // Integers may be indices of something with few elements.
  for (int64_t below = kSeededIntegers / 2; !reference.refusal.empty() && below > 0; below /= 2)
    reference = reference_below(kernel, constants, below);
  return reference;
}

namespace {

/// Whether the kernel need not look at all that it could read: what is not chosen has no error.
bool chooses(const plan::Kernel& kernel) {
  const std::vector<ir::Node>& nodes = kernel.region->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const ir::Node& node) { return node.op == "where"; });
}

}  // namespace

void check_outputs(const plan::Kernel& kernel, const KernelReference& reference, int32_t code,
                   const std::vector<Tensor>& outputs) {
  if (!reference.refusal.empty()) {
    if (code == TM_OK && !chooses(kernel))
      wrong(kernel, "the reference refuses the data (" + reference.refusal + "), the kernel does not");
    return;
  }
  if (code != TM_OK)
    wrong(kernel, "returned " + std::to_string(code) + " for data that the reference accepts");
  Sensitivity sensitivity(kernel, reference);
  for (size_t i = 0; i < reference.outputs.size(); ++i)
    compare(kernel, outputs[i], reference, i, sensitivity);
}

void verify_kernel(const plan::Kernel& kernel, tm_kernel entry, const plan::KernelWorkspace& workspace,
                   const std::vector<const Tensor*>& constants) {
  const auto check = [&](KernelReference reference) {
    std::vector<Tensor> outputs;
    std::vector<void*> buffers;
    for (Tensor& input : reference.inputs) buffers.push_back(input.data());
    for (ir::ValueId output : kernel.region->outputs()) {
      const ir::ValueType& type = kernel.region->value(output).type;
      outputs.push_back(Tensor::zeros(type.dtype, type.shape));
      buffers.push_back(outputs.back().data());
    }
    check_outputs(kernel, reference, run_kernel(entry, buffers, workspace), outputs);
    return reference.refusal.empty();
  };
  // What is refused says nothing about values.
  if (!check(make_reference(kernel, constants))) check(make_accepted_reference(kernel, constants));
}

}  // namespace tensormill::driver
