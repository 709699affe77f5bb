#include "runtime/package/segments.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/package/json_fields.h"
#include "runtime/package/loops.h"
#include "runtime/package/plan_formulas.h"
#include "runtime/package/refused_branches.h"

namespace tensormill::package {

namespace {

/// Whether storage of the shape is within the limits of a plan.
bool fits_limits(const Shape& shape, DType dtype) {
  int64_t bytes = static_cast<int64_t>(dtype_bytes(dtype));
  for (const int64_t extent : shape) {
    if (extent == 0) return true;
  }
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxBufferBytes) return false;
  }
  return true;
}

void set_bytes(Buffer& buffer) {
  constexpr const char* kWhat = "\" would have the shape ";
  if (!fits_limits(buffer.shape, buffer.dtype))
    throw Error(ErrorCode::kMemoryBudget, "\"" + buffer.name + kWhat + to_string(buffer.shape));
  buffer.bytes = num_bytes(buffer.shape, buffer.dtype);
}

const Buffer& result_of(const ExecPlan& plan, const Step& step) {
  return plan.buffers[static_cast<size_t>(step.args.back())];
}

}  // namespace

bool binds_extents(const Step& step) { return step.kind == StepKind::kHost && step.function == kBindStep; }

Segments::Segments(const GenericPlan& generic, const std::string& pointer)
    : generic_(generic), pointer_(pointer), loops_(loops_of(generic.plan)) {
  find_ends(pointer);
  find_segments();
  check_steps(pointer);
}

void Segments::find_ends(const std::string& pointer) {
  const ExecPlan& plan = generic_.plan;
  std::vector<std::pair<int32_t, int32_t>> expected, named;  // step and element
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!binds_extents(step)) continue;
    const bool fits = step.args.size() == 2 && step.outputs == std::vector<int32_t>{1} &&
                      result_of(plan, step).dtype == DType::kInt64 && result_of(plan, step).shape.size() == 1;
    if (!fits || result_of(plan, step).shape[0] > kMaxRunDims)
      throw_invalid(pointer + "/plan/steps/" + std::to_string(i), "it binds no extents");
    for (int64_t element = 0; element < result_of(plan, step).shape[0]; ++element)
      expected.emplace_back(static_cast<int32_t>(i), static_cast<int32_t>(element));
  }
  for (const RunDim& dim : generic_.run_dims) named.emplace_back(dim.step, dim.element);
  // Each number of a step is one dim, in the order of the steps.
  if (named != expected)
    throw_invalid(pointer + "/run_dims", "they are not what the steps " + std::string(kBindStep) + " bind");
  std::set<size_t> ends{plan.steps.size()};
  std::vector<size_t> binding;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (!binds_extents(plan.steps[i])) continue;
    binding.push_back(i);
    if (i + 1 == plan.steps.size() || !binds_extents(plan.steps[i + 1])) ends.insert(i + 1);
  }
  std::vector<Loop> loops = loops_;
  std::erase_if(loops, [&](const Loop& loop) {
    const auto first = std::lower_bound(binding.begin(), binding.end(), loop.begin);
    return first == binding.end() || *first > loop.end;
  });
  for (const Loop& loop : loops) ends.insert(loop.end + 1);
  // What is behind the last step may have extents that it binds.
  ends_.assign(ends.begin(), ends.end());
  if (!binding.empty() && (binding.back() + 1 == plan.steps.size())) ends_.push_back(plan.steps.size());
  for (size_t segment = 0; segment < count(); ++segment) {
    const auto before = std::find_if(named.begin(), named.end(), [&](const auto& each) {
      return static_cast<size_t>(each.first) >= begin(segment);
    });
    bound_.push_back(static_cast<size_t>(before - named.begin()));
    until_.push_back(plan.steps.size());
    // Loops stand in the order of their begins: the innermost one last.
    for (const Loop& loop : loops) {
      if (loop.begin < begin(segment) && begin(segment) <= loop.end) until_.back() = loop.end;
    }
  }
}

bool Segments::is_known_in(size_t known, size_t segment) const {
  return segment == known || until_[known] == generic_.plan.steps.size() || begin(segment) <= until_[known];
}

size_t Segments::later(size_t one, size_t other) const {
  const auto [first, last] = std::minmax(one, other);
  if (!is_known_in(first, last))
    throw_invalid(pointer_ + "/run_dims", "an extent is made of what iterations of different loops bind");
  return last;
}

size_t Segments::of_sides(const PlanGuard& guard) const {
  return later(of_extent(guard.left), of_extent(guard.right));
}

size_t Segments::of_step(size_t step) const {
  return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end() - 1, step) - ends_.begin());
}

size_t Segments::of_formula(const DimFormula& formula) const {
  size_t segment = 0;
  for (const DimProduct& product : formula.products) {
    for (const DimTerm& term : product.factors) segment = later(segment, of_dim(term.dim));
  }
  return segment;
}

