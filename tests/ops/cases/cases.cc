#include "tests/ops/cases/cases.h"

#include <map>

#include "runtime/base/narrow.h"

namespace tensormill::ops_cases {

// The other tables, by kind of operator.
void add_channels_last_cases(std::vector<Case>& cases);
void add_window_cases(std::vector<Case>& cases);
void add_blocked_conv_cases(std::vector<Case>& cases);
void add_movement_cases(std::vector<Case>& cases);
void add_transformer_cases(std::vector<Case>& cases);

namespace {

using Ints = std::vector<int64_t>;

void add_unary(std::vector<Case>& cases, const std::string& op, const std::string& variant,
               const ir::Attrs& attrs) {
  const Fill fill = op == "asin" || op == "acos"                                  ? Fill::kUnit
                    : op == "sqrt" || op == "log" || op == "rsqrt" || op == "tan" ? Fill::kPositive
                                                                                  : Fill::kAny;
  static const std::vector<Shape> shapes = {{2, 3, 7}, {1}, {}, {0, 3}, {37}, {3, 131}};
  for (const Shape& shape : shapes) {
    cases.push_back({op, variant, attrs, {{.shape = shape, .fill = op == "tan" ? Fill::kUnit : fill}}});
  }
}

void add_unaries(std::vector<Case>& cases) {
#define TM_UNARY(id, name, ...) add_unary(cases, name, "plain", {});
#include "compiler/ops/unary.def"
#undef TM_UNARY
  add_unary(cases, "elu", "alpha", {{"alpha", 0.5}});
  add_unary(cases, "selu", "alpha, gamma", {{"alpha", 1.5}, {"gamma", 2.0}});
  add_unary(cases, "leaky_relu", "alpha", {{"alpha", 0.25}});
  add_unary(cases, "hard_sigmoid", "alpha, beta", {{"alpha", 0.5}, {"beta", 0.25}});
  add_unary(cases, "gelu", "none", {{"approximate", std::string("none")}});
  add_unary(cases, "gelu", "tanh", {{"approximate", std::string("tanh")}});
}

void add_binary(std::vector<Case>& cases, const std::string& op, const std::string& variant,
                const ir::Attrs& attrs) {
  const Fill left = op == "pow" ? Fill::kPositive : Fill::kAny;
  const Fill right = op == "bit_shift" ? Fill::kPositive : Fill::kAny;
  static const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3, 5}, {2, 3, 5}}, {{2, 3, 5}, {5}}, {{3, 1}, {1, 7}},         {{}, {4}},
      {{0, 3}, {1, 3}},       {{1}, {1}},       {{2, 7, 13}, {2, 1, 13}}, {{3, 1, 67}, {5, 67}}};
  for (const auto& [a, b] : shapes) {
    cases.push_back({op, variant, attrs, {{.shape = a, .fill = left}, {.shape = b, .fill = right}}});
  }
}

void add_binaries(std::vector<Case>& cases) {
  const ir::Attrs left = {{"direction", std::string("left")}}, right = {{"direction", std::string("right")}};
#define TM_BINARY(id, name, ...) \
  if (std::string(name) != "bit_shift") add_binary(cases, name, "plain", {});
#include "compiler/ops/binary.def"
#undef TM_BINARY
  add_binary(cases, "mod", "fmod", {{"fmod", int64_t{1}}});
  add_binary(cases, "bit_shift", "left", left);
  add_binary(cases, "bit_shift", "right", right);
}

