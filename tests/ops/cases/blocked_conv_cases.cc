/// Cases of convolutions on blocked tensors: blocks of 4, 8 and 16 channels on every target.
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {

void add_blocked_conv_cases(std::vector<Case>& cases);

namespace {

using Ints = std::vector<int64_t>;

void add(std::vector<Case>& cases, const std::string& op, const std::string& variant, const Shape& x,
         const Shape& w, const ir::Attrs& attrs, int64_t bias = -1) {
  std::vector<Operand> operands = {{.shape = x}, {.shape = w}};
  if (bias >= 0) operands.push_back({.shape = {bias}});
  cases.push_back({op, variant, attrs, operands});
}

const ir::Attrs kSame = {{"pads", Ints{1, 1, 1, 1}}};
const ir::Attrs kHalf = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}};

void add_blocked(std::vector<Case>& cases) {
  const std::string op = "conv_blocked";
  add(cases, op, "1x1", {1, 2, 5, 7, 4}, {3, 2, 1, 1, 4, 4}, {}, 12);
  add(cases, op, "1x1, no bias", {2, 1, 3, 3, 16}, {2, 1, 1, 1, 16, 16}, {});
  add(cases, op, "1x1, strided", {1, 1, 7, 9, 8}, {2, 1, 1, 1, 8, 8}, {{"strides", Ints{2, 2}}}, 16);
  add(cases, op, "1x1, strided, picked", {2, 2, 7, 9, 8}, {16, 2, 1, 1, 8, 8}, {{"strides", Ints{2, 3}}},
      128);
  add(cases, op, "1x1, not all lanes", {1, 2, 5, 7, 8}, {3, 2, 1, 1, 8, 8}, {{"channels", int64_t{11}}}, 24);
  add(cases, op, "1x1, not all blocks", {2, 3, 4, 7, 4}, {2, 3, 1, 1, 4, 4}, {{"channels", int64_t{6}}});
  add(cases, op, "1x1, strided, not all lanes", {1, 2, 7, 9, 16}, {2, 2, 1, 1, 16, 16},
      {{"strides", Ints{2, 2}}, {"channels", int64_t{29}}}, 32);
  add(cases, op, "3x3", {1, 2, 7, 7, 16}, {2, 2, 3, 3, 16, 16}, kSame, 32);
  add(cases, op, "3x3, wide", {1, 1, 3, 37, 4}, {5, 1, 3, 3, 4, 4}, kSame);
  add(cases, op, "3x3, strided", {1, 2, 9, 14, 8}, {1, 2, 3, 3, 8, 8}, kHalf, 8);
  add(cases, op, "5x3, pads at the end", {1, 1, 8, 6, 4}, {2, 1, 5, 3, 4, 4}, {{"pads", Ints{0, 0, 3, 2}}});
  add(cases, op, "3x3, no pads", {1, 1, 5, 13, 16}, {1, 1, 3, 3, 16, 16}, {});
  add(cases, op, "dilated", {1, 1, 9, 9, 4}, {1, 1, 3, 2, 4, 4},
      {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 1, 2, 3}}}, 4);
  add(cases, op, "grouped", {1, 4, 5, 5, 4}, {6, 2, 3, 3, 4, 4},
      {{"group", int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}}, 24);
  add(cases, op, "only padding beside", {1, 1, 1, 1, 4}, {1, 1, 5, 5, 4, 4}, {{"pads", Ints{3, 3, 3, 3}}});
  add(cases, op, "empty batch", {0, 1, 5, 5, 4}, {1, 1, 3, 3, 4, 4}, {});
  add(cases, op, "no channels", {1, 0, 5, 5, 4}, {2, 0, 3, 3, 4, 4}, kSame, 8);
  add(cases, op, "no rows", {1, 1, 0, 5, 4}, {1, 1, 1, 1, 4, 4}, kSame);
}

