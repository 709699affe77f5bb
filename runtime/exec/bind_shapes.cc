// How inputs' shapes bind the free dims, and what is set before it fits.
#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/text.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/package/choose_plan.h"

namespace tensormill::exec {

namespace {

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_long_name(dtype)) + " " + to_string(shown_shape(dtype, shape));
}

Tensor copy_of(DType dtype, const Shape& shape, const void* data) {
  Tensor copy(dtype, shape);
  if (copy.num_bytes() != 0) std::memcpy(copy.data(), data, static_cast<size_t>(copy.num_bytes()));
  return copy;
}

/// The place of a declared extent among the free dims, if it is one.
std::optional<size_t> free_dim(const package::PlanSet& plans, const Dim& declared) {
  const std::string* name = std::get_if<std::string>(&declared);
  if (name == nullptr) return std::nullopt;
  const auto found = std::find(plans.free_dims.begin(), plans.free_dims.end(), *name);
  return static_cast<size_t>(found - plans.free_dims.begin());
}

/// Which free dims are not what the model takes, and `why` it takes that.
std::string differing_dims(const DimShape& declared, const Shape& given, const Shape& taken,
                           const std::string& why) {
  std::string text;
  for (size_t d = 0; d < std::min({declared.size(), given.size(), taken.size()}); ++d) {
    const std::string* name = std::get_if<std::string>(&declared[d]);
    if (name == nullptr || given[d] == taken[d]) continue;
    text += (text.empty() ? ": \"" : ", \"") + *name + "\" is " + std::to_string(given[d]) + why +
            std::to_string(taken[d]);
  }
  return text;
}

}  // namespace

Tensor GraphExecutor::input_copy(size_t index) const {
  const package::Port& port = inputs()[index];
  return copy_of(port.dtype, concrete_shape(port.shape), address(port.buffer));
}

void GraphExecutor::bind_dims(const std::vector<int64_t>& dims) {
  if (dims == bound_plan_->dims) return refused_.reset();
  change_plan(package_->bind(dims));
}

void GraphExecutor::change_plan(std::shared_ptr<const package::BoundPlan> plan) {
  std::vector<std::optional<Tensor>> kept(inputs().size());
  for (size_t i = 0; i < kept.size(); ++i) {
    if (input_set_[i] && plan->plan.inputs[i].shape == inputs()[i].shape) kept[i] = input_copy(i);
  }
  bind_plan(std::move(plan));
  refused_.reset();
  input_set_.assign(kept.size(), false);
  // Their bytes alone: what waits for other inputs decides nothing here.
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    const std::span<std::byte> target = input_bytes(i);
    if (!target.empty()) std::memcpy(target.data(), kept[i]->data(), target.size());
  }
}

std::vector<std::optional<int64_t>> GraphExecutor::named_dims(size_t index, const TensorView& tensor) const {
  const package::PlanSet& plans = package_->package().plans();
  const DimShape& declared = plans.input_shapes[index];
  std::vector<std::optional<int64_t>> named(plans.free_dims.size());
  bool fits = tensor.shape.size() == declared.size() && dtype_fits(inputs()[index].dtype, tensor.dtype);
  for (size_t d = 0; fits && d < declared.size(); ++d) {
    const int64_t extent = tensor.shape[d];
    const std::optional<size_t> at = free_dim(plans, declared[d]);
    if (!at) {
      fits = extent == std::get<int64_t>(declared[d]);
      continue;
    }
    fits = extent >= 0 && extent <= package::kMaxFreeDim && named[*at].value_or(extent) == extent;
    named[*at] = extent;
  }
  if (!fits) {
    throw Error(ErrorCode::kInvalidTensor, "input \"" + inputs()[index].name + "\" is " +
                                               type_text(tensor.dtype, tensor.shape) + ", expected " +
                                               std::string(dtype_long_name(inputs()[index].dtype)) + " " +
                                               to_string(shown_shape(inputs()[index].dtype, declared)));
  }
  return named;
}

void GraphExecutor::check_declared(size_t index, const TensorView& tensor) const {
  // The width of strings is fitted to the input's.
  if (inputs()[index].dtype == kString && tensor.dtype == kString) return;
  named_dims(index, tensor);
}

bool GraphExecutor::names_all(const std::vector<std::optional<int64_t>>& named) const {
  for (const DimShape& declared : package_->package().plans().input_shapes) {
    for (const Dim& extent : declared) {
      const std::optional<size_t> at = free_dim(package_->package().plans(), extent);
      if (at && !named[*at]) return false;
    }
  }
  return true;
}