void add_choices(std::vector<Case>& cases) {
  static const std::vector<std::vector<Shape>> choices = {{{2, 3}, {2, 3}, {2, 3}},
                                                          {{3}, {2, 1}, {}},
                                                          {{2, 1, 5}, {1, 3, 1}, {3, 5}},
                                                          {{0}, {1}, {1}},
                                                          {{1}, {7}, {7}}};
  for (const auto& shapes : choices) {
    cases.push_back(
        {"where",
         "broadcast",
         {},
         {{.shape = shapes[0], .dtype = DType::kBool}, {.shape = shapes[1]}, {.shape = shapes[2]}}});
  }
  const Operand x = {.shape = {3, 7}}, low = {.shape = {}, .fill = Fill::kUnit},
                high = {.shape = {1}, .fill = Fill::kPositive};
  const Operand none = {.shape = {}, .absent = true};
  cases.push_back({"clip", "operands", {}, {x, low, high}});
  cases.push_back({"clip", "min operand", {}, {x, low}});
  cases.push_back({"clip", "max operand", {}, {x, none, high}});
  cases.push_back({"clip", "none", {}, {x}});
  cases.push_back({"clip", "attributes", {{"min", 0.0}, {"max", 6.0}}, {x}});
  cases.push_back({"clip", "max attribute", {{"max", 2.0}}, {{.shape = {0, 2}}}});
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype == kString) continue;
    cases.push_back({"cast", "to " + std::string(row.name), {{"to", row.dtype}}, {{.shape = {3, 7}}}});
  }
  for (const DTypeInfo& row : all_dtypes()) {
    if (row.dtype == kString || (row.bits == 16 && row.is_float)) continue;
    cases.push_back({"bit_cast", "to " + std::string(row.name), {{"to", row.dtype}}, {{.shape = {3, 7}}}});
  }
  cases.push_back({"bit_cast", "one", {{"to", DType::kUInt32}}, {{.shape = {1}}}});
  cases.push_back({"bit_cast", "empty", {{"to", DType::kInt64}}, {{.shape = {0}}}});
  Ints table;
  for (int64_t i = 0; i < 256; ++i) table.push_back(((i * 167 + 13) ^ (i / 8)) % 256);
  for (const Shape& shape : {Shape{3, 7}, Shape{1}, Shape{0}, Shape{2, 131}}) {
    for (const DType to : {DType::kInt8, DType::kUInt8}) {
      const std::string variant = "to " + std::string(dtype_name(to));
      cases.push_back({"lookup", variant, {{"table", table}, {"to", to}}, {{.shape = shape}}});
    }
  }
  cases.push_back({"cast", "one", {{"to", DType::kFloat16}}, {{.shape = {1}}}});
  cases.push_back({"cast", "empty", {{"to", DType::kInt32}}, {{.shape = {0}}}});
}

void add_products(std::vector<Case>& cases) {
  const auto add = [&](const std::string& variant, Shape a, Shape b, ir::Attrs attrs = {}) {
    cases.push_back(
        {"matmul", variant, std::move(attrs), {{.shape = std::move(a)}, {.shape = std::move(b)}}});
  };
  const ir::Attrs ta = {{"transpose_a", int64_t{1}}}, tb = {{"transpose_b", int64_t{1}}};
  const ir::Attrs both = {{"transpose_a", int64_t{1}}, {"transpose_b", int64_t{1}}};
  add("plain", {5, 7}, {7, 13});
  add("larger", {33, 41}, {41, 67});
  add("plain", {1, 17}, {17, 1});
  add("plain", {0, 3}, {3, 2});
  add("plain", {3, 0}, {0, 2});
  add("vectors", {7}, {7});
  add("vector left", {7}, {2, 7, 3});
  add("vector right", {2, 5, 7}, {7});
  add("batched", {2, 3, 4, 5}, {2, 3, 5, 6});
  add("batch broadcast", {2, 1, 4, 5}, {3, 5, 2});
  add("batch empty", {0, 4, 5}, {5, 2});
  add("transpose_a", {7, 5}, {7, 3}, ta);
  add("transpose_b", {2, 5, 7}, {3, 7}, tb);
  add("transpose both", {2, 7, 5}, {2, 3, 7}, both);
  add("transpose of vectors", {7}, {7}, both);
}

