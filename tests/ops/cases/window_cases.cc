/// Cases of convolutions and pools.
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {

void add_window_cases(std::vector<Case>& cases);

namespace {

using Ints = std::vector<int64_t>;

void add_conv(std::vector<Case>& cases, const std::string& op, const std::string& variant, const Shape& x,
              const Shape& w, const ir::Attrs& attrs, int64_t bias = -1) {
  std::vector<Operand> operands = {{.shape = x}, {.shape = w}};
  if (bias >= 0) operands.push_back({.shape = {bias}});
  cases.push_back({op, variant, attrs, operands});
}

void add_convs(std::vector<Case>& cases) {
  const std::string op = "conv";
  add_conv(cases, op, "1x1", {1, 3, 5, 7}, {4, 3, 1, 1}, {});
  add_conv(cases, op, "1x1 with bias", {2, 3, 5, 5}, {5, 3, 1, 1}, {}, 5);
  add_conv(cases, op, "3x3 padded", {1, 3, 7, 5}, {4, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, 4);
  add_conv(cases, op, "3x3 strided", {1, 2, 9, 8}, {3, 2, 3, 3},
           {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 0, 2}}});
  add_conv(cases, op, "larger", {1, 19, 11, 13}, {35, 19, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, 35);
  add_conv(cases, op, "larger, 1x1", {1, 37, 9, 9}, {33, 37, 1, 1}, {});
  add_conv(cases, op, "dilated", {1, 2, 9, 9}, {2, 2, 3, 2},
           {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 0, 2, 0}}});
  add_conv(cases, op, "depthwise", {1, 7, 6, 5}, {7, 1, 3, 3},
           {{"group", int64_t{7}}, {"pads", Ints{1, 1, 1, 1}}});
  add_conv(cases, op, "depthwise multiplier", {1, 3, 5, 5}, {6, 1, 3, 3}, {{"group", int64_t{3}}});
  add_conv(cases, op, "grouped", {2, 6, 5, 4}, {4, 3, 2, 2}, {{"group", int64_t{2}}}, 4);
  add_conv(cases, op, "1-d", {2, 3, 13}, {4, 3, 5}, {{"strides", Ints{2}}, {"pads", Ints{2, 1}}});
  add_conv(cases, op, "3-d", {1, 2, 4, 5, 3}, {3, 2, 2, 3, 2}, {{"pads", Ints{1, 0, 0, 0, 1, 1}}}, 3);
  add_conv(cases, op, "empty batch", {0, 3, 5, 5}, {4, 3, 3, 3}, {});
  add_conv(cases, op, "no channels", {1, 0, 5, 5}, {4, 0, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, 4);
  add_conv(cases, op, "no outputs", {1, 2, 5, 5}, {0, 2, 3, 3}, {});
  add_conv(cases, op, "only padding beside", {1, 1, 1, 1}, {1, 1, 5, 5}, {{"pads", Ints{3, 3, 3, 3}}});
}

void add_winograd(std::vector<Case>& cases) {
  const std::string op = "conv_winograd";
  const Ints ones = {1, 1, 1, 1};
  const auto with = [](int64_t tile, Ints pads) {
    return ir::Attrs{{"tile", tile}, {"pads", std::move(pads)}};
  };
  add_conv(cases, op, "F(4,3)", {1, 1, 8, 8, 16}, {36, 1, 16, 32}, with(4, ones), 32);
  add_conv(cases, op, "F(2,3)", {1, 1, 6, 6, 16}, {16, 1, 16, 16}, with(2, ones));
  add_conv(cases, op, "F(4,3), batch, ragged edges", {2, 2, 7, 5, 8}, {36, 3, 16, 8}, with(4, ones), 24);
  add_conv(cases, op, "F(2,3), unequal pads", {1, 1, 5, 8, 4}, {16, 2, 4, 8}, with(2, {0, 2, 1, 0}), 16);
  add_conv(cases, op, "F(4,3), no pads", {1, 2, 14, 9, 4}, {36, 2, 8, 4}, with(4, {0, 0, 0, 0}), 8);
  add_conv(cases, op, "F(2,3), wide pads", {1, 1, 3, 1, 2}, {16, 1, 2, 2}, with(2, {4, 5, 3, 4}));
  add_conv(cases, op, "F(4,3), many tiles", {1, 1, 33, 29, 8}, {36, 2, 8, 16}, with(4, ones), 32);
  add_conv(cases, op, "empty batch", {0, 1, 4, 4, 8}, {36, 1, 8, 8}, with(4, ones), 8);
  add_conv(cases, op, "no channels", {1, 0, 4, 4, 8}, {16, 1, 0, 8}, with(2, ones), 8);
  add_conv(cases, op, "no outputs", {1, 1, 4, 4, 8}, {16, 0, 8, 8}, with(2, ones));
}

void add_transposed(std::vector<Case>& cases) {
  const std::string op = "conv_transpose";
  add_conv(cases, op, "plain", {1, 3, 4, 5}, {3, 2, 3, 3}, {});
  add_conv(cases, op, "strided", {2, 2, 3, 4}, {2, 3, 2, 3},
           {{"strides", Ints{2, 3}}, {"pads", Ints{0, 1, 1, 0}}, {"output_padding", Ints{1, 0}}}, 3);
  add_conv(cases, op, "grouped, dilated", {1, 4, 3, 3}, {4, 2, 2, 2},
           {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}});
  add_conv(cases, op, "1-d", {1, 2, 7}, {2, 1, 4}, {{"strides", Ints{3}}, {"pads", Ints{1, 1}}}, 1);
  add_conv(cases, op, "3-d", {1, 1, 2, 3, 2}, {1, 2, 2, 2, 2}, {{"strides", Ints{1, 2, 1}}});
  add_conv(cases, op, "empty batch", {0, 2, 3, 3}, {2, 3, 2, 2}, {});
}

