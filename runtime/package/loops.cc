#include "runtime/package/loops.h"

#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "runtime/package/json_fields.h"

namespace tensormill::package {

namespace {

constexpr std::string_view kBegin = "loop_begin", kEnd = "loop_end";

bool is_host(const Step& step, std::string_view function) {
  return step.kind == StepKind::kHost && step.function == function;
}

/// The attributes of either step.
struct Form {
  int64_t loop = 0, carried = 0, max_trips = 0, condition = 0;
};

Form form_of(const Step& step, const std::string& pointer) {
  Json json;
  try {
    json = parse_json(step.attributes);
  } catch (const Error& error) {
    throw_invalid(pointer + "/attributes", error.message());
  }
  if (!json.is_object()) throw_invalid(pointer + "/attributes", "the attributes of a loop are no object");
  JsonFields fields(json, pointer + "/attributes");
  Form form;
  form.loop = fields.integer("loop", 0, kMaxPlanSteps);
  form.carried = fields.integer("carried", 0, kMaxStepArguments);
  form.condition = fields.integer("condition", 0, 1);
  if (is_host(step, kBegin)) {
    form.max_trips = fields.integer("max_trips", 0, 1);
  }
  fields.finish();
  return form;
}

/// Hands out the operands of a step in their order.
class Operands {
public:
  Operands(const Step& step, bool outputs, const std::string& pointer) : pointer_(pointer) {
    const size_t first = step.args.size() - std::min(step.args.size(), step.outputs.size());
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (step.outputs[i] != static_cast<int32_t>(first + i))
        throw_invalid(pointer + "/outputs", "the results of a loop do not stand behind its operands");
    }
    const auto middle = step.args.begin() + static_cast<std::ptrdiff_t>(first);
    ids_ = outputs ? std::vector<int32_t>(middle, step.args.end())
                   : std::vector<int32_t>(step.args.begin(), middle);
  }
  size_t left() const { return ids_.size() - next_; }
  int32_t one() { return many(1)[0]; }
  std::vector<int32_t> many(size_t count) {
    if (count > left()) throw_invalid(pointer_ + "/args", "a loop has too few operands");
    const auto from = ids_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ += count;
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }

private:
  const std::string& pointer_;
  std::vector<int32_t> ids_;
  size_t next_ = 0;
};

/// What copying the operands of a loop needs of their types and sizes.
class LoopChecks {
public:
  explicit LoopChecks(const ExecPlan& plan) : plan_(plan) {}

  void run(const Loop& loop) {
    step_ = loop.begin;
    if (loop.max_trips >= 0) check_one(loop.max_trips, DType::kInt64);
    if (loop.first_condition >= 0) check_one(loop.first_condition, DType::kBool);
    check_one(loop.iteration, DType::kInt64);
    check_equal(loop.initial, loop.carried);
    check_rows(loop.rows, loop.scanned);
    step_ = loop.end;
    if (loop.next_condition >= 0) check_one(loop.next_condition, DType::kBool);
    check_one(loop.trips, DType::kInt64);
    check_equal(loop.next, loop.carried);
    check_equal(loop.final, loop.carried);
    check_rows(loop.parts, loop.stacked);
  }

private:
  const Buffer& buffer(int32_t id) const { return plan_.buffers[static_cast<size_t>(id)]; }

  [[noreturn]] void fail(const std::string& message) const {
    throw_invalid("/steps/" + std::to_string(step_) + "/args", message);
  }

  void check_one(int32_t id, DType dtype) const {
    if (buffer(id).dtype != dtype || num_elements(buffer(id).shape) != 1)
      fail("buffer " + std::to_string(id) + " is no one element of " + std::string(dtype_long_name(dtype)));
  }

  void check_equal(const std::vector<int32_t>& a, const std::vector<int32_t>& b) const {
    for (size_t i = 0; i < a.size(); ++i) {
      const Buffer &one = buffer(a[i]), &other = buffer(b[i]);
      if (one.dtype != other.dtype || one.shape != other.shape || one.bytes != other.bytes)
        fail("buffers " + std::to_string(a[i]) + " and " + std::to_string(b[i]) + " have other types");
    }
  }

  /// Each of `rows` is what is at one place of the first axis of the one in `all`; those axes are equal.
  void check_rows(const std::vector<int32_t>& rows, const std::vector<int32_t>& all) const {
    if (rows.size() != all.size()) fail("not one row of each value");
    for (size_t i = 0; i < rows.size(); ++i) {
      const Buffer &row = buffer(rows[i]), &whole = buffer(all[i]);
      const bool fits = row.dtype == whole.dtype && row.shape.size() + 1 == whole.shape.size() &&
                        std::equal(row.shape.begin(), row.shape.end(), whole.shape.begin() + 1) &&
                        row.bytes == num_bytes(row.shape, row.dtype) &&
                        whole.bytes == num_bytes(whole.shape, whole.dtype) &&
                        whole.shape[0] == buffer(all[0]).shape[0];
      if (!fits) fail("buffer " + std::to_string(rows[i]) + " is no row of buffer " + std::to_string(all[i]));
    }
  }

  const ExecPlan& plan_;
  size_t step_ = 0;
};

class LoopReader {
public:
  explicit LoopReader(const ExecPlan& plan) : plan_(plan) {}

