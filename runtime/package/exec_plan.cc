#include "runtime/package/exec_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/error.h"
#include "runtime/base/model_step.h"
#include "runtime/base/tensor.h"
#include "runtime/package/branches.h"
#include "runtime/package/json_fields.h"
#include "runtime/package/loops.h"

namespace tensormill::package {

static_assert(kMaxRank == kMaxTensorRank);

namespace {

constexpr int64_t kAlignment = kTensorAlignment;

/// The written bytes of one root buffer, as disjoint half-open ranges.
class WrittenBytes {
public:
  void add(int64_t begin, int64_t end) {
    auto range = ranges_.upper_bound(begin);
    if (range != ranges_.begin() && std::prev(range)->second >= begin) --range;
    while (range != ranges_.end() && range->first <= end) {
      begin = std::min(begin, range->first);
      end = std::max(end, range->second);
      range = ranges_.erase(range);
    }
    ranges_[begin] = end;
  }
  bool covers(int64_t begin, int64_t end) const {
    if (begin == end) return true;
    auto range = ranges_.upper_bound(begin);
    return range != ranges_.begin() && std::prev(range)->second >= end;
  }

private:
  std::map<int64_t, int64_t> ranges_;
};

/// Where the bytes of a buffer lie.
struct Extent {
  int32_t root;
  int64_t begin;
  int64_t end;
};

Extent extent_of(const ExecPlan& plan, int32_t id) {
  const Buffer& buffer = plan.buffers[static_cast<size_t>(id)];
  const int64_t begin = buffer.kind == BufferKind::kView ? buffer.view_offset : 0;
  return {root_buffer(plan, id), begin, begin + buffer.bytes};
}

bool overlap(const Extent& a, const Extent& b) {
  return a.root == b.root && a.begin < b.end && b.begin < a.end;
}

class PlanValidator {
public:
  explicit PlanValidator(const ExecPlan& plan)
      : plan_(plan), written_(plan.buffers.size()), writer_(plan.buffers.size(), -1) {}

