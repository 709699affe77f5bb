// Steps one by one: what they accept, what they refuse, and that hand-written lists compute what the program
// says.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/schedule/harness.h"
#include "tests/schedule/programs.h"

namespace tensormill::schedule_test {
namespace {

TEST(Steps, AreRefusedWithTheStepInTheMessage) {
  const te::Program program = matmul_program(1, 4, 8, 16, false, true);
  for (const char* text :
       {"split s9 i0 4", "split s0 i9 4", "split s0 i0 0", "split s0 i0 x", "split s0 i0", "fuse s0 i0 i2",
        "fuse s0 i2 r0", "compute_inline s0", "compute_inline s1", "parallel s0 i1", "vectorize s0 i1",
        "rfactor s1 i0", "compute_at s1 s0 i0", "compute_at s0 s1 i9", "cache_read p9 s0",
        "storage_layout s1 i0 2", "store_in s0 register", "compute_at s0 s1 i2\nvectorize s1 i9"}) {
    try {
      schedule::apply(program, schedule::parse_schedule(text), "k");
      ADD_FAILURE() << text << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords);
      EXPECT_NE(error.message().find("step '"), std::string::npos) << error.message();
    }
  }
  EXPECT_THROW(schedule::parse_schedule("split s0 i0 4\nfly s0"), Error);
}

TEST(Steps, ComputeWhatTheProgramSays) {
  const te::Program product = matmul_program(2, 13, 17, 7, false, true);
  for (const char* text :
       {"", "split s0 i1 5\nsplit s0 r0 3\nreorder s0 r0.o i1.o i1.i r0.i",
        "tile s1 i1 i2 4 8\ncompute_at s0 s1 i2.o", "compute_at s0 s1 i0",
        "cache_read p1 s0\nstorage_layout p1.s0 i2 3",
        "cache_write s0\nfuse s0 i0 i1\ncompute_at s0.c s0 i0+i1",
        "split s0 r0 4\nrfactor s0 r0.i\ncompute_at s0 s1 i1\ncompute_at s0.rf s0 i2",
        "fuse s1 i0 i1\nsplit s1 i0+i1 5\nparallel s1 i0+i1.o\ncompute_at s0 s1 i0+i1.i"}) {
    check_schedule(product, schedule::parse_schedule(text), 2e-6, test_target(), 2e-6);
  }
  const te::Program conv = conv_program({1, 3, 9, 11, 5, 3, 2, 1, 1}, true);
  for (const char* text : {"compute_inline s0", "compute_inline s2\ncompute_at s1 s3 i2\ncompute_at s0 s1 r0",
                           "storage_layout s0 i3 2\nsplit s3 i3 4\nvectorize s3 i3.i\ncompute_inline s2"}) {
    check_schedule(conv, schedule::parse_schedule(text), 2e-6, test_target(), 2e-6);
  }
}

}  // namespace
}  // namespace tensormill::schedule_test