void add_pools(std::vector<Case>& cases) {
  for (const std::string& op : {std::string("max_pool"), std::string("avg_pool")}) {
    const auto add = [&](const std::string& variant, Shape shape, ir::Attrs attrs) {
      cases.push_back({op, variant, std::move(attrs), {{.shape = std::move(shape)}}});
    };
    const Ints ones = {1, 1, 1, 1};
    add("plain", {1, 3, 6, 7}, {{"kernel", Ints{2, 2}}, {"strides", Ints{2, 2}}});
    add("padded", {2, 2, 7, 5}, {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", ones}});
    add("unequal pads", {1, 2, 5, 6}, {{"kernel", Ints{3, 2}}, {"pads", Ints{2, 0, 0, 1}}});
    add("ceil_mode", {1, 2, 6, 8},
        {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 3}}, {"ceil_mode", int64_t{1}}});
    add("ceil_mode, padded", {1, 2, 7, 7},
        {{"kernel", Ints{3, 2}}, {"strides", Ints{3, 3}}, {"pads", ones}, {"ceil_mode", int64_t{1}}});
    add("dilated", {1, 2, 9, 8},
        {{"kernel", Ints{3, 2}}, {"dilations", Ints{2, 3}}, {"pads", Ints{1, 2, 1, 0}}});
    add("larger", {1, 19, 17, 17}, {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", ones}});
    add("global", {2, 3, 5, 7}, {{"kernel", Ints{5, 7}}});
    add("1-d", {2, 3, 13}, {{"kernel", Ints{3}}, {"strides", Ints{3}}});
    add("3-d", {1, 2, 4, 5, 3}, {{"kernel", Ints{2, 2, 2}}, {"strides", Ints{2, 1, 1}}});
    add("blocked", {1, 2, 9, 7, 8},
        {{"kernel", Ints{3, 3, 1}}, {"strides", Ints{2, 2, 1}}, {"pads", Ints{1, 1, 0, 1, 1, 0}}});
    add("blocked, ceil_mode", {2, 1, 6, 8, 4},
        {{"kernel", Ints{3, 2, 1}}, {"strides", Ints{2, 3, 1}}, {"ceil_mode", int64_t{1}}});
    add("empty batch", {0, 2, 4, 4}, {{"kernel", Ints{2, 2}}});
    add("extent 1", {1, 1, 1, 1}, {{"kernel", Ints{1, 1}}});
    if (op == "max_pool") continue;
    const int64_t yes = 1;
    add("count_include_pad", {1, 2, 5, 6},
        {{"kernel", Ints{3, 3}}, {"pads", ones}, {"count_include_pad", yes}});
    add("count_include_pad, ceil_mode", {1, 2, 6, 6},
        {{"kernel", Ints{3, 3}},
         {"strides", Ints{2, 2}},
         {"pads", ones},
         {"ceil_mode", yes},
         {"count_include_pad", yes}});
    add("count_include_pad, dilated", {1, 2, 7, 7},
        {{"kernel", Ints{3, 2}},
         {"dilations", Ints{2, 3}},
         {"pads", Ints{2, 1, 1, 2}},
         {"count_include_pad", yes}});
  }
}

}  // namespace

void add_window_cases(std::vector<Case>& cases) {
  add_convs(cases);
  add_winograd(cases);
  add_transposed(cases);
  add_pools(cases);
}

}  // namespace tensormill::ops_cases
