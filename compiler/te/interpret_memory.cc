#include <cstring>

#include "compiler/te/machine.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

[[noreturn]] void fail(const char* what, const BufferState& buffer, const std::string& where) {
  throw InternalError(std::string("interpreter: ") + what + " of buffer " + buffer.node->name + " " + where);
}

std::string at(int64_t offset) { return "at element " + std::to_string(offset); }

/// The element that a lane touches, after the checks of every dimension.
int64_t locate(const Machine& machine, const Access& access, uint32_t lane, const char* what) {
  const BufferState& buffer = machine.buffers[access.buffer];
  int64_t offset = 0;
  for (size_t i = 0; i < access.indices.size(); ++i) {
    const int64_t index = machine.cells[access.indices[i].cell + (access.indices[i].is_vector ? lane : 0)].i;
    if (index < 0 || index >= buffer.extents[i]) {
      fail(what, buffer,
           "outside its bounds: index " + std::to_string(index) + " of dimension " + std::to_string(i) +
               ", extent " + std::to_string(buffer.extents[i]));
    }
    offset += index * buffer.strides[i];
  }
  return offset;
}

Shadow::Tasks& tasks_of(BufferState& buffer, int64_t offset) {
  std::vector<Shadow::Tasks>& tasks = buffer.shadow->tasks;
  if (tasks.empty()) tasks.resize(static_cast<size_t>(buffer.elements));
  return tasks[static_cast<size_t>(offset)];
}

bool is_other(const Machine& machine, uint32_t task) {
  return task >= machine.first_task && task != machine.task;
}

void check_scope(const BufferState& buffer, const char* what) {
  if (buffer.node->scope == Scope::kWorkerWorkspace || buffer.node->scope == Scope::kRegister) {
    fail(what, buffer, "inside a parallel loop, outside of which its worker allocated it");
  }
}

void note_read(Machine& machine, BufferState& buffer, int64_t offset) {
  const Shadow& shadow = *buffer.shadow;
  if (!shadow.written.empty() && shadow.written[static_cast<size_t>(offset)] == 0) {
    fail("load", buffer, at(offset) + ", which was never written");
  }
  if (machine.task == 0 || !buffer.outside_parallel || !buffer.stored) return;
  check_scope(buffer, "load");
  Shadow::Tasks& tasks = tasks_of(buffer, offset);
  if (is_other(machine, tasks.writer)) fail("race: load", buffer, at(offset) + ", which another task writes");
  if (tasks.reader != machine.task) {
    tasks.earlier_reader = tasks.reader;
    tasks.reader = machine.task;
  }
}

void note_write(Machine& machine, BufferState& buffer, int64_t offset) {
  Shadow& shadow = *buffer.shadow;
  if (!shadow.written.empty()) shadow.written[static_cast<size_t>(offset)] = 1;
  if (machine.task == 0 || !buffer.outside_parallel) return;
  check_scope(buffer, "store");
  Shadow::Tasks& tasks = tasks_of(buffer, offset);
  if (is_other(machine, tasks.writer))
    fail("race: store", buffer, at(offset) + ", which another task writes");
  if (is_other(machine, tasks.reader) || is_other(machine, tasks.earlier_reader)) {
    fail("race: store", buffer, at(offset) + ", which another task reads");
  }
  tasks.writer = machine.task;
}

template <typename T>
T peek(const std::byte* data, int64_t offset) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(offset) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void poke(std::byte* data, int64_t offset, T value) {
  std::memcpy(data + static_cast<size_t>(offset) * sizeof(T), &value, sizeof(T));
}