/// Words of four bytes: blocks of 2 words in, 8 channels out, and so on.
void add_words(std::vector<Case>& cases) {
  const auto words = [](ir::Attrs attrs) {
    attrs.set("words", int64_t{1});
    return attrs;
  };
  const std::string op = "conv_blocked";
  add(cases, op, "words, 1x1", {1, 2, 5, 7, 4}, {3, 2, 1, 1, 4, 16}, words({}), 48);
  add(cases, op, "words, 3x3, strided", {2, 2, 9, 6, 2}, {1, 2, 3, 3, 2, 8}, words(kHalf), 8);
  add(cases, op, "words, grouped", {1, 4, 5, 5, 1}, {6, 2, 3, 3, 1, 4},
      words({{"group", int64_t{2}}, {"pads", Ints{1, 1, 1, 1}}}));
  add(cases, op, "words, 1x1, strided, picked", {1, 2, 7, 9, 4}, {8, 2, 1, 1, 4, 16},
      words({{"strides", Ints{2, 2}}}));
  cases.push_back({"matmul_packed",
                   "words",
                   words({{"columns", int64_t{21}}}),
                   {{.shape = {2, 5, 6}}, {.shape = {2, 6, 16}}, {.shape = {21}}}});
  cases.push_back({"matmul_packed",
                   "words, part",
                   words({{"columns", int64_t{8}}, {"first", int64_t{2}}}),
                   {{.shape = {7, 9}}, {.shape = {1, 4, 8}}}});
  cases.push_back({"bytes_to_words", "rows", {}, {{.shape = {3, 5, 8}}}});
  cases.push_back({"bytes_to_words", "one row", {}, {{.shape = {1, 4}}}});
  cases.push_back({"bytes_to_words", "no rows", {}, {{.shape = {0, 7, 8}}}});
  const Operand w = {.shape = {6, 2, 3, 3}, .dtype = DType::kInt8},
                bias = {.shape = {6}, .dtype = DType::kInt32};
  cases.push_back({"conv_integer",
                   "zero point",
                   {{"pads", Ints{1, 1, 1, 1}}, {"x_zero", int64_t{7}}},
                   {{.shape = {1, 2, 5, 6}}, w, bias}});
  cases.push_back({"conv_integer", "empty batch", {}, {{.shape = {0, 2, 5, 6}}, w}});
  cases.push_back({"conv_integer", "grouped", {{"group", int64_t{2}}}, {{.shape = {1, 4, 5, 6}}, w}});
}

void add_first(std::vector<Case>& cases) {
  const std::string op = "conv_first";
  add(cases, op, "7x7, strided", {1, 3, 19, 23}, {2, 3, 7, 7, 8},
      {{"pads", Ints{3, 3, 3, 3}}, {"strides", Ints{2, 2}}}, 16);
  add(cases, op, "3x3, strided", {1, 3, 9, 33}, {2, 3, 3, 3, 16}, kHalf, 32);
  add(cases, op, "3x3", {2, 1, 5, 7}, {3, 1, 3, 3, 4}, kSame);
  add(cases, op, "1x1", {1, 3, 5, 5}, {1, 3, 1, 1, 16}, {}, 16);
  add(cases, op, "empty batch", {0, 3, 5, 5}, {1, 3, 3, 3, 4}, {});
  add(cases, op, "no channels", {1, 0, 5, 5}, {1, 0, 3, 3, 4}, kSame, 4);
}