size_t Segments::of_extent(const tensormill::Extent& extent) const {
  size_t segment = 0;
  for (const tensormill::Extent::Op& op : extent.ops()) {
    if (op.code == tensormill::Extent::Code::kSymbol)
      segment = later(segment, of_dim(static_cast<int32_t>(op.value)));
  }
  return segment;
}

void Segments::find_segments() {
  parts_.resize(count());
  of_dim_.assign(generic_.dims.size(), 0);
  for (size_t run = 0; run < generic_.run_dims.size(); ++run) {
    const auto segment = std::upper_bound(bound_.begin(), bound_.end(), run) - bound_.begin();
    of_dim_.push_back(static_cast<size_t>(segment));
  }
  for (size_t i = 0; i < generic_.derived.size(); ++i) {
    const DerivedExtent& derived = generic_.derived[i];
    size_t segment = derived.formula ? of_extent(*derived.formula) : of_formula(derived.of);
    if (derived.ratio)
      segment = later(segment, later(of_formula(derived.ratio->up), of_formula(derived.ratio->down)));
    of_dim_.push_back(segment);
    parts_[segment].derived.push_back(i);
  }
  const std::vector<Buffer>& buffers = generic_.plan.buffers;
  is_whole_ = whole_views(generic_);
  of_buffer_.assign(buffers.size(), 0);
  for (size_t i = 0; i < generic_.buffer_holes.size(); ++i) {
    const PlanHole& hole = generic_.buffer_holes[i];
    size_t& segment = of_buffer_[static_cast<size_t>(hole.owner)];
    segment = later(segment, of_formula(hole.value));
    parts_[of_formula(hole.value)].buffer_holes.push_back(i);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind == BufferKind::kConstant) continue;
    // A view is looked at when what it is of is known.
    if (buffers[i].kind == BufferKind::kView)
      of_buffer_[i] = later(of_buffer_[i], of_buffer_[static_cast<size_t>(buffers[i].view_of)]);
    parts_[of_buffer_[i]].buffers.push_back(i);
  }
  for (size_t i = 0; i < generic_.step_holes.size(); ++i)
    parts_[of_formula(generic_.step_holes[i].value)].step_holes.push_back(i);
  for (size_t i = 0; i < generic_.run_guards.size(); ++i) {
    parts_[of_sides(generic_.run_guards[i])].guards.push_back(i);
  }
  for (size_t i = 0; i < loops_.size(); ++i) {
    std::set<size_t> sized;
    for (const size_t step : {loops_[i].begin, loops_[i].end}) {
      for (const int32_t buffer : generic_.plan.steps[step].args)
        sized.insert(of_buffer_[static_cast<size_t>(buffer)]);
    }
    for (const size_t segment : sized) parts_[segment].loops.push_back(i);
  }
}

void Segments::check_steps(const std::string& pointer) const {
  const ExecPlan& plan = generic_.plan;
  const auto check = [&](size_t known, size_t step) {
    const size_t segment = of_step(step);
    if (known <= segment && is_known_in(known, segment)) return;
    throw_invalid(pointer + "/plan/steps/" + std::to_string(step),
                  known > segment ? "an extent of it is bound behind it"
                                  : "an extent of it is one of an iteration of a loop before it");
  };
  const auto of_buffer = [&](int32_t buffer) { return of_buffer_[static_cast<size_t>(buffer)]; };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const int32_t buffer : plan.steps[i].args) check(of_buffer(buffer), i);
  }
  for (const PlanHole& hole : generic_.step_holes)
    check(of_formula(hole.value), static_cast<size_t>(hole.owner));
  // Where a loop has no iterations its results are there all the same.
  for (const Loop& loop : loops_) {
    for (const auto* results : {&loop.final, &loop.stacked}) {
      for (const int32_t buffer : *results) check(of_buffer(buffer), loop.begin);
    }
    check(of_buffer(loop.trips), loop.begin);
  }
  for (const Port& port : plan.outputs) {
    if (until_[of_buffer(port.buffer)] != plan.steps.size())
      throw_invalid(pointer + "/plan/outputs", "an extent of \"" + port.name + "\" is one of an iteration");
  }
  for (const Port& port : plan.inputs) {
    if (of_buffer_[static_cast<size_t>(port.buffer)] > 0)
      throw_invalid(pointer + "/plan/inputs", "an extent of \"" + port.name + "\" is a run's");
  }
  const auto binding = [&](const Step& step) {
    return binds_extents(step) && of_buffer_[static_cast<size_t>(step.args[1])] > 0;
  };
  if (std::any_of(plan.steps.begin(), plan.steps.end(), binding))
    throw_invalid(pointer + "/run_dims", "a run decides how many there are");
}

std::vector<int64_t> Segments::dims_of(std::span<const int64_t> free_dims) const {
  std::vector<int64_t> dims(free_dims.begin(), free_dims.end());
  dims.resize(generic_.num_dims() + generic_.derived.size(), 0);
  return dims;
}

void Segments::derive(size_t segment, std::vector<int64_t>& dims) const {
  const size_t first = generic_.num_dims();
  for (const size_t i : parts_[segment].derived) dims[first + i] = evaluate(generic_.derived[i], dims);
}

