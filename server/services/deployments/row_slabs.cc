#include "server/services/deployments/row_slabs.h"

#include <functional>
#include <mutex>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/tensor.h"

namespace tensormill::server {

namespace {

struct Slab {
  std::shared_ptr<void> memory;
  int64_t given = 0;  ///< rows, from the first on
  int64_t held = 0;   ///< of them
  bool open = false;  ///< gives out more
};

}  // namespace

struct RowSlabs::State {
  size_t row_bytes = 0;
  int64_t rows = 0;
  int64_t used = 0;
  std::mutex mutex;
  std::vector<Slab> slabs;  ///< of a fixed number

  /// Null when there is none.
  Slab* with_room() {
    for (Slab& slab : slabs) {
      if (slab.open && slab.given < used) return &slab;
    }
    for (Slab& slab : slabs) {
      if (slab.held > 0) continue;
      if (!slab.memory) slab.memory = allocate_aligned(row_bytes * static_cast<size_t>(rows));
      slab.given = 0;
      slab.open = true;
      return &slab;
    }
    return nullptr;
  }

  std::byte* first_byte(const Slab& slab) const { return static_cast<std::byte*>(slab.memory.get()); }

  Slab* slab_of(const void* row) {
    for (Slab& slab : slabs) {
      const std::byte* first = first_byte(slab);
      const auto* at = static_cast<const std::byte*>(row);
      const std::less<> before;
      if (slab.memory && !before(at, first) && before(at, first + row_bytes * static_cast<size_t>(rows))) {
        return &slab;
      }
    }
    return nullptr;
  }

  void give_back(Slab& slab) {
    const std::lock_guard lock(mutex);
    if (--slab.held == 0) slab.open = false;
  }
};

RowSlabs::RowSlabs(size_t row_bytes, int64_t rows, int64_t used, int slabs)
    : state_(std::make_shared<State>()) {
  TM_CHECK(used >= 1 && used <= rows && row_bytes > 0, "a slab without rows");
  state_->row_bytes = row_bytes;
  state_->rows = rows;
  state_->used = used;
  state_->slabs.resize(static_cast<size_t>(slabs));
}

std::shared_ptr<void> RowSlabs::take() {
  Slab* slab = nullptr;
  void* row = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    slab = state_->with_room();
    if (slab == nullptr) return nullptr;
    row = state_->first_byte(*slab) + state_->row_bytes * static_cast<size_t>(slab->given);
    ++slab->given;
    ++slab->held;
  }
  return {row, [state = state_, slab](void*) { state->give_back(*slab); }};
}

std::byte* RowSlabs::close(std::span<const void* const> rows) {
  const std::lock_guard lock(state_->mutex);
  Slab* common = nullptr;
  bool together = true;
  for (const void* row : rows) {
    Slab* const slab = state_->slab_of(row);
    if (slab != nullptr) slab->open = false;
    if (common == nullptr) common = slab;
    together = together && slab != nullptr && slab == common;
  }
  // Each row is held by one request: as many as were given out are all of them.
  if (!together || common == nullptr || common->given != static_cast<int64_t>(rows.size())) return nullptr;
  return state_->first_byte(*common);
}

}  // namespace tensormill::server