void add_reductions(std::vector<Case>& cases) {
  const std::vector<std::string> ops = {
      "reduce_sum", "reduce_mean", "reduce_max",        "reduce_min",     "reduce_prod",
      "reduce_l1",  "reduce_l2",   "reduce_sum_square", "reduce_log_sum", "reduce_log_sum_exp"};
  const ir::Attrs drop = {{"axes", Ints{-1}}, {"keepdims", int64_t{0}}};
  for (const std::string& op : ops) {
    const Fill fill = op == "reduce_log_sum" || op == "reduce_prod" ? Fill::kPositive : Fill::kAny;
    const auto add = [&](const std::string& variant, Shape shape, ir::Attrs attrs) {
      cases.push_back({op, variant, std::move(attrs), {{.shape = std::move(shape), .fill = fill}}});
    };
    add("all axes", {3, 5}, {});
    add("all axes, dropped", {3, 5, 2}, {{"keepdims", int64_t{0}}});
    add("last axis", {4, 13}, drop);
    add("middle axis", {2, 7, 3}, {{"axes", Ints{1}}});
    add("larger", {5, 131}, drop);
    add("larger, outer", {31, 37}, {{"axes", Ints{0}}});
    add("outer and inner", {2, 3, 5}, {{"axes", Ints{0, -1}}, {"keepdims", int64_t{0}}});
    add("no axes", {2, 3}, {{"axes", Ints{}}});
    add("scalar", {}, {});
    add("empty reduction", {3, 0}, {{"axes", Ints{1}}});
    add("empty result", {0, 3}, {{"axes", Ints{1}}});
    add("extent 1", {5, 1}, drop);
  }
  for (const std::string& op : {std::string("arg_max"), std::string("arg_min")}) {
    const auto add = [&](const std::string& variant, Shape shape, ir::Attrs attrs) {
      cases.push_back({op, variant, std::move(attrs), {{.shape = std::move(shape)}}});
    };
    add("default axis", {7, 3}, {});
    add("last axis", {3, 17}, {{"axis", int64_t{-1}}});
    add("dropped", {2, 5, 3}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
    add("last of equals", {3, 29}, {{"axis", int64_t{1}}, {"select_last", int64_t{1}}});
    add("extent 1", {3, 1}, {{"axis", int64_t{1}}});
    add("empty", {0, 3}, {{"axis", int64_t{1}}});
    add("vector to scalar", {5}, {{"keepdims", int64_t{0}}});
  }
}

void add_normalizations(std::vector<Case>& cases) {
  for (const std::string& op : {std::string("softmax"), std::string("log_softmax")}) {
    cases.push_back({op, "last axis", {}, {{.shape = {3, 13}}}});
    cases.push_back({op, "larger", {}, {{.shape = {5, 131}}}});
    cases.push_back({op, "middle axis", {{"axis", int64_t{1}}}, {{.shape = {2, 7, 3}}}});
    cases.push_back({op, "first axis", {{"axis", int64_t{0}}}, {{.shape = {5, 2}}}});
    cases.push_back({op, "extent 1", {}, {{.shape = {4, 1}}}});
    cases.push_back({op, "empty rows", {}, {{.shape = {0, 4}}}});
    cases.push_back({op, "empty axis", {}, {{.shape = {4, 0}}}});
  }
  const auto channels = [](int64_t c) { return Operand{.shape = {c}, .fill = Fill::kPositive}; };
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{4, 13}, Shape{0, 3, 2}, Shape{1, 1, 1}}) {
    const Operand row = channels(shape[1]);
    cases.push_back({"batch_norm", "default", {}, {{.shape = shape}, row, row, row, row}});
    cases.push_back({"batch_norm", "epsilon", {{"epsilon", 0.125}}, {{.shape = shape}, row, row, row, row}});
  }
  for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 2, 13}, Shape{2, 3, 0}, Shape{2, 1, 1, 1}}) {
    const Operand row = channels(shape[1]);
    cases.push_back({"instance_norm", "default", {}, {{.shape = shape}, row, row}});
    cases.push_back({"instance_norm", "epsilon", {{"epsilon", 0.125}}, {{.shape = shape}, row, row}});
  }
  cases.push_back({"lrn", "odd size", {{"size", int64_t{3}}}, {{.shape = {2, 5, 3, 2}}}});
  cases.push_back({"lrn",
                   "even size",
                   {{"size", int64_t{4}}, {"alpha", 0.5}, {"beta", 0.5}, {"bias", 2.0}},
                   {{.shape = {1, 7, 3}}}});
  cases.push_back({"lrn", "size over channels", {{"size", int64_t{9}}}, {{.shape = {2, 3}}}});
  cases.push_back({"lrn", "empty", {{"size", int64_t{3}}}, {{.shape = {0, 3, 2}}}});
}

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  add_unaries(cases);
  add_binaries(cases);
  add_choices(cases);
  add_products(cases);
  add_window_cases(cases);
  add_blocked_conv_cases(cases);
  add_reductions(cases);
  add_normalizations(cases);
  add_movement_cases(cases);
  add_transformer_cases(cases);
  add_channels_last_cases(cases);
  return cases;
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = make_cases();
  return cases;
}

}  // namespace tensormill::ops_cases
