/// Memory in which the rows of a batch lie side by side before the batch is made. A request takes a row when
/// its body begins to come and receives it there; when the rows of a batch are all that one slab
/// has given out, the run reads them where they are. Thread-safety: all methods from many threads; the memory
/// of a row belongs to who holds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tensormill::server {

class RowSlabs {
public:
  /// Up to `slabs` of them, each of `rows` rows of which `used` are given out; memory is taken when the first
  /// row of a slab is. Slabs are aligned and padded as tensors are, rows only when `row_bytes` is a multiple
  /// of kTensorAlignment.
  RowSlabs(size_t row_bytes, int64_t rows, int64_t used, int slabs);
  /// A row, which is the taker's until it lets go of it; null while all slabs are in use. Its bytes are those
  /// of a former request. May outlive this object.
  std::shared_ptr<void> take();
  /// For a batch of these rows (any pointers): the first byte of the slab that has given out these rows and
  /// no others, null when there is none. The slabs of the rows give out no more in either case.
  std::byte* close(std::span<const void* const> rows);

private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace tensormill::server
