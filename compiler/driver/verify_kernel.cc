#include "compiler/driver/verify_kernel.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "compiler/driver/element_bounds.h"
#include "compiler/ir/op_def.h"
#include "compiler/ir/parts.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

namespace {

/// The reference of a kernel past these takes minutes and several times the tensors' memory.
constexpr int64_t kSampleBytes = int64_t{1} << 29;
constexpr int64_t kSampleFlops = int64_t{1} << 36;

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

/// Whether the kernel turns floats that it computed within a tolerance into integers. Whole numbers as inputs
/// keep most sums exact then.
bool rounds_sums(const plan::Kernel& kernel) {
  const ir::Graph& region = *kernel.region;
  return kernel.tolerance > 0 &&
         std::any_of(region.nodes().begin(), region.nodes().end(), [&](const ir::Node& node) {
           return node.op == "cast" && is_float(region.value(node.inputs[0]).type.dtype) &&
                  !is_float(region.value(node.outputs[0]).type.dtype);
         });
}

/// The reference's values of the compared parts.
std::vector<Tensor> evaluate_parts(const plan::Kernel& kernel, const std::vector<ComparedPart>& parts,
                                   const std::vector<Tensor>& inputs) {
  ir::PartPlan plan(*kernel.region);
  for (const ComparedPart& each : parts) plan.add(kernel.region->outputs()[each.output], each.part);
  return plan.evaluate(inputs);
}

/// By how much the reference's results move when its floats are off by about a rounding of float32: what is
/// computed near a zero of a logarithm moves far, and so does the sine of a long sum. Worked out where a
/// result differs, for several errors of the inputs: one alone may move a result by next to nothing.
class Sensitivity {
public:
  Sensitivity(const plan::Kernel& kernel, const KernelReference& reference)
      : kernel_(kernel), reference_(reference) {}

  /// Whether an element of a part may differ by as much.
  bool allows(size_t part, int64_t element, double difference) {
    for (size_t draw = 0; draw < kDraws; ++draw) {
      if (draw == moved_.size()) moved_.push_back(evaluate(draw));
      const double movement = std::fabs(moved_[draw][part].element_as_double(element) -
                                        reference_.outputs[part].element_as_double(element));
      if (difference <= kMovements * movement) return true;
    }
    return false;
  }

private:
  static constexpr size_t kDraws = 8;

  std::vector<Tensor> evaluate(uint64_t state) const {
    std::vector<Tensor> inputs;
    for (const Tensor& given : reference_.inputs) {
      inputs.push_back(given.clone());
      if (!is_float(given.dtype())) continue;
      for (int64_t i = 0; i < given.num_elements(); ++i) {
        const double by = next_random(state) % 2 == 0 ? 0x1p-22 : -0x1p-22;
        inputs.back().set_element(i, given.element_as_double(i) * (1 + by));
      }
    }
    return evaluate_parts(kernel_, reference_.compared, inputs);
  }

  const plan::Kernel& kernel_;
  const KernelReference& reference_;
  std::vector<std::vector<Tensor>> moved_;
};

/// Where element `element` of a part is in the whole tensor.
int64_t place_of(const Shape& shape, const std::optional<ir::Part>& part, int64_t element) {
  if (!part) return element;
  int64_t inner = 1;
  for (size_t d = part->axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const int64_t of_part = (part->end - part->begin) * inner;
  return element / of_part * shape[part->axis] * inner + part->begin * inner + element % of_part;
}

/// By how much elements of one output may differ.
class Allowance {
public:
  Allowance(double tolerance, const KernelReference& reference, size_t output, const Tensor& actual)
      : tolerance_(tolerance), actual_(actual) {
    for (size_t p = 0; p < reference.compared.size(); ++p) {
      if (reference.compared[p].output != output) continue;
      largest_ = std::max(largest_, largest_of(reference.outputs[p]));
      is_partial_ = reference.compared[p].part.has_value();
    }
  }

  double value() const { return tolerance_ * std::max<double>(largest_, FLT_MIN); }

  /// Whether it is more now: of an output that is compared in parts the kernel itself says how large its
  /// other elements are. Believed up to twice what the parts have.
  bool widen() {
    if (!is_partial_) return false;
    is_partial_ = false;
    largest_ = std::clamp(largest_of(actual_), largest_, 2 * largest_);
    return true;
  }

private:
  double tolerance_;
  const Tensor& actual_;
  double largest_ = 0;
  bool is_partial_ = false;
};

/// Whether all elements are numbers that differ by `most` at most: what most kernels give, told at once.
/// False for other dtypes than float32.
bool are_near(const Tensor& actual, const Tensor& expected, double most) {
  if (expected.dtype() != DType::kFloat32) return false;
  const std::span<const float> a = actual.values<float>(), b = expected.values<float>();
  size_t near = 0;
  for (size_t i = 0; i < b.size(); ++i)
    near += std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])) <= most ? 1 : 0;
  return near == b.size();
}