  std::vector<Loop> run() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (begins_loop(plan_.steps[i])) begin(i);
      if (ends_loop(plan_.steps[i])) end(i);
    }
    if (!open_.empty())
      throw_invalid("/steps/" + std::to_string(loops_[open_.back()].begin), "a loop without an end");
    check_loops(plan_, loops_);
    return std::move(loops_);
  }

private:
  void begin(size_t at) {
    const std::string pointer = "/steps/" + std::to_string(at);
    const Step& step = plan_.steps[at];
    const Form form = form_of(step, pointer);
    if (!numbers_.insert(form.loop).second)
      throw_invalid(pointer + "/attributes/loop", "two loops have the number " + std::to_string(form.loop));
    if (open_.size() >= kMaxLoopDepth)
      throw_invalid(pointer, "more than " + std::to_string(kMaxLoopDepth) + " loops inside each other");
    const auto carried = static_cast<size_t>(form.carried);
    Operands inputs(step, false, pointer), outputs(step, true, pointer);
    Loop loop;
    loop.begin = at;
    if (!open_.empty()) loop.outer = static_cast<int32_t>(open_.back());
    if (form.max_trips != 0) loop.max_trips = inputs.one();
    if (form.condition != 0) loop.first_condition = inputs.one();
    loop.initial = inputs.many(carried);
    loop.scanned = inputs.many(inputs.left());
    loop.iteration = outputs.one();
    loop.carried = outputs.many(carried);
    loop.rows = outputs.many(outputs.left());
    open_.push_back(loops_.size());
    forms_.push_back(form);
    loops_.push_back(std::move(loop));
  }

  void end(size_t at) {
    const std::string pointer = "/steps/" + std::to_string(at);
    const Step& step = plan_.steps[at];
    const Form form = form_of(step, pointer);
    if (open_.empty() || forms_[open_.back()].loop != form.loop)
      throw_invalid(pointer, "the end of a loop that did not begin here");
    Loop& loop = loops_[open_.back()];
    const auto carried = static_cast<size_t>(form.carried);
    if (carried != loop.carried.size())
      throw_invalid(pointer + "/attributes/carried", std::to_string(carried) + " values for the loop's " +
                                                         std::to_string(loop.carried.size()));
    Operands inputs(step, false, pointer), outputs(step, true, pointer);
    loop.end = at;
    if (inputs.one() != loop.iteration)
      throw_invalid(pointer + "/args", "the first operand is not the number of the iteration");
    if (form.condition != 0) loop.next_condition = inputs.one();
    loop.next = inputs.many(carried);
    loop.parts = inputs.many(inputs.left());
    loop.final = outputs.many(carried);
    loop.stacked = outputs.many(loop.parts.size());
    loop.trips = outputs.one();
    if (outputs.left() != 0) throw_invalid(pointer + "/args", "a loop has too many results");
    open_.pop_back();
  }

  const ExecPlan& plan_;
  std::vector<Loop> loops_;
  std::vector<Form> forms_;   ///< of each of them
  std::vector<size_t> open_;  ///< the innermost last
  std::set<int64_t> numbers_;
};

/// Whether the buffer is a constant or what a step without operands makes: extents' values.
bool is_fixed(const ExecPlan& plan, int32_t id) {
  const int32_t root = root_buffer(plan, id);
  if (plan.buffers[static_cast<size_t>(root)].kind == BufferKind::kConstant) return true;
  const auto writes = [&](const Step& step) {
    return std::any_of(step.outputs.begin(), step.outputs.end(), [&](int32_t position) {
      return root_buffer(plan, step.args[static_cast<size_t>(position)]) == root;
    });
  };
  const auto writer = std::find_if(plan.steps.begin(), plan.steps.end(), writes);
  return writer != plan.steps.end() && writer->args.size() == writer->outputs.size();
}

}  // namespace

bool begins_loop(const Step& step) { return is_host(step, kBegin); }
bool ends_loop(const Step& step) { return is_host(step, kEnd); }

std::vector<Loop> loops_of(const ExecPlan& plan) { return LoopReader(plan).run(); }

void check_loops(const ExecPlan& plan, std::span<const Loop> loops) {
  LoopChecks checks(plan);
  for (const Loop& loop : loops) checks.run(loop);
}

bool is_staged(const ExecPlan& plan, const Loop& loop, size_t index) {
  const int32_t next = loop.next[index];
  if (next == loop.carried[index]) return false;
  return std::any_of(loop.carried.begin(), loop.carried.end(),
                     [&](int32_t carried) { return root_buffer(plan, carried) == root_buffer(plan, next); });
}

int64_t staged_bytes(const ExecPlan& plan, const Loop& loop) {
  int64_t bytes = 0;
  for (size_t i = 0; i < loop.next.size(); ++i) {
    // As many as the values have that lie in the arena, so that the sum is bounded as theirs.
    if (is_staged(plan, loop, i)) bytes += plan.buffers[static_cast<size_t>(loop.next[i])].bytes;
  }
  return bytes;
}

bool has_loops_decided_by_data(const ExecPlan& plan) {
  const std::vector<Loop> loops = loops_of(plan);
  return std::any_of(loops.begin(), loops.end(), [&](const Loop& loop) {
    return loop.first_condition >= 0 || loop.next_condition >= 0 ||
           (loop.max_trips >= 0 && !is_fixed(plan, loop.max_trips));
  });
}

}  // namespace tensormill::package
