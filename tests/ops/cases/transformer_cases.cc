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
}

}  // namespace

void add_transformer_cases(std::vector<Case>& cases) { add_packed_products(cases); }

}  // namespace tensormill::ops_cases
