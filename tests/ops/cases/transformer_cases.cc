#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {

void add_transformer_cases(std::vector<Case>& cases);

namespace {

void add_packed_products(std::vector<Case>& cases) {
  const auto add = [&](const std::string& variant, Shape x, int64_t columns, int64_t block, bool bias) {
    const int64_t depth = x.back();
    Case made{"matmul_packed", variant, {{"columns", columns}}, {{.shape = std::move(x)}}};
    made.operands.push_back({.shape = {(columns + block - 1) / block, depth, block}});
    if (bias) made.operands.push_back({.shape = {columns}});
    cases.push_back(std::move(made));
  };
  add("whole tiles", {16, 24}, 48, 16, true);
  add("tails of rows and columns", {13, 7}, 37, 16, true);
  add("blocks of 8", {5, 9}, 29, 8, false);
  add("blocks of 4", {6, 17}, 12, 4, true);
  add("one row", {1, 33}, 70, 16, true);
  add("vector", {17}, 19, 16, false);
  add("leading dims", {2, 3, 5, 7}, 13, 8, true);
  add("one of each", {1, 1}, 1, 1, false);
  add("no rows", {0, 3}, 5, 4, true);
  add("no depth", {3, 0}, 5, 4, true);
  add("no columns", {3, 2}, 0, 4, false);
  for (const int64_t first : {0, 9, 20}) {
    Case made{"matmul_packed",
              "columns of x from " + std::to_string(first) + " on",
              {{"columns", int64_t{19}}, {"first", first}},
              {{.shape = {6, 33}}, {.shape = {2, 13, 16}}, {.shape = {19}}}};
    cases.push_back(std::move(made));
  }
}

/// Of x in blocks of `lanes`, or, where `block` is given, plain: u [groups, 7, depth of a half, width].
void add_strassen(std::vector<Case>& cases) {
  const auto add = [&](const std::string& variant, Shape x, Shape u, int64_t half, int64_t block, bool bias,
                       int64_t first = 0) {
    Case made{"product_strassen", variant, {{"half", half}}, {{.shape = std::move(x)}}};
    if (block > 0) made.attrs.set("block", block);
    if (first > 0) made.attrs.set("first", first);
    const int64_t columns = 2 * u[0] * u[3];
    made.operands.push_back({.shape = std::move(u)});
    if (bias) made.operands.push_back({.shape = {columns}});
    cases.push_back(std::move(made));
  };
  add("blocked, an image", {1, 4, 6, 8, 16}, {1, 7, 32, 32}, 24, 0, true);
  add("blocked, odd rows", {2, 2, 5, 7, 8}, {3, 7, 8, 8}, 18, 0, false);
  add("blocked, more than half", {1, 2, 3, 3, 4}, {1, 7, 4, 8}, 6, 0, true);
  add("blocked, a line", {1, 2, 13, 8}, {1, 7, 8, 16}, 7, 0, true);
  add("blocked, a volume", {1, 2, 3, 2, 3, 4}, {2, 7, 4, 4}, 9, 0, false);
  add("blocked, pad lanes", {1, 2, 3, 3, 8}, {2, 7, 8, 8}, 5, 0, true);
  cases.back().attrs.set("columns", int64_t{27});
  add("plain", {1, 28, 64}, {2, 7, 32, 32}, 14, 16, true);
  add("plain, odd rows, batch", {3, 7, 16}, {3, 7, 8, 8}, 4, 8, true);
  add("plain, rows of two axes", {2, 3, 5, 8}, {1, 7, 4, 8}, 8, 4, false);
  add("plain, columns from 3 on", {1, 5, 21}, {1, 7, 8, 8}, 3, 8, true, 3);
  add("plain, one row", {1, 1, 8}, {1, 7, 4, 4}, 1, 4, true);
  add("empty batch", {0, 2, 3, 8}, {1, 7, 8, 8}, 2, 0, true);
  add("no rows", {1, 0, 16}, {1, 7, 8, 8}, 1, 8, false);
  add("no depth", {1, 3, 0}, {1, 7, 0, 8}, 2, 8, true);
  add("no columns", {1, 3, 16}, {0, 7, 8, 8}, 2, 8, false);
}

void add_layer_norms(std::vector<Case>& cases) {
  const auto add = [&](const std::string& variant, Shape x, int64_t axis, bool scale, bool bias) {
    const Shape row(x.begin() + axis, x.end());
    Case made{"layer_norm", variant, {{"axis", axis}, {"epsilon", 0.125}}, {{.shape = std::move(x)}}};
    made.operands.push_back({.shape = row, .absent = !scale});
    made.operands.push_back({.shape = row, .absent = !bias});
    cases.push_back(std::move(made));
  };
  add("last axis", {3, 37}, 1, true, true);
  add("whole vectors", {2, 5, 64}, 2, true, true);
  add("last two axes", {3, 2, 7}, 1, true, false);
  add("bias only", {4, 13}, 1, false, true);
  add("plain", {5, 8}, 1, false, false);
  add("one element", {1, 1}, 1, true, true);
  add("one row", {7}, 0, true, true);
  add("no rows", {0, 3}, 1, true, true);
  add("empty rows", {3, 0}, 1, true, true);
}

void add_attentions(std::vector<Case>& cases) {
  struct Heads {
    int64_t batch, queries, keys, heads, width;
  };
  const auto add = [&](const std::string& variant, const Heads& h, const Shape& mask, int64_t extra) {
    const int64_t columns = h.heads * h.width + extra;
    Case made{"attention", variant, {{"heads", h.heads}, {"width", h.width}, {"scale", 0.25}}, {}};
    if (extra > 0) made.attrs.set("offsets", std::vector<int64_t>{0, extra, extra / 2});
    made.operands.push_back({.shape = {h.batch, h.queries, columns}, .fill = Fill::kUnit});
    made.operands.push_back({.shape = {h.batch, h.keys, columns}, .fill = Fill::kUnit});
    made.operands.push_back({.shape = {h.batch, h.keys, columns}});
    if (!mask.empty()) made.operands.push_back({.shape = mask});
    cases.push_back(std::move(made));
  };
  add("whole blocks", {1, 16, 32, 2, 32}, {1, 1, 16, 32}, 0);
  add("tails of rows and keys", {2, 13, 37, 2, 16}, {2, 1, 1, 37}, 0);
  add("offsets", {1, 7, 19, 3, 16}, {}, 32);
  add("mask of a lower rank", {1, 5, 17, 1, 16}, {17}, 0);
  add("narrow heads", {1, 3, 5, 2, 3}, {1, 2, 3, 5}, 0);
  add("one of each", {1, 1, 1, 1, 1}, {}, 0);
  add("a bias and a mask of windows", {4, 7, 9, 2, 16}, {1, 2, 7, 9}, 0);
  cases.back().operands.push_back({.shape = {4, 1, 7, 9}});
  add("no queries", {1, 0, 3, 1, 2}, {}, 0);
  add("mask of float32", {1, 3, 5, 2, 3}, {3, 5}, 0);
  cases.back().operands.back().dtype = DType::kFloat32;
}

}  // namespace

void add_transformer_cases(std::vector<Case>& cases) {
  add_packed_products(cases);
  add_strassen(cases);
  add_layer_norms(cases);
  add_attentions(cases);
}

}  // namespace tensormill::ops_cases
