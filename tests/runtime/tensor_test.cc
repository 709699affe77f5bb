/// Tensors and their elements.
#include "runtime/base/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

namespace tensormill {
namespace {

// What reads a model's tensor may take it for larger than it is.
TEST(Tensor, RefusesElementsThatItHasNot) {
  for (const DTypeInfo& row : all_dtypes()) {
    for (const int64_t count : {int64_t{0}, int64_t{3}}) {
      Tensor tensor = Tensor::zeros(row.dtype, {count});
      for (const int64_t index : {int64_t{-1}, count, INT64_MAX, INT64_MIN}) {
        EXPECT_THROW(tensor.element_as_double(index), std::out_of_range) << row.name << " " << index;
        EXPECT_THROW(tensor.element_as_int(index), std::out_of_range) << row.name << " " << index;
        EXPECT_THROW(tensor.set_element(index, 1), std::out_of_range) << row.name << " " << index;
        EXPECT_THROW(tensor.set_element_int(index, 1), std::out_of_range) << row.name << " " << index;
      }
      for (int64_t index = 0; index < count; ++index) EXPECT_NO_THROW(tensor.set_element_int(index, 1));
    }
  }
}

}  // namespace
}  // namespace tensormill