std::vector<int64_t> formula_dims(const GenericPlan& generic, std::span<const int64_t> free_dims) {
  if (generic.run_dims.empty()) return with_derived(free_dims, generic.derived);
  const Segments segments(generic, "");
  std::vector<int64_t> dims = segments.dims_of(free_dims);
  segments.derive(0, dims);
  return dims;
}

void Segments::check_numbers(size_t segment, const std::vector<int64_t>& dims) const {
  for (size_t run = segment == 0 ? 0 : bound_[segment - 1]; run < bound_[segment]; ++run) {
    const RunDim& dim = generic_.run_dims[run];
    const int64_t value = dims[generic_.dims.size() + run];
    if (dim.least && value < *dim.least)
      throw Error(ErrorCode::kInvalidTensor, dim.name + " is " + std::to_string(value) + ", the plan takes " +
                                                 std::to_string(*dim.least) + " at least");
  }
  for (const size_t i : parts_[segment].guards) {
    if (const auto broken = broken_by(generic_.run_guards[i], dims))
      throw Error(ErrorCode::kInvalidTensor, *broken);
  }
}

/// What is not known yet has no elements. Views whose extents are known before those of what they are of have
/// these.
void Segments::clear_later(ExecPlan& plan) const {
  for (size_t later = 1; later < count(); ++later) {
    for (const size_t i : parts_[later].buffer_holes) {
      const PlanHole& hole = generic_.buffer_holes[i];
      plan.buffers[static_cast<size_t>(hole.owner)].shape[static_cast<size_t>(hole.position)] = 0;
    }
    for (const size_t i : parts_[later].buffers) set_bytes(plan.buffers[i]);
  }
}

void Segments::fill_buffers(const Parts& parts, const std::vector<int64_t>& dims,
                            const RefusedBranches& refused, ExecPlan& plan) const {
  for (const size_t i : parts.buffer_holes) {
    const PlanHole& hole = generic_.buffer_holes[i];
    plan.buffers[static_cast<size_t>(hole.owner)].shape[static_cast<size_t>(hole.position)] =
        refused.has_buffer(hole.owner) ? 0 : no_less(evaluate(hole.value, dims), 0);
  }
  for (const size_t i : parts.buffer_holes)
    set_bytes(plan.buffers[static_cast<size_t>(generic_.buffer_holes[i].owner)]);
  for (const size_t i : parts.buffers) set_bytes(plan.buffers[i]);
  for (const size_t i : parts.buffers) {
    const Buffer& buffer = plan.buffers[i];
    if (!is_whole_[i] || refused.has_buffer(static_cast<int32_t>(i))) continue;
    const Buffer& root = plan.buffers[static_cast<size_t>(buffer.view_of)];
    if (buffer.bytes != root.bytes || buffer.view_offset != 0)
      throw Error(ErrorCode::kInvalidTensor, "\"" + buffer.name + "\" would be " + to_string(buffer.shape) +
                                                 " of the elements of " + to_string(root.shape));
  }
}

void Segments::bind(size_t segment, const RefusedBranches& refused, std::vector<int64_t>& dims,
                    ExecPlan& plan) const {
  const Parts& parts = parts_[segment];
  check_numbers(segment, dims);
  derive(segment, dims);
  if (segment == 0) clear_later(plan);
  fill_buffers(parts, dims, refused, plan);
  for (const size_t i : parts.step_holes) {
    const PlanHole& hole = generic_.step_holes[i];
    const int64_t extent = refused.has_step(hole.owner) ? 0 : no_less(evaluate(hole.value, dims), 0);
    if (extent > kMaxStepDim)
      throw Error(ErrorCode::kMemoryBudget, "an extent inside of it would be " + std::to_string(extent));
    plan.steps[static_cast<size_t>(hole.owner)].dims[static_cast<size_t>(hole.position)] = extent;
  }
  for (std::vector<Port>* ports : {&plan.inputs, &plan.outputs}) {
    for (Port& port : *ports) {
      const Shape& shape = plan.buffers[static_cast<size_t>(port.buffer)].shape;
      port.shape.assign(shape.begin(), shape.end());
    }
  }
  check_empty(generic_, plan, begin(segment), end(segment));
}

void check_run_dims(const GenericPlan& generic, std::span<const std::string> free_dims,
                    const std::string& pointer) {
  const auto binds_any = std::any_of(generic.plan.steps.begin(), generic.plan.steps.end(), &binds_extents);
  if (generic.run_dims.empty() && generic.run_guards.empty() && !binds_any) return;
  std::set<std::string> names(free_dims.begin(), free_dims.end());
  for (const RunDim& dim : generic.run_dims) {
    if (dim.name.empty() || !names.insert(dim.name).second)
      throw_invalid(pointer + "/run_dims", "a name is empty or stands twice");
  }
  static_cast<void>(Segments(generic, pointer));
}

}  // namespace tensormill::package
