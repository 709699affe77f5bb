#include "compiler/build/moves/transposed.h"

#include <cstring>

#include "compiler/ir/checked_list.h"
#include "runtime/base/error.h"

namespace tensormill::build {

namespace {

template <size_t kBytes>
void move_elements(const std::byte* from, std::byte* to, const Shape& extents, const Shape& strides) {
  Shape at(extents.size(), 0);
  int64_t place = 0;
  const int64_t count = num_elements(extents);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<size_t>(i) * kBytes, from + static_cast<size_t>(place) * kBytes, kBytes);
    for (size_t d = extents.size(); d-- > 0;) {
      place += strides[d];
      if (++at[d] < extents[d]) break;
      place -= strides[d] * extents[d];
      at[d] = 0;
    }
  }
}

}  // namespace

Tensor transposed(const Tensor& x, const Shape& perm) {
  const ir::Ints shape = x.shape();
  ir::Ints own(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) own[d - 1] = own[d] * shape[d];
  Shape extents, strides;
  for (const int64_t axis : perm) {
    extents.push_back(shape[static_cast<size_t>(axis)]);
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  Tensor result(x.dtype(), extents);
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* to = static_cast<std::byte*>(result.data());
  switch (dtype_bytes(x.dtype())) {
    case 1:
      move_elements<1>(from, to, extents, strides);
      break;
    case 2:
      move_elements<2>(from, to, extents, strides);
      break;
    case 4:
      move_elements<4>(from, to, extents, strides);
      break;
    default:
      TM_CHECK(dtype_bytes(x.dtype()) == 8, "an element of another size");
      move_elements<8>(from, to, extents, strides);
  }
  return result;
}

}  // namespace tensormill::build