/// Where elements that differ may lie all the same.
struct Bounds {
  Sensitivity sensitivity;
  BoundsOfParts of_operators;  ///< what each operator may be off by, followed to the results
  bool has_steps = false;      ///< results change in steps of what is not exact
};

/// `whole`: the output that part `index` of the reference is of.
void compare(const plan::Kernel& kernel, const Tensor& whole, const KernelReference& reference, size_t index,
             Bounds& bounds) {
  const Tensor& expected = reference.outputs[index];
  const std::optional<ir::Part>& part = reference.compared[index].part;
  const Tensor actual = part ? ir::part_of(whole, *part) : whole;
  const auto element = [&](int64_t i) {
    return "element " + std::to_string(place_of(whole.shape(), part, i)) + " is ";
  };
  if (!is_float(expected.dtype())) {
    if (std::memcmp(actual.data(), expected.data(), expected.num_bytes()) == 0) return;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      if (actual.element_as_int(i) == expected.element_as_int(i)) continue;
      if (bounds.has_steps && bounds.of_operators.contain(index, i, actual, 0)) continue;
      wrong(kernel, element(i) + std::to_string(actual.element_as_int(i)) + ", the reference gives " +
                        std::to_string(expected.element_as_int(i)));
    }
    return;
  }
  Allowance allowance(kernel.tolerance, reference, reference.compared[index].output, whole);
  if (are_near(actual, expected, allowance.value())) return;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = actual.element_as_double(i);
    const double b = expected.element_as_double(i);
    const bool special = !std::isfinite(a) || !std::isfinite(b);
    const double difference = std::fabs(a - b);
    bool fits = special ? (std::isnan(a) && std::isnan(b)) || a == b : difference <= allowance.value();
    if (!fits && !special && allowance.widen()) fits = difference <= allowance.value();
    if (!fits && !special && bounds.has_steps) {
      fits = bounds.of_operators.contain(index, i, actual, allowance.value());
    } else if (!fits && !special && kernel.tolerance > 0) {
      // Of a difference that nearly cancels little is left, which is as far off as its terms are.
      fits = bounds.sensitivity.allows(index, i, difference - allowance.value()) ||
             bounds.of_operators.contain_unmoved(index, i, actual, allowance.value());
    }
    if (!fits) {
      wrong(kernel, element(i) + std::to_string(a) + ", the reference gives " + std::to_string(b) +
                        ", allowed difference " + std::to_string(allowance.value()));
    }
  }
}

bool is_partial(const KernelReference& reference) {
  return std::any_of(reference.compared.begin(), reference.compared.end(),
                     [](const ComparedPart& each) { return each.part.has_value(); });
}

/// What outputs hold before a kernel runs: as elements of four bytes and more no number that one computes.
constexpr int kUnwritten = 0xa5;

/// The first element whose bytes are all kUnwritten, or nothing.
template <size_t kBytes>
std::optional<size_t> find_unwritten(const Tensor& output) {
  unsigned char pattern[kBytes];
  std::memset(pattern, kUnwritten, kBytes);
  const auto* data = static_cast<const unsigned char*>(output.data());
  for (size_t i = 0; i < static_cast<size_t>(output.num_elements()); ++i) {
    if (std::memcmp(data + i * kBytes, pattern, kBytes) == 0) return i;
  }
  return std::nullopt;
}

/// Outputs of which parts alone are compared, too, are written everywhere.
void check_written(const plan::Kernel& kernel, const Tensor& output) {
  const size_t bytes = dtype_bytes(output.dtype());
  const std::optional<size_t> found = bytes == 4   ? find_unwritten<4>(output)
                                      : bytes == 8 ? find_unwritten<8>(output)
                                                   : std::nullopt;
  if (found) wrong(kernel, "element " + std::to_string(*found) + " is not written");
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

namespace {

/// Outputs; or why the reference refuses the inputs.
void evaluate(const plan::Kernel& kernel, KernelReference& reference) {
  try {
    reference.outputs = evaluate_parts(kernel, reference.compared, reference.inputs);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
    reference.refusal = error.message();
  }
}

/// The reference on integers in [0, below).
KernelReference reference_below(const plan::Kernel& kernel, const std::vector<const Tensor*>& constants,
                                int64_t below, Compares compares) {
  const ir::Graph& region = *kernel.region;
  const bool whole = rounds_sums(kernel);
  KernelReference reference;
  reference.compared = compares == Compares::kParts ? parts_to_compare(kernel) : whole_outputs(kernel);
  for (size_t i = 0; i < region.inputs().size(); ++i) {
    const ir::ValueType& type = region.value(region.inputs()[i]).type;
    reference.inputs.push_back(constants[i] != nullptr ? plan::as_kernels_read(*constants[i])
                                                       : seeded_tensor(type, i + 1, below, whole));
  }
  evaluate(kernel, reference);
  return reference;
}

}  // namespace

std::vector<const Tensor*> constants_of(const ir::Graph& graph, const std::vector<ir::ValueId>& inputs) {
  std::vector<const Tensor*> constants;
  for (const ir::ValueId input : inputs) {
    const std::optional<Tensor>& constant = graph.value(input).constant;
    constants.push_back(constant ? &*constant : nullptr);
  }
  return constants;
}

KernelReference make_reference(const plan::Kernel& kernel, const std::vector<const Tensor*>& constants,
                               Compares compares) {
  return reference_below(kernel, constants, kSeededIntegers, compares);
}

KernelReference make_accepted_reference(const plan::Kernel& kernel,
                                        const std::vector<const Tensor*>& constants, Compares compares) {
  KernelReference reference = make_reference(kernel, constants, compares);
  // Integers may be indices of something with few elements.
  for (int64_t below = kSeededIntegers / 2; !reference.refusal.empty() && below > 0; below /= 2)
    reference = reference_below(kernel, constants, below, compares);
  return reference;
}

namespace {

/// Whether the kernel need not look at all that it could read: what is not chosen has no error.
bool chooses(const plan::Kernel& kernel) {
  const std::deque<ir::Node>& nodes = kernel.region->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& node) {
    // Of what is computed in the kernel itself, only what is gathered is.
    const bool gathers = (node.op == "gather" || node.op == "gather_elements") &&
                         kernel.region->value(node.inputs[0]).producer != ir::kAbsent;
    return gathers || node.op == "where" || node.op == "fill_behind" || node.op == "slice";
  });
}

