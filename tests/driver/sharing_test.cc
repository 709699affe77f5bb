// How workers share a kernel is read off its lowered function.
#include "compiler/plan/sharing.h"

#include <gtest/gtest.h>

#include "compiler/te/text.h"

namespace tensormill::plan {
namespace {

package::Sharing sharing(const std::string& body) {
  return sharing_of(
      te::parse_function("function k {\n  in a: f32[8]\n  out b: f32[8]\n  body {\n" + body + "  }\n}\n"));
}

TEST(Sharing, IsByWhatIsStoredOutsideOfParallelLoops) {
  const std::string loop = "    parallel i = 0, 8 {\n      b[i] = a[i]\n    }\n";
  const std::string store = "    b[0] = a[1]\n";
  EXPECT_EQ(sharing(loop), package::Sharing::kAll);
  EXPECT_EQ(sharing(loop + loop), package::Sharing::kAll);
  EXPECT_EQ(sharing("    for j = 0, 2 {\n" + loop + "    }\n"), package::Sharing::kAll);
  EXPECT_EQ(sharing(store), package::Sharing::kOne);
  EXPECT_EQ(sharing(store + loop), package::Sharing::kLaunches);
  EXPECT_EQ(sharing("    for j = 0, 2 {\n" + loop + store + "    }\n"), package::Sharing::kLaunches);
}

}  // namespace
}  // namespace tensormill::plan
