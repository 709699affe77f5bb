#include <gtest/gtest.h>

#include <flatbuffers/flexbuffers.h>

#include "compiler/frontend/wire/flexbuffer.h"
#include "compiler/frontend/wire/pickle.h"
#include "compiler/frontend/wire/protobuf.h"
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

/// The numbers of field 2, and how many fields there are.
std::pair<std::vector<int64_t>, int> read_numbers(std::string_view bytes) {
  std::pair<std::vector<int64_t>, int> to;
  WireReader reader(bytes, bytes.data(), 0);
  while (const int field = reader.next()) {
    if (field == 2) reader.append_varints(to.first, "numbers");
    ++to.second;
  }
  return to;
}

TEST(ProtobufTest, FieldsThatNobodyReadsAreSteppedOver) {
  using namespace std::string_view_literals;
  const std::pair<std::vector<int64_t>, int> expected{{7, 8, 300}, 6};
  // A varint, 64 bits, a text, 32 bits: each between numbers, the last of which are packed.
  EXPECT_EQ(read_numbers("\x08\x96\x01\x10\x07\x19--------\x22\x02\x10\x09\x12\x03\x08\xac\x02\x2d----"sv),
            expected);
  EXPECT_EQ(read_numbers(""sv).second, 0);
}

TEST(ProtobufTest, AFieldThatNobodyReadsMustBeWhole) {
  using namespace std::string_view_literals;
  // Cut off, each of the kinds; a group, which has no length; and no field at all.
  for (const std::string_view bytes :
       {"\x08\x96"sv, "\x19-------"sv, "\x22\x02-"sv, "\x2d---"sv, "\x0b"sv, "\x00"sv})
    EXPECT_THROW(read_numbers(bytes), Error) << bytes.size();
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