/// Whether the reference refuses the data somewhere: an index that no compared part looks at is one, too.
bool refuses_elsewhere(const plan::Kernel& kernel, const KernelReference& reference) {
  KernelReference all;
  all.inputs = reference.inputs;
  all.compared = whole_outputs(kernel);
  if (is_partial(reference)) evaluate(kernel, all);
  return !all.refusal.empty();
}

}  // namespace

Tensor unwritten_tensor(const ir::ValueType& type) {
  Tensor tensor(type.dtype, type.shape);
  std::memset(tensor.data(), kUnwritten, tensor.num_bytes());
  return tensor;
}

void check_outputs(const plan::Kernel& kernel, const KernelReference& reference, int32_t code,
                   const std::vector<Tensor>& outputs) {
  if (!reference.refusal.empty()) {
    // What makes no element looks at none.
    const bool makes_some = std::any_of(outputs.begin(), outputs.end(),
                                        [](const Tensor& output) { return output.num_elements() != 0; });
    if (code == TM_OK && makes_some && !chooses(kernel))
      wrong(kernel, "the reference refuses the data (" + reference.refusal + "), the kernel does not");
    return;
  }
  if (code != TM_OK && refuses_elsewhere(kernel, reference)) return;
  if (code != TM_OK)
    wrong(kernel, "returned " + std::to_string(code) + " for data that the reference accepts");
  Bounds bounds{Sensitivity(kernel, reference), BoundsOfParts(kernel, reference.compared, reference.inputs),
                steps_behind_inexact(kernel)};
  for (size_t i = 0; i < reference.outputs.size(); ++i)
    compare(kernel, outputs[reference.compared[i].output], reference, i, bounds);
  for (size_t i = 0; is_partial(reference) && i < outputs.size(); ++i) check_written(kernel, outputs[i]);
}

void verify_kernel(const plan::Kernel& kernel, tm_kernel entry, const plan::KernelWorkspace& workspace,
                   const std::vector<const Tensor*>& constants, Compares compares) {
  const auto check = [&](KernelReference reference) {
    std::vector<Tensor> outputs;
    std::vector<void*> buffers;
    for (Tensor& input : reference.inputs) buffers.push_back(input.data());
    for (ir::ValueId output : kernel.region->outputs()) {
      const ir::ValueType& type = kernel.region->value(output).type;
      outputs.push_back(unwritten_tensor(type));
      buffers.push_back(outputs.back().data());
    }
    const int32_t code = run_kernel(entry, buffers, workspace);
    check_outputs(kernel, reference, code, outputs);
    return reference.refusal.empty() && code == TM_OK;
  };
  // What is refused says nothing about values.
  if (!check(make_reference(kernel, constants, compares)))
    check(make_accepted_reference(kernel, constants, compares));
}

bool is_quick_to_verify(const plan::Kernel& kernel) {
  int64_t bytes = 0;
  for (const std::vector<ir::ValueId>* values : {&kernel.region->inputs(), &kernel.region->outputs()}) {
    for (ir::ValueId id : *values) {
      const ir::ValueType& type = kernel.region->value(id).type;
      // A tensor has 2^40 bytes at most and a kernel few of them: the sum does not wrap.
      bytes += num_bytes(type.shape, type.dtype);
    }
  }
  return bytes <= kSampleBytes && kernel.flops <= kSampleFlops;
}

VerifyMode parse_verify_mode(const std::string& text) {
  if (text == "none") return VerifyMode::kNone;
  if (text == "sample") return VerifyMode::kSample;
  if (text == "full") return VerifyMode::kFull;
  throw Error(ErrorCode::kInvalidArgument, "verify is \"" + text + "\", expected full, sample or none");
}

}  // namespace tensormill::driver