std::vector<int64_t> GraphExecutor::dims_of(size_t index,
                                            const std::vector<std::optional<int64_t>>& wanted) const {
  const package::PlanSet& plans = package_->package().plans();
  const auto name = [](const std::vector<std::optional<int64_t>>& named, std::vector<int64_t>& dims) {
    for (size_t at = 0; at < dims.size(); ++at) dims[at] = named[at].value_or(dims[at]);
  };
  std::vector<int64_t> dims = bound_plan_->dims;
  for (const auto& [input, tensor] : waiting_) {
    if (input != index) name(named_dims(input, {tensor.dtype(), tensor.shape(), tensor.data()}), dims);
  }
  name(wanted, dims);
  if (!waiting_.empty() && package::has_plan(plans, dims)) return dims;
  dims = bound_plan_->dims;
  name(wanted, dims);
  return package::settled_dims(plans, dims, wanted);
}

void GraphExecutor::bind_wanted(size_t index, const std::vector<std::optional<int64_t>>& named,
                                const std::vector<std::optional<int64_t>>& wanted) {
  const package::PlanSet& plans = package_->package().plans();
  std::vector<int64_t> dims = dims_of(index, wanted);
  // What is set and loses its shape though no dim of it was named may get it back by an input that is to
  // come.
  std::map<size_t, Tensor> lost;
  for (size_t i = 0; i < inputs().size(); ++i) {
    bool follows = false, is_named = false;
    for (const Dim& declared : plans.input_shapes[i]) {
      const std::optional<size_t> at = free_dim(plans, declared);
      if (!at || dims[*at] == bound_plan_->dims[*at]) continue;
      (named[*at] ? is_named : follows) = true;
      if (named[*at] && index < inputs().size())
        unset_by_[i] = "input \"" + inputs()[index].name + "\" has " + std::to_string(dims[*at]) + " for \"" +
                       plans.free_dims[*at] + "\", an input before it " +
                       std::to_string(bound_plan_->dims[*at]);
    }
    if (input_set_[i] && i != index && follows && !is_named) lost.emplace(i, input_copy(i));
  }
  bind_dims(dims);
  for (auto& [input, copy] : lost) waiting_.insert_or_assign(input, std::move(copy));
}

bool GraphExecutor::bind_shape(size_t index, const TensorView& tensor) {
  const std::vector<std::optional<int64_t>> named = named_dims(index, tensor);
  std::vector<std::optional<int64_t>> wanted = refused_ ? wanted_ : named;
  for (size_t at = 0; at < named.size(); ++at) {
    if (named[at]) wanted[at] = named[at];
  }
  const auto wait = [&] {
    waiting_.insert_or_assign(index, copy_of(tensor.dtype, tensor.shape, tensor.data));
    input_set_[index] = false;
    return false;
  };
  try {
    bind_wanted(index, named, wanted);
  } catch (const Error& error) {
    // Beside what the other inputs were no plan takes it; what they are to be may be something else.
    if (names_all(named) && !package_->interprets()) throw;
    refused_ = error;
    wanted_ = std::move(wanted);
    return wait();
  }
  waiting_.erase(index);
  const std::vector<int64_t>& dims = bound_plan_->dims;
  for (size_t at = 0; at < dims.size(); ++at) {
    if (named[at].value_or(dims[at]) != dims[at]) return wait();
  }
  set_waiting();
  return true;
}

void GraphExecutor::retry_refused() {
  if (!refused_ || refused_->code() != ErrorCode::kMemoryBudget) return;
  bind_wanted(inputs().size(), wanted_, wanted_);
  set_waiting();
}

std::vector<int64_t> GraphExecutor::wanted_dims() const {
  std::vector<std::optional<int64_t>> all(bound_plan_->dims.size());
  for (size_t i = 0; i < inputs().size(); ++i) {
    const package::Port& port = inputs()[i];
    const auto waiting = waiting_.find(i);
    if (waiting == waiting_.end() && !input_set_[i]) continue;
    const Shape shape = waiting == waiting_.end() ? concrete_shape(port.shape) : waiting->second.shape();
    const std::vector<std::optional<int64_t>> named = named_dims(i, {port.dtype, shape, nullptr});
    for (size_t at = 0; at < all.size(); ++at) {
      if (named[at] && all[at].value_or(*named[at]) != *named[at]) {
        throw Error(ErrorCode::kInvalidTensor, "input \"" + port.name + "\" has " +
                                                   std::to_string(*named[at]) + " for \"" +
                                                   package_->package().plans().free_dims[at] +
                                                   "\", an input before it " + std::to_string(*all[at]));
      }
      if (named[at]) all[at] = named[at];
    }
  }
  std::vector<int64_t> dims = bound_plan_->dims;
  for (size_t at = 0; at < dims.size(); ++at) dims[at] = all[at].value_or(dims[at]);
  return dims;
}