void add_depthwise(std::vector<Case>& cases) {
  const std::string op = "conv_depthwise";
  add(cases, op, "3x3", {1, 3, 7, 7, 16}, {3, 3, 3, 16}, kSame, 48);
  add(cases, op, "3x3, wide", {1, 1, 5, 37, 8}, {1, 3, 3, 8}, kSame);
  add(cases, op, "3x3, strided", {1, 2, 9, 14, 4}, {2, 3, 3, 4}, kHalf, 8);
  add(cases, op, "5x5, strided", {2, 1, 11, 13, 16}, {1, 5, 5, 16},
      {{"pads", Ints{2, 2, 2, 2}}, {"strides", Ints{2, 2}}}, 16);
  add(cases, op, "dilated", {1, 1, 9, 9, 4}, {1, 3, 2, 4},
      {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 1, 2, 3}}});
  add(cases, op, "1x1", {1, 1, 1, 5, 4}, {1, 1, 1, 4}, {}, 4);
  add(cases, op, "empty batch", {0, 1, 5, 5, 4}, {1, 3, 3, 4}, {});
  add(cases, op, "no channels", {1, 0, 5, 5, 4}, {0, 3, 3, 4}, kSame);
}

/// One and three spatial dimensions.
void add_other_ranks(std::vector<Case>& cases) {
  const ir::Attrs around{{"pads", Ints{4, 4}}, {"dilations", Ints{4}}};
  add(cases, "conv_blocked", "1-D", {2, 2, 37, 4}, {3, 2, 3, 4, 4}, around, 12);
  add(cases, "conv_blocked", "1-D, one tap", {1, 2, 19, 8}, {2, 2, 1, 8, 8}, {}, 16);
  add(cases, "conv_blocked", "1-D, strided, grouped", {1, 4, 21, 4}, {4, 2, 5, 4, 4},
      {{"pads", Ints{2, 1}}, {"strides", Ints{2}}, {"group", int64_t{2}}});
  add(cases, "conv_blocked", "1-D, long", {1, 1, 400, 16}, {2, 1, 3, 16, 16}, {{"pads", Ints{1, 1}}});
  add(cases, "conv_first", "1-D",
      {
          1,
          1,
          50,
      },
      {2, 1, 7, 8}, {{"pads", Ints{3, 3}}, {"strides", Ints{2}}}, 16);
  add(cases, "conv_depthwise", "1-D", {1, 3, 33, 8}, {3, 5, 8}, {{"pads", Ints{2, 2}}}, 24);
  const ir::Attrs cube{{"pads", Ints{1, 1, 1, 1, 1, 1}}};
  add(cases, "conv_blocked", "3-D", {1, 2, 4, 5, 7, 4}, {3, 2, 3, 3, 3, 4, 4}, cube, 12);
  add(cases, "conv_blocked", "3-D, one tap", {1, 2, 2, 3, 5, 8}, {2, 2, 1, 1, 1, 8, 8}, {}, 16);
  add(cases, "conv_blocked", "3-D, strided", {2, 1, 5, 6, 9, 4}, {2, 1, 3, 1, 2, 4, 4},
      {{"pads", Ints{1, 0, 1, 1, 0, 0}}, {"strides", Ints{2, 1, 2}}});
  add(cases, "conv_first", "3-D", {1, 3, 4, 6, 9}, {2, 3, 3, 3, 3, 4}, cube, 8);
  add(cases, "conv_depthwise", "3-D", {1, 2, 4, 5, 9, 4}, {2, 3, 3, 3, 4}, cube, 8);
  for (const std::string pool : {"max_pool", "avg_pool"}) {
    cases.push_back({pool,
                     "1-D blocks",
                     {{"kernel", Ints{3, 1}}, {"pads", Ints{1, 0, 1, 0}}},
                     {{.shape = {1, 2, 37, 8}}}});
    cases.push_back({pool,
                     "3-D blocks",
                     {{"kernel", Ints{2, 2, 3, 1}},
                      {"strides", Ints{2, 2, 1, 1}},
                      {"pads", Ints{0, 0, 1, 0, 0, 0, 1, 0}}},
                     {{.shape = {1, 2, 4, 6, 9, 8}}}});
  }
}

}  // namespace

void add_blocked_conv_cases(std::vector<Case>& cases) {
  add_blocked(cases);
  add_words(cases);
  add_first(cases);
  add_depthwise(cases);
  add_other_ranks(cases);
}

}  // namespace tensormill::ops_cases