  void validate() {
    if (plan_.abi_version != TM_ABI_VERSION) {
      throw_invalid("/abi_version", "kernel ABI is " + std::to_string(plan_.abi_version) +
                                        ", this program has " + std::to_string(TM_ABI_VERSION));
    }
    if (plan_.params_bytes < 0) throw_invalid("/params_bytes", "size is negative");
    check_count("/buffers", plan_.buffers.size(), kMaxPlanBuffers);
    check_count("/steps", plan_.steps.size(), kMaxPlanSteps);
    for (size_t i = 0; i < plan_.buffers.size(); ++i) check_buffer(i);
    check_ports(plan_.inputs, "/inputs");
    check_ports(plan_.outputs, "/outputs");
    check_input_kinds();
    check_steps();
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      check_written(plan_.outputs[i].buffer, "/outputs/" + std::to_string(i));
    }
  }

private:
  void check_steps() {
    std::set<std::string> names;
    size_t loop = 0;  // how many have begun
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      const std::string pointer = "/steps/" + std::to_string(i);
      if (!names.insert(step.name).second)
        throw_invalid(pointer + "/name", "step name \"" + step.name + "\" is used twice");
      check_form(step, pointer);
    }
    static_cast<void>(branches_of(plan_));
    const std::vector<Loop> loops = loops_of(plan_);
    is_over_.assign(loops.size(), false);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      if (begins_loop(step)) inner_ = static_cast<int32_t>(loop++);
      check_reads(step, "/steps/" + std::to_string(i));
      if (!ends_loop(step)) {
        add_writes(step);
        continue;
      }
      const auto ended = static_cast<size_t>(inner_);
      inner_ = loops[ended].outer;
      is_over_[ended] = true;
      add_writes(step);
    }
  }

  static void check_count(const std::string& pointer, size_t count, int64_t limit) {
    if (count > static_cast<size_t>(limit)) {
      throw_invalid(pointer, std::to_string(count) + " elements, expected at most " + std::to_string(limit));
    }
  }

  void check_id(int32_t id, const std::string& pointer) const {
    if (id < 0 || static_cast<size_t>(id) >= plan_.buffers.size()) {
      throw_invalid(pointer, "buffer " + std::to_string(id) + " does not exist; there are " +
                                 std::to_string(plan_.buffers.size()));
    }
  }

  void check_buffer(size_t index) {
    const Buffer& buffer = plan_.buffers[index];
    const std::string pointer = "/buffers/" + std::to_string(index);
    check_count(pointer + "/shape", buffer.shape.size(), kMaxRank);
    int64_t dense = 0;
    try {
      dense = num_bytes(buffer.shape, buffer.dtype);
    } catch (const Error& error) {
      throw_invalid(pointer + "/shape", error.message());
    }
    if (buffer.bytes < dense || buffer.bytes > kMaxBufferBytes) {
      throw_invalid(pointer + "/bytes", "buffer has " + std::to_string(buffer.bytes) +
                                            " bytes, its shape needs " + std::to_string(dense) +
                                            " of at most " + std::to_string(kMaxBufferBytes));
    }
    if (buffer.kind == BufferKind::kView) check_view(buffer, pointer);
    if (buffer.kind == BufferKind::kConstant) check_constant(buffer, pointer);
    if (buffer.kind == BufferKind::kConstant || buffer.kind == BufferKind::kInput) {
      written_[index].add(0, buffer.bytes);
    }
  }

  void check_view(const Buffer& buffer, const std::string& pointer) const {
    check_id(buffer.view_of, pointer + "/view_of");
    const Buffer& root = plan_.buffers[static_cast<size_t>(buffer.view_of)];
    if (root.kind == BufferKind::kView) throw_invalid(pointer + "/view_of", "a view of a view");
    if (buffer.view_offset < 0 || buffer.view_offset % kAlignment != 0) {
      throw_invalid(pointer + "/view_offset", "offset " + std::to_string(buffer.view_offset) +
                                                  " is not a multiple of " + std::to_string(kAlignment));
    }
    if (buffer.view_offset > root.bytes || buffer.bytes > root.bytes - buffer.view_offset) {
      throw_invalid(pointer, "view of " + std::to_string(buffer.bytes) + " bytes at " +
                                 std::to_string(buffer.view_offset) + " passes the end of its root, " +
                                 std::to_string(root.bytes) + " bytes");
    }
  }

  void check_constant(const Buffer& buffer, const std::string& pointer) const {
    if (buffer.params_offset < 0 || buffer.params_offset % kAlignment != 0) {
      throw_invalid(pointer + "/params_offset", "offset " + std::to_string(buffer.params_offset) +
                                                    " is not a multiple of " + std::to_string(kAlignment));
    }
    const int64_t padding = kTensorPadding;
    if (buffer.params_offset > plan_.params_bytes ||
        buffer.bytes > plan_.params_bytes - buffer.params_offset - padding) {
      throw_invalid(pointer, "constant of " + std::to_string(buffer.bytes) + " bytes at " +
                                 std::to_string(buffer.params_offset) + " and " + std::to_string(padding) +
                                 " bytes of padding pass the end of mod.params, " +
                                 std::to_string(plan_.params_bytes) + " bytes");
    }
  }

  void check_ports(const std::vector<Port>& ports, const std::string& list) const {
    check_count(list, ports.size(), kMaxPlanBuffers);
    std::set<std::string> names;
    for (size_t i = 0; i < ports.size(); ++i) {
      const Port& port = ports[i];
      const std::string pointer = list + "/" + std::to_string(i);
      if (port.name.empty()) throw_invalid(pointer + "/name", "name is empty");
      if (!names.insert(port.name).second) {
        throw_invalid(pointer + "/name", "name \"" + port.name + "\" is used twice");
      }
      check_id(port.buffer, pointer + "/buffer");
      const Buffer& buffer = plan_.buffers[static_cast<size_t>(port.buffer)];
      for (const Dim& dim : port.shape) {
        if (!std::holds_alternative<int64_t>(dim)) throw_invalid(pointer + "/shape", "a dimension is free");
      }
      if (concrete_shape(port.shape) != buffer.shape || port.dtype != buffer.dtype) {
        throw_invalid(pointer, "port is " + std::string(dtype_name(port.dtype)) + to_string(port.shape) +
                                   ", its buffer " + std::string(dtype_name(buffer.dtype)) +
                                   to_string(buffer.shape));
      }
      if (buffer.bytes != num_bytes(buffer.shape, buffer.dtype)) {
        throw_invalid(pointer, "buffer has " + std::to_string(buffer.bytes) + " bytes, a dense " +
                                   to_string(buffer.shape) + " has " +
                                   std::to_string(num_bytes(buffer.shape, buffer.dtype)));
      }
    }
  }

  /// Inputs and buffers of kind input correspond one to one.
  void check_input_kinds() const {
    std::set<int32_t> used;
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const int32_t id = plan_.inputs[i].buffer;
      const std::string pointer = "/inputs/" + std::to_string(i) + "/buffer";
      if (plan_.buffers[static_cast<size_t>(id)].kind != BufferKind::kInput) {
        throw_invalid(pointer, "buffer " + std::to_string(id) + " is not of kind input");
      }
      if (!used.insert(id).second) throw_invalid(pointer, "buffer " + std::to_string(id) + " is used twice");
    }
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].kind == BufferKind::kInput && !used.contains(static_cast<int32_t>(i))) {
        throw_invalid("/buffers/" + std::to_string(i), "no input sets this buffer");
      }
    }
  }

  /// What can be said of a step by itself.
  void check_form(const Step& step, const std::string& pointer) const {
    check_count(pointer + "/args", step.args.size(), kMaxStepArguments);
    check_count(pointer + "/dims", step.dims.size(), kMaxStepArguments);
    if (step.name.empty()) throw_invalid(pointer + "/name", "name is empty");
    if (step.kind != StepKind::kCopy && !is_symbol_name(step.function)) {
      throw_invalid(pointer + "/function", "\"" + step.function + "\" is not a symbol name");
    }
    for (int64_t bytes : {step.shared_workspace_bytes, step.worker_workspace_bytes}) {
      if (bytes < 0 || bytes > kMaxBufferBytes) {
        throw_invalid(pointer, "workspace of " + std::to_string(bytes) + " bytes, expected 0 to " +
                                   std::to_string(kMaxBufferBytes));
      }
    }
    for (size_t i = 0; i < step.args.size(); ++i) {
      check_id(step.args[i], pointer + "/args/" + std::to_string(i));
    }
    const std::vector<bool> is_output = output_flags(step, pointer);
    check_in_place(step, pointer, is_output);
    check_aliases(step, pointer, is_output);
    if (step.kind == StepKind::kCopy) check_copy(step, pointer);
  }

  void check_reads(const Step& step, const std::string& pointer) const {
    std::vector<bool> is_output(step.args.size(), false);
    for (int32_t position : step.outputs) is_output[static_cast<size_t>(position)] = true;
    for (size_t i = 0; i < step.args.size(); ++i) {
      if (!is_output[i]) check_written(step.args[i], pointer + "/args/" + std::to_string(i));
    }
  }

  void add_writes(const Step& step) {
    for (int32_t position : step.outputs) {
      const Extent extent = extent_of(plan_, step.args[static_cast<size_t>(position)]);
      written_[static_cast<size_t>(extent.root)].add(extent.begin, extent.end);
      int32_t& writer = writer_[static_cast<size_t>(extent.root)];
      if (writer < 0 || !is_over_[static_cast<size_t>(writer)]) writer = std::max(writer, inner_);
    }
  }

  std::vector<bool> output_flags(const Step& step, const std::string& pointer) const {
    std::vector<bool> flags(step.args.size(), false);
    for (int32_t position : step.outputs) {
      if (position < 0 || static_cast<size_t>(position) >= step.args.size() ||
          flags[static_cast<size_t>(position)]) {
        throw_invalid(pointer + "/outputs", "position " + std::to_string(position) + " is wrong or repeated");
      }
      flags[static_cast<size_t>(position)] = true;
      const int32_t root = root_buffer(plan_, step.args[static_cast<size_t>(position)]);
      const BufferKind kind = plan_.buffers[static_cast<size_t>(root)].kind;
      if (kind == BufferKind::kInput || kind == BufferKind::kConstant) {
        throw_invalid(pointer + "/outputs",
                      "the step writes buffer " + std::to_string(root) + ", an input or a constant");
      }
    }
    return flags;
  }

  static void check_in_place(const Step& step, const std::string& pointer,
                             const std::vector<bool>& is_output) {
    for (const InPlace& pair : step.in_place) {
      const auto in_range = [&](int32_t position) {
        return position >= 0 && static_cast<size_t>(position) < is_output.size();
      };
      if (!in_range(pair.output) || !in_range(pair.input) || !is_output[static_cast<size_t>(pair.output)] ||
          is_output[static_cast<size_t>(pair.input)]) {
        throw_invalid(pointer + "/in_place", "pair " + std::to_string(pair.output) + ", " +
                                                 std::to_string(pair.input) +
                                                 " is not an output and an input");
      }
    }
  }

  void check_aliases(const Step& step, const std::string& pointer, const std::vector<bool>& is_output) const {
    for (int32_t position : step.outputs) {
      const Extent output = extent_of(plan_, step.args[static_cast<size_t>(position)]);
      for (size_t i = 0; i < step.args.size(); ++i) {
        const Extent other = extent_of(plan_, step.args[i]);
        if (static_cast<int32_t>(i) == position || !overlap(output, other)) continue;
        const bool declared =
            !is_output[i] && output.begin == other.begin && output.end == other.end &&
            std::any_of(step.in_place.begin(), step.in_place.end(), [&](const InPlace& pair) {
              return pair.output == position && pair.input == static_cast<int32_t>(i);
            });
        if (!declared) {
          throw_invalid(pointer + "/args",
                        "arguments " + std::to_string(position) + " and " + std::to_string(i) + " overlap");
        }
      }
    }
  }

  void check_copy(const Step& step, const std::string& pointer) const {
    const bool shaped = step.args.size() == 2 && step.outputs == std::vector<int32_t>{1};
    if (!shaped) throw_invalid(pointer, "a copy has two arguments and writes the second");
    const int64_t source = plan_.buffers[static_cast<size_t>(step.args[0])].bytes;
    const int64_t target = plan_.buffers[static_cast<size_t>(step.args[1])].bytes;
    if (source != target) {
      throw_invalid(pointer, "a copy of " + std::to_string(source) + " bytes to " + std::to_string(target));
    }
  }

  void check_written(int32_t id, const std::string& pointer) const {
    const Extent extent = extent_of(plan_, id);
    if (!written_[static_cast<size_t>(extent.root)].covers(extent.begin, extent.end)) {
      throw_invalid(pointer, "buffer " + std::to_string(id) + " is read before it is written");
    }
    const int32_t writer = writer_[static_cast<size_t>(extent.root)];
    if (writer >= 0 && is_over_[static_cast<size_t>(writer)])
      throw_invalid(pointer, "buffer " + std::to_string(id) +
                                 " is written in a loop, which may have no iteration, and read behind it");
  }

  const ExecPlan& plan_;
  std::vector<WrittenBytes> written_;
  int32_t inner_ = -1;           ///< the loop that the step is in, or -1
  std::vector<int32_t> writer_;  ///< by root buffer: the innermost loop in which it is written, or -1
  std::vector<bool> is_over_;    ///< by loop
};

}  // namespace

bool is_symbol_name(std::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_rest = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '$'; };
  return is_letter(name.front()) && std::all_of(name.begin(), name.end(), is_rest);
}

void validate_plan(const ExecPlan& plan) { PlanValidator(plan).validate(); }

}  // namespace tensormill::package