void GraphExecutor::settle_shapes() {
  if (!refused_ && waiting_.empty()) return;
  if (!package_->interprets()) return check_agreed();
  try {
    change_plan(package_->interpret(wanted_dims()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidTensor) throw;
    // What the plans say of it names the inputs.
    try {
      check_agreed();
    } catch (const Error& of_plans) {
      if (of_plans.message() == error.message()) throw;
      throw Error(error.code(), error.message() + "; " + of_plans.message());
    }
    throw;
  }
  set_waiting();
}

void GraphExecutor::bind_values() {
  if (!package_->interprets_runs() && !bound_plan_->is_single_use) return;
  package::RunValues values;
  for (size_t i = 0; i < inputs().size(); ++i) values.emplace(inputs()[i].name, input_copy(i));
  change_plan(package_->interpret_run(dims(), values));
  check_set();
}

void GraphExecutor::set_waiting() {
  std::map<size_t, Tensor> waiting;
  waiting.swap(waiting_);
  for (auto& [index, tensor] : waiting) {
    if (tensor.shape() == concrete_shape(inputs()[index].shape)) {
      set_fitted(index, {tensor.dtype(), tensor.shape(), tensor.data()});
    } else {
      waiting_.emplace(index, std::move(tensor));
    }
  }
}

void GraphExecutor::check_agreed() const {
  if (refused_) throw Error(*refused_);
  if (waiting_.empty()) return;
  const auto& [index, tensor] = *waiting_.begin();
  const package::Port& port = inputs()[index];
  const Shape &given = tensor.shape(), taken = concrete_shape(port.shape);
  throw Error(ErrorCode::kInvalidTensor, "input \"" + port.name + "\" is " + type_text(port.dtype, given) +
                                             ", beside the other inputs the model takes " +
                                             type_text(port.dtype, taken) +
                                             differing_dims(package_->package().plans().input_shapes[index],
                                                            given, taken, " and follows from them as "));
}

void GraphExecutor::check_set() const {
  check_agreed();
  for (size_t i = 0; i < input_set_.size(); ++i) {
    if (input_set_[i]) continue;
    const auto other = unset_by_.find(i);
    throw Error(ErrorCode::kInvalidTensor, "input \"" + inputs()[i].name + "\" is not set" +
                                               (other == unset_by_.end() ? "" : ": " + other->second));
  }
}

bool GraphExecutor::fit_shape(size_t index, const TensorView& tensor) {
  const auto buffer = [&]() -> const package::Buffer& {
    return plan().buffers[static_cast<size_t>(inputs()[index].buffer)];
  };
  // With what waits there may be a plan for both.
  const bool is_other = refused_.has_value() || !waiting_.empty() || tensor.shape != buffer().shape;
  const bool binds = !package_->package().plans().free_dims.empty() && is_other;
  if (binds && !bind_shape(index, tensor)) return false;
  // A plan may hold an extent that it names: of some dims the model takes one number alone.
  const package::Port& port = inputs()[index];
  if (!dtype_fits(port.dtype, tensor.dtype) || tensor.shape != buffer().shape) {
    const package::PlanSet& plans = package_->package().plans();
    throw Error(ErrorCode::kInvalidTensor,
                "input \"" + port.name + "\" is " + type_text(tensor.dtype, tensor.shape) + ", expected " +
                    type_text(port.dtype, buffer().shape) +
                    (!plans.free_dims.empty() ? differing_dims(plans.input_shapes[index], tensor.shape,
                                                               buffer().shape, " and may only be ")
                                              : ""));
  }
  waiting_.erase(index);
  return true;
}

void GraphExecutor::set_fitted(size_t index, const TensorView& tensor) {
  if (!fit_shape(index, tensor)) return;
  const std::span<std::byte> target = input_bytes(index);
  if (!target.empty()) std::memcpy(target.data(), tensor.data, target.size());
}

}  // namespace tensormill::exec
