/// The executor's program: what `mod.json` holds. The compiler fills an ExecPlan, the executor runs it.
///
/// A *buffer* is storage of a known size; a *step* runs one kernel over buffers. Where temporaries lie in the
/// arena is not written here: it is planned when the package is bound (plan_memory.h), deterministically.
///
/// Shapes are logical shapes; `bytes` is the storage, at least the dense size of the shape and larger when
/// the layout is blocked or padded. Every buffer starts 64-byte aligned and has 64 readable bytes after it.
/// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tensormill::package {

inline constexpr int64_t kPlanFormatVersion = 1;

/// Limits of a plan; past them it is refused.
inline constexpr int64_t kMaxPlanBuffers = 1 << 20;
inline constexpr int64_t kMaxPlanSteps = 1 << 20;
inline constexpr int64_t kMaxStepArguments = 4096;
inline constexpr int64_t kMaxRank = 32;
/// Storage of one buffer or workspace.
inline constexpr int64_t kMaxBufferBytes = int64_t{1} << 40;

enum class BufferKind : uint8_t {
  kInput,     ///< set by the caller, never written by a step, lives through the run
  kOutput,    ///< written by steps, lives until the next run
  kConstant,  ///< in mod.params
  kTemp,      ///< lives from its first write to its last read
  kView       ///< a range of another buffer, which is not itself a view
};

struct Buffer {
  std::string name;  ///< the model's value, or "" for what the compiler made; for people
  BufferKind kind = BufferKind::kTemp;
  DType dtype = DType::kFloat32;
  Shape shape;
  int64_t bytes = 0;
  /// kView: the root buffer and where the view starts in it, a multiple of 64.
  int32_t view_of = -1;
  int64_t view_offset = 0;
  /// kConstant: where in mod.params, a multiple of 64. mod.params has 64 bytes after the last constant.
  int64_t params_offset = 0;
};

/// An input or output of the model. An output may name any buffer: an input that is passed through, a
/// constant that folding left, a view. Two outputs may share a buffer; two inputs may not. The buffer of an
/// input or output is dense (bytes is exactly the size of the shape).
struct Port {
  std::string name;
  DType dtype = DType::kFloat32;
  DimShape shape;  ///< all dims bound in format 1; names of free dims arrive with shape variants
  int32_t buffer = -1;
};

enum class StepKind : uint8_t {
  kKernel,  ///< `function` is a symbol of mod.so, called as runtime/abi says
  kHost,    ///< `function` is a row of runtime/host_ops
  kCopy     ///< args {source, target} of equal bytes
};

/// How the workers of a run share a kernel.
enum class Sharing : uint8_t {
  kLaunches,  ///< one worker runs it; the tasks of its parallel loops are for all
  kAll,       ///< all that it computes is in parallel loops: every worker may run it, side by side
  kOne        ///< it has no parallel loop
};

/// Output argument `output` may lie on the bytes of input argument `input`, when that one is dead after the
/// step: the kernel was compiled for it (each element depends on inputs at the same index). Positions in
/// args.
struct InPlace {
  int32_t output = 0;
  int32_t input = 0;
};

struct Step {
  std::string name;  ///< unique; what profiles show: "conv2d_add_relu_12"
  StepKind kind = StepKind::kKernel;
  std::string function;
  std::vector<int32_t> args;     ///< buffer ids in the kernel's parameter order
  std::vector<int32_t> outputs;  ///< positions in args that the step writes (whole); the others are read
  std::vector<int64_t> dims;     ///< values of the kernel's symbolic extents
  std::vector<InPlace> in_place;
  int64_t shared_workspace_bytes = 0;
  int64_t worker_workspace_bytes = 0;  ///< for each worker
  std::vector<std::string> origins;    ///< the model's nodes: named in errors and profiles
  std::string attributes;              ///< kHost: the row's attributes as JSON text, or ""
  int64_t flops = 0;                   ///< for profiles: multiply and add count as two
  int64_t bytes = 0;                   ///< for profiles: bytes that the step reads and writes at least
  Sharing sharing = Sharing::kLaunches;
};

struct ExecPlan {
  int64_t format_version = kPlanFormatVersion;
  int64_t abi_version = 1;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;   ///< in the order of execution
  int64_t params_bytes = 0;  ///< size of mod.params, including the 64 bytes after the last constant
};

/// Throws Error(kInvalidPackage) with a JSON pointer unless: every id is in range, every size is checked and
/// holds its shape, ranges lie inside their roots and mod.params, names are unique, symbols are well formed,
/// no byte is read before a step has written it, nothing writes inputs or constants, and no output argument
/// overlaps another argument except as `in_place` says. The executor relies on exactly this.
void validate_plan(const ExecPlan& plan);

/// Canonical JSON text (validates first): equal plans give equal bytes.
std::string plan_to_json(const ExecPlan& plan);
/// Parses and validates. Throws Error(kInvalidPackage) for anything else than what plan_to_json writes.
ExecPlan plan_from_json(std::string_view text);

/// The storage of `buffer`: itself, or the root of a view.
inline int32_t root_buffer(const ExecPlan& plan, int32_t buffer) {
  const Buffer& value = plan.buffers[static_cast<size_t>(buffer)];
  return value.kind == BufferKind::kView ? value.view_of : buffer;
}

/// [A-Za-z_][A-Za-z0-9_.$]{0,254}: what a kernel's symbol or a host step's name looks like.
bool is_symbol_name(std::string_view name);

}  // namespace tensormill::package