template <DType dtype>
Cell read_element(const std::byte* data, int64_t offset) {
  Cell cell{};
  if constexpr (dtype == DType::kFloat64) cell.f = peek<double>(data, offset);
  if constexpr (dtype == DType::kFloat32) cell.s = peek<float>(data, offset);
  if constexpr (dtype == DType::kFloat16) cell.s = half_to_float(peek<uint16_t>(data, offset));
  if constexpr (dtype == DType::kBFloat16) cell.s = bfloat16_to_float(peek<uint16_t>(data, offset));
  if constexpr (dtype == DType::kInt8) cell.i = peek<int8_t>(data, offset);
  if constexpr (dtype == DType::kInt16) cell.i = peek<int16_t>(data, offset);
  if constexpr (dtype == DType::kInt32) cell.i = peek<int32_t>(data, offset);
  if constexpr (dtype == DType::kInt64 || dtype == DType::kUInt64) cell.i = peek<int64_t>(data, offset);
  if constexpr (dtype == DType::kUInt8) cell.i = peek<uint8_t>(data, offset);
  if constexpr (dtype == DType::kUInt16) cell.i = peek<uint16_t>(data, offset);
  if constexpr (dtype == DType::kUInt32) cell.i = peek<uint32_t>(data, offset);
  if constexpr (dtype == DType::kBool) cell.i = peek<uint8_t>(data, offset) != 0 ? 1 : 0;
  return cell;
}

template <DType dtype>
void write_element(std::byte* data, int64_t offset, const Cell& cell) {
  if constexpr (dtype == DType::kFloat64) poke(data, offset, cell.f);
  if constexpr (dtype == DType::kFloat32) poke(data, offset, cell.s);
  if constexpr (dtype == DType::kFloat16) poke(data, offset, float_to_half(cell.s));
  if constexpr (dtype == DType::kBFloat16) poke(data, offset, float_to_bfloat16(cell.s));
  if constexpr (dtype == DType::kInt8 || dtype == DType::kUInt8 || dtype == DType::kBool) {
    poke(data, offset, static_cast<uint8_t>(cell.i));
  }
  if constexpr (dtype == DType::kInt16 || dtype == DType::kUInt16) {
    poke(data, offset, static_cast<uint16_t>(cell.i));
  }
  if constexpr (dtype == DType::kInt32 || dtype == DType::kUInt32) {
    poke(data, offset, static_cast<uint32_t>(cell.i));
  }
  if constexpr (dtype == DType::kInt64 || dtype == DType::kUInt64) poke(data, offset, cell.i);
}

template <DType dtype>
void load_lanes(Machine& machine, const Instruction& in) {
  BufferState& buffer = machine.buffers[in.access.buffer];
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    Cell& target = machine.cells[in.target + lane];
    if (in.access.masked && machine.cells[in.access.mask + lane].i == 0) {
      target = Cell{};
      continue;
    }
    const int64_t offset = locate(machine, in.access, lane, "load");
    note_read(machine, buffer, offset);
    target = read_element<dtype>(buffer.data, offset);
  }
}

template <DType dtype>
void store_lanes(Machine& machine, const Instruction& in) {
  BufferState& buffer = machine.buffers[in.access.buffer];
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    if (in.access.masked && machine.cells[in.access.mask + lane].i == 0) continue;
    const int64_t offset = locate(machine, in.access, lane, "store");
    note_write(machine, buffer, offset);
    write_element<dtype>(buffer.data, offset, machine.cells[in.target + lane]);
  }
}

}  // namespace

Handler load_handler(DType dtype) {
  static constexpr Handler kHandlers[] = {
#define TM_DTYPE(enumerator, name, numpy, bits, is_float, is_signed) load_lanes<DType::enumerator>,
#include "runtime/base/dtype.def"
#undef TM_DTYPE
  };
  return kHandlers[static_cast<size_t>(dtype)];
}

Handler store_handler(DType dtype) {
  static constexpr Handler kHandlers[] = {
#define TM_DTYPE(enumerator, name, numpy, bits, is_float, is_signed) store_lanes<DType::enumerator>,
#include "runtime/base/dtype.def"
#undef TM_DTYPE
  };
  return kHandlers[static_cast<size_t>(dtype)];
}

void Machine::bind(uint32_t buffer, std::vector<int64_t> extents, std::byte* data) {
  BufferState& state = buffers[buffer];
  state.elements = num_elements(extents);
  state.strides = row_major_strides(extents);
  state.extents = std::move(extents);
  state.outside_parallel = task == 0;
  state.shadow = std::make_shared<Shadow>();
  state.shadow->written.assign(static_cast<size_t>(state.elements), 0);
  if (data == nullptr) {
    state.owner = allocate_aligned(static_cast<size_t>(state.elements) * dtype_bytes(state.node->dtype));
    data = static_cast<std::byte*>(state.owner.get());
  }
  state.data = data;
}

}  // namespace tensormill::te
