#include "compiler/te/interpret.h"

#include "compiler/te/machine.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::te {
namespace {

std::vector<int64_t> evaluated(ActionBuilder& builder, Machine& machine, const std::vector<Expr>& shape) {
  std::vector<int64_t> result;
  Code code;
  std::vector<uint32_t> cells;
  for (const Expr& extent : shape) cells.push_back(builder.compile(extent, code));
  machine.run(code);
  for (const uint32_t cell : cells) result.push_back(machine.cells[cell].i);
  return result;
}

void bind_parameters(const Function& function, std::vector<tensormill::Tensor>& arguments,
                     ActionBuilder& builder, Machine& machine) {
  std::unordered_map<const void*, std::shared_ptr<Shadow>> shadows;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    tensormill::Tensor& argument = arguments[i];
    const uint32_t buffer = builder.buffer_of(parameter.buffer);
    const std::vector<int64_t> extents = evaluated(builder, machine, parameter.buffer->shape);
    TM_CHECK(storage_dtype(argument.dtype()) == parameter.buffer->dtype &&
                 argument.num_elements() == num_elements(extents),
             "argument " + std::to_string(i) + " of " + function.name + " is " +
                 std::string(dtype_name(argument.dtype())) + tensormill::to_string(argument.shape()) +
                 ", parameter " + parameter.buffer->name + " is " +
                 std::string(dtype_name(parameter.buffer->dtype)) + tensormill::to_string(extents));
    machine.bind(buffer, extents, static_cast<std::byte*>(argument.data()));
    BufferState& state = machine.buffers[buffer];
    if (!parameter.is_output) state.shadow->written.clear();
    if (argument.num_bytes() == 0) continue;
    auto [shared, fresh] = shadows.try_emplace(argument.data(), state.shadow);
    if (fresh) continue;
    // Two parameters over the same bytes: what one writes the other reads.
    if (!parameter.is_output) shared->second->written.clear();
    state.shadow = shared->second;
    for (size_t j = 0; j <= i; ++j) {
      BufferState& other = machine.buffers[builder.buffer_of(function.parameters[j].buffer)];
      if (other.shadow == state.shadow) other.stored = true;
    }
  }
}

}  // namespace

InterpretResult interpret(const Function& function, std::vector<tensormill::Tensor>& arguments,
                          const std::vector<int64_t>& dims, uint64_t seed) {
  TM_CHECK(arguments.size() == function.parameters.size() && dims.size() == function.dims.size(),
           function.name + " takes " + std::to_string(function.parameters.size()) + " arguments and " +
               std::to_string(function.dims.size()) + " dims, not " + std::to_string(arguments.size()) +
               " and " + std::to_string(dims.size()));
  Machine machine;
  machine.seed = seed;
  machine.shared_workspace.resize(static_cast<size_t>(function.shared_workspace_bytes));
  machine.worker_workspace.resize(static_cast<size_t>(function.worker_workspace_bytes));
  ActionBuilder builder(machine);
  for (size_t i = 0; i < dims.size(); ++i) {
    const uint32_t cell = builder.declare(function.dims[i]);
    machine.cells[cell].i = dims[i];
  }
  bind_parameters(function, arguments, builder, machine);
  builder.forget();
  const ActionPtr body = builder.build(function.body);
  body->run(machine);
  return machine.status;
}

}  // namespace tensormill::te
