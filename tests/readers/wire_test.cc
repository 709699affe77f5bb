#include <gtest/gtest.h>

#include <flatbuffers/flexbuffers.h>

#include "compiler/frontend/wire/flexbuffer.h"
#include "compiler/frontend/wire/pickle.h"
#include "compiler/frontend/wire/work_budget.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"
#include "tests/readers/fixture_files.h"

namespace tensormill::frontend::wire {
namespace {

std::string flexbuffer() {
  flexbuffers::Builder builder;
  builder.Map([&] {
    builder.Int("max_detections", 10);
    builder.Float("threshold", 0.5F);
    builder.Bool("regular", true);
    builder.String("name", "boxes");
    builder.Vector("scales", [&] {
      builder.Int(1);
      builder.Int(2);
    });
  });
  builder.Finish();
  return {builder.GetBuffer().begin(), builder.GetBuffer().end()};
}

TEST(FlexBufferTest, MapsAreObjects) {
  const Json json = flexbuffer_to_json(flexbuffer());
  EXPECT_EQ(json, (Json{{"max_detections", 10},
                        {"threshold", 0.5},
                        {"regular", true},
                        {"name", "boxes"},
                        {"scales", {1, 2}}}));
}

TEST(FlexBufferTest, BrokenOnesAreRefusedOrRead) {
  const std::string whole = flexbuffer();
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    try {
      flexbuffer_to_json(broken_copy(whole, random));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(FlexBufferTest, AKeyEndsInTheBuffer) {
  flexbuffers::Builder builder;
  builder.Key("name");
  builder.Finish();
  std::string whole(builder.GetBuffer().begin(), builder.GetBuffer().end());
  EXPECT_EQ(flexbuffer_to_json(whole), "name");
  // The offset, the type and the width behind it are no zeros.
  whole.at(whole.find('\0')) = 'x';
  EXPECT_EQ(whole.find('\0'), std::string::npos);
  EXPECT_THROW(flexbuffer_to_json(whole), Error);
}

TEST(PickleTest, ImportsAreNamed) {
  // Protocol 0: os.system called with a text; nothing of it is run.
  EXPECT_EQ(pickle_imports("cos\nsystem\n(S'true'\ntR."), std::vector<std::string>{"os.system"});
  // Protocol 4: texts, and STACK_GLOBAL.
  const std::string pickle(
      "\x80\x04\x8c\x0b"
      "collections\x94\x8c\x0b"
      "OrderedDict\x94\x93\x94)R.");
  EXPECT_EQ(pickle_imports(pickle), std::vector<std::string>{"collections.OrderedDict"});
  EXPECT_EQ(pickle_imports("\x80\x02}."), std::vector<std::string>{});
}

TEST(PickleTest, WhatEndsEarlyIsRefused) {
  for (const char* bytes : {"", "cos\nsystem", "\x8c\x20short", "X\xff\xff\xff\xff", "\xff", "}"}) {
    EXPECT_THROW(pickle_imports(bytes), Error) << bytes;
  }
}

TEST(WorkBudgetTest, WhatIsSpentIsGone) {
  WorkBudget budget("numbers", 10);
  budget.spend(7);
  budget.spend(3);
  EXPECT_THROW(budget.spend(1), Error);
}

TEST(ZipTest, WhatIsNoZipIsABrokenModel) {
  try {
    const ZipFile zip("PK\x03\x04 and nothing behind");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
  }
}

}  // namespace
}  // namespace tensormill::frontend::wire
