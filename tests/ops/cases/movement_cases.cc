/// Cases of operators that move elements.
#include "tests/ops/cases/cases.h"

namespace tensormill::ops_cases {

void add_movement_cases(std::vector<Case>& cases);

namespace {

using Ints = std::vector<int64_t>;

/// Adds cases of one operator with one operand.
struct Table {
  std::vector<Case>& cases;
  std::string op;
  void operator()(const std::string& variant, Shape shape, ir::Attrs attrs) const {
    cases.push_back({op, variant, std::move(attrs), {{.shape = std::move(shape)}}});
  }
};

void add_shapes(std::vector<Case>& cases) {
  const Table reshape{cases, "reshape"};
  reshape("flatten", {2, 3, 5}, {{"shape", Ints{30}}});
  reshape("split heads", {2, 7, 12}, {{"shape", Ints{2, 7, 3, 4}}});
  reshape("unrelated", {4, 6}, {{"shape", Ints{3, 8}}});
  reshape("ones", {1, 5, 1}, {{"shape", Ints{5, 1, 1}}});
  reshape("to scalar", {1, 1}, {{"shape", Ints{}}});
  reshape("from scalar", {}, {{"shape", Ints{1}}});
  reshape("empty", {0, 4}, {{"shape", Ints{2, 0, 3}}});
  const Table with_shape{cases, "with_shape"};
  with_shape("its own", {2, 3, 5}, {{"shape", Ints{2, 3, 5}}});
  with_shape("one row", {1, 7}, {{"shape", Ints{1, 7}}});
  with_shape("none", {0, 4}, {{"shape", Ints{0, 4}}});
  for (const Shape& shape : {Shape{3, 5}, Shape{1, 7}, Shape{0, 4}, Shape{}})
    cases.push_back({"enter_branch",
                     to_string(shape),
                     {{"shape", Ints(shape)}},
                     {{.shape = shape}, {.shape = {1}, .dtype = DType::kBool}}});
  const Table transpose{cases, "transpose"};
  transpose("reversed", {2, 3, 5}, {});
  transpose("perm", {2, 3, 5, 7}, {{"perm", Ints{0, 2, 1, 3}}});
  transpose("channels last", {1, 3, 4, 5}, {{"perm", Ints{0, 2, 3, 1}}});
  transpose("larger", {33, 47}, {});
  transpose("scalar", {}, {{"perm", Ints{}}});
  transpose("empty", {3, 0}, {});
  const Table expand{cases, "expand"};
  expand("rows", {1, 5}, {{"shape", Ints{3, 5}}});
  expand("rank", {3, 1}, {{"shape", Ints{2, 1, 4}}});
  expand("scalar", {}, {{"shape", Ints{2, 2}}});
  expand("to empty", {1}, {{"shape", Ints{0}}});
  for (const Ints& values : {Ints{}, Ints{7}, Ints{3, 1, 224}})
    cases.push_back({"extents", std::to_string(values.size()), {{"values", values}}, {}});
  for (const int64_t extent : {0, 1, 13})
    cases.push_back({"iota", std::to_string(extent), {{"extent", extent}}, {}});
  const Table tile{cases, "tile"};
  tile("plain", {2, 3}, {{"repeats", Ints{3, 2}}});
  tile("once", {2, 3}, {{"repeats", Ints{1, 1}}});
  tile("none", {2, 3}, {{"repeats", Ints{0, 2}}});
  tile("one", {1, 1}, {{"repeats", Ints{1, 5}}});
  tile("each", {2, 3, 5}, {{"repeats", Ints{1, 2, 3}}, {"each", int64_t{1}}});
  tile("each, none", {2, 3}, {{"repeats", Ints{0, 2}}, {"each", int64_t{1}}});
  tile("empty", {0, 3}, {{"repeats", Ints{2, 2}}});
  const Table spread{cases, "depth_to_space"};
  spread("plain", {2, 12, 3, 2}, {{"blocks", Ints{2, 3}}});
  spread("cropped", {1, 8, 3, 4}, {{"blocks", Ints{2, 2}}, {"crops", Ints{1, 0, 2, 3}}});
  spread("some channels", {1, 12, 2, 2}, {{"blocks", Ints{2, 2}}, {"channels", int64_t{2}}});
  spread("blocked", {1, 6, 2, 3, 4}, {{"blocks", Ints{3, 1}}, {"crops", Ints{0, 1, 1, 0}}});
  spread("1-d", {2, 6, 4}, {{"blocks", Ints{3}}, {"crops", Ints{2, 2}}});
  spread("empty", {0, 4, 3, 3}, {{"blocks", Ints{2, 2}}});
  spread("all cropped", {1, 4, 1, 3}, {{"blocks", Ints{2, 2}}, {"crops", Ints{1, 0, 1, 0}}});
}

void add_parts(std::vector<Case>& cases) {
  const auto concat = [&](const std::string& variant, int64_t axis, std::vector<Shape> shapes) {
    std::vector<Operand> operands;
    for (Shape& shape : shapes) operands.push_back({.shape = std::move(shape)});
    cases.push_back({"concat", variant, {{"axis", axis}}, std::move(operands)});
  };
  concat("two", 1, {{2, 3}, {2, 5}});
  concat("three", 0, {{1, 2}, {3, 2}, {2, 2}});
  concat("negative axis", -1, {{2, 1, 7}, {2, 1, 1}});
  concat("one", 0, {{3}});
  concat("with empty", 1, {{2, 0}, {2, 3}, {2, 0}, {2, 2}});
  concat("all empty", 0, {{0, 2}, {0, 2}});
  const Table split{cases, "split"};
  split("even", {6, 4}, {{"axis", int64_t{0}}, {"sizes", Ints{3, 3}}});
  split("uneven", {2, 7}, {{"axis", int64_t{-1}}, {"sizes", Ints{1, 4, 2}}});
  split("empty part", {2, 3}, {{"axis", int64_t{1}}, {"sizes", Ints{0, 3}}});
  split("one part", {5}, {{"axis", int64_t{0}}, {"sizes", Ints{5}}});
  const Table slice{cases, "slice"};
  slice("range", {5, 7}, {{"starts", Ints{1, 2}}, {"extents", Ints{3, 4}}});
  slice("steps", {9, 8}, {{"starts", Ints{0, 1}}, {"extents", Ints{5, 3}}, {"steps", Ints{2, 3}}});
  slice("reversed", {5, 3}, {{"starts", Ints{4, 2}}, {"extents", Ints{5, 2}}, {"steps", Ints{-1, -2}}});
  slice("empty", {5, 3}, {{"starts", Ints{5, 0}}, {"extents", Ints{0, 3}}});
  slice("one with a huge step", {5}, {{"starts", Ints{2}}, {"extents", Ints{1}}, {"steps", Ints{INT64_MIN}}});
  const Table pad{cases, "pad"};
  const std::string edge = "edge", reflect = "reflect", wrap = "wrap", constant = "constant";
  pad("constant", {2, 3}, {{"pads", Ints{1, 0, 2, 3}}, {"mode", constant}});
  pad("attribute value", {3}, {{"pads", Ints{1, 1}}, {"value", 1.0}});
  pad("cut", {5, 4}, {{"pads", Ints{-1, 2, -2, -1}}});
  pad("nothing", {2, 2}, {{"pads", Ints{0, 0, 0, 0}}});
  pad("empty input", {0, 2}, {{"pads", Ints{1, 0, 1, 0}}});
  pad("one", {1}, {{"pads", Ints{0, 0}}, {"mode", reflect}});
  pad("edge", {2, 3}, {{"pads", Ints{3, 1, 0, 2}}, {"mode", edge}});
  pad("reflect", {4, 3}, {{"pads", Ints{3, 1, 2, 2}}, {"mode", reflect}});
  pad("wrap", {3, 2}, {{"pads", Ints{4, 0, 1, 3}}, {"mode", wrap}});
  pad("edge, cut", {5}, {{"pads", Ints{-2, 3}}, {"mode", edge}});
  cases.push_back({"pad", "operand value", {{"pads", Ints{1, 2}}}, {{.shape = {3}}, {.shape = {}}}});
}

void add_gathers(std::vector<Case>& cases) {
  const auto gather = [&](const std::string& op, const std::string& variant, Shape x, Shape indices,
                          int64_t axis, DType dtype) {
    const int64_t extent = x[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis)];
    const Operand index = {
        .shape = std::move(indices), .dtype = dtype, .fill = Fill::kIndex, .limit = extent};
    cases.push_back({op, variant, {{"axis", axis}}, {{.shape = std::move(x)}, index}});
  };
  gather("gather", "rows, i64", {7, 3}, {2, 5}, 0, DType::kInt64);
  gather("gather", "columns, i32", {3, 13}, {4}, 1, DType::kInt32);
  gather("gather", "scalar index", {5, 2, 3}, {}, -2, DType::kInt64);
  gather("gather", "extent 1", {1, 3}, {4}, 0, DType::kInt64);
  gather("gather", "no indices", {5, 2}, {0}, 0, DType::kInt64);
  gather("gather", "empty rows", {5, 0}, {3}, 0, DType::kInt64);
  gather("gather_elements", "rows, i64", {5, 3}, {2, 3}, 0, DType::kInt64);
  gather("gather_elements", "columns, i32", {3, 4}, {2, 7}, -1, DType::kInt32);
  gather("gather_elements", "one", {1, 3}, {1, 2}, 0, DType::kInt32);
  gather("gather_elements", "vector", {7}, {5}, 0, DType::kInt64);
  gather("gather_elements", "empty", {3, 4}, {0, 7}, 1, DType::kInt64);
}

void add_scatters(std::vector<Case>& cases) {
  const auto scatter = [&](const std::string& variant, const std::string& reduction, Shape x,
                           const Shape& indices, int64_t axis, DType dtype) {
    const int64_t extent = x[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis)];
    const Operand index = {.shape = indices, .dtype = dtype, .fill = Fill::kIndex, .limit = extent};
    cases.push_back({"scatter_elements",
                     variant,
                     {{"axis", axis}, {"reduction", reduction}},
                     {{.shape = std::move(x), .fill = Fill::kPositive},
                      index,
                      {.shape = indices, .fill = Fill::kPositive}}});
  };
  scatter("rows, i64", "none", {5, 3}, {2, 3}, 0, DType::kInt64);
  scatter("fewer columns, i32", "none", {3, 7}, {2, 5}, -1, DType::kInt32);
  scatter("as images have, i64", "none", {8, 1, 8, 2}, {2, 1, 6, 1}, 0, DType::kInt64);
  scatter("vector", "none", {13}, {31}, 0, DType::kInt64);
  scatter("one", "none", {1, 3}, {1, 1}, 0, DType::kInt32);
  scatter("no updates", "none", {3, 4}, {0, 4}, 0, DType::kInt64);
  scatter("no updates", "add", {3, 4}, {0, 4}, 0, DType::kInt64);
  scatter("empty", "none", {0, 4}, {0, 4}, 0, DType::kInt64);
  for (const char* reduction : {"add", "mul", "min", "max"}) {
    scatter("rows", reduction, {5, 3}, {7, 2}, 0, DType::kInt64);
    scatter("middle", reduction, {2, 3, 5}, {2, 7, 5}, 1, DType::kInt32);
  }
  const Table top{cases, "arg_top_k"};
  top("last axis", {3, 7}, {{"k", int64_t{3}}});
  top("smallest, first axis", {5, 3}, {{"axis", int64_t{0}}, {"k", int64_t{5}}, {"largest", int64_t{0}}});
  top("one", {1, 2}, {{"k", int64_t{1}}});
  top("none", {3, 4}, {{"k", int64_t{0}}});
  top("empty", {0, 4}, {{"k", int64_t{2}}});
}

void add_others(std::vector<Case>& cases) {
  const Table trilu{cases, "trilu"};
  const int64_t no = 0, yes = 1;
  trilu("upper", {5, 5}, {});
  trilu("lower", {2, 3, 7}, {{"upper", no}});
  trilu("upper, k", {4, 3}, {{"k", int64_t{-1}}});
  trilu("lower, k", {3, 5}, {{"upper", no}, {"k", int64_t{2}}});
  trilu("one", {1, 1}, {});
  trilu("far k", {3, 3}, {{"k", INT64_MAX}});
  trilu("empty", {0, 3}, {});
  const Table cumsum{cases, "cumsum"};
  cumsum("first axis", {7, 3}, {{"axis", no}});
  cumsum("last axis", {2, 13}, {{"axis", int64_t{-1}}});
  cumsum("exclusive", {5}, {{"axis", no}, {"exclusive", yes}});
  cumsum("reverse", {2, 5, 3}, {{"axis", yes}, {"reverse", yes}});
  cumsum("exclusive, reverse", {7}, {{"axis", no}, {"exclusive", yes}, {"reverse", yes}});
  cumsum("one", {3, 1}, {{"axis", yes}});
  cumsum("empty", {0, 3}, {{"axis", no}});
  const auto fill = [&](const std::string& with, Shape shape, int64_t axis) {
    const Operand count = {.shape = {1}, .dtype = DType::kInt64, .fill = Fill::kCount, .limit = 7};
    cases.push_back(
        {"fill_behind", with, {{"axis", axis}, {"with", with}}, {{.shape = std::move(shape)}, count}});
  };
  fill("zero", {7, 3}, 0);
  fill("one", {2, 5}, -1);
  fill("lowest", {1, 5, 2}, 1);
  fill("largest", {5}, 0);
  fill("last", {5, 2}, 0);
  fill("zero", {0, 3}, 1);
  const Table cumprod{cases, "cumprod"};
  cumprod("first axis", {7, 3}, {{"axis", no}});
  cumprod("exclusive, reverse", {2, 5}, {{"axis", yes}, {"exclusive", yes}, {"reverse", yes}});
  cumprod("one", {3, 1}, {{"axis", yes}});
  cumprod("empty", {0, 3}, {{"axis", no}});
  const auto one_hot = [&](const std::string& variant, Shape indices, DType dtype, ir::Attrs attrs) {
    const Operand index = {.shape = std::move(indices), .dtype = dtype, .fill = Fill::kIndex, .limit = 7};
    cases.push_back({"one_hot", variant, std::move(attrs), {index, {.shape = {2}}}});
  };
  one_hot("last axis", {3, 4}, DType::kInt64, {{"depth", int64_t{5}}});
  one_hot("first axis", {5}, DType::kInt32, {{"depth", int64_t{7}}, {"axis", no}});
  one_hot("float indices", {2, 3}, DType::kFloat32, {{"depth", int64_t{4}}, {"axis", yes}});
  one_hot("depth 1", {3, 1}, DType::kInt64, {{"depth", yes}});
  one_hot("depth 0", {3}, DType::kInt64, {{"depth", no}});
  one_hot("scalar", {}, DType::kInt64, {{"depth", int64_t{6}}});
}

void add_layouts(std::vector<Case>& cases) {
  const Table to{cases, "to_blocked"};
  to("even", {1, 32, 3, 5}, {{"block", int64_t{16}}});
  to("tail of lanes", {2, 13, 4, 7}, {{"block", int64_t{8}}});
  to("fewer channels than lanes", {1, 3, 5, 5}, {{"block", int64_t{16}}});
  to("no spatial dims", {2, 7}, {{"block", int64_t{4}}});
  to("block 1", {1, 5, 2, 1}, {{"block", int64_t{1}}});
  to("empty", {0, 5, 3, 3}, {{"block", int64_t{4}}});
  to("no channels", {1, 0, 3, 3}, {{"block", int64_t{4}}});
  const Table from{cases, "from_blocked"};
  from("even", {1, 2, 3, 5, 16}, {{"channels", int64_t{32}}});
  from("tail of lanes", {2, 2, 4, 7, 8}, {{"channels", int64_t{13}}});
  from("fewer channels than lanes", {1, 1, 5, 5, 16}, {{"channels", int64_t{3}}});
  from("no spatial dims", {2, 2, 4}, {{"channels", int64_t{7}}});
  from("empty", {0, 2, 3, 3, 4}, {{"channels", int64_t{5}}});
  const auto gather = [&](const std::string& variant, std::vector<Shape> shapes, Ints channels) {
    std::vector<Operand> operands;
    for (Shape& shape : shapes) operands.push_back({.shape = std::move(shape)});
    cases.push_back({"gather_channels", variant, {{"channels", std::move(channels)}}, std::move(operands)});
  };
  gather("any order", {{1, 2, 3, 5, 4}}, {7, 0, 3, 3, 1});
  gather("runs of two", {{2, 2, 3, 1, 8}, {2, 1, 3, 1, 8}}, {13, 14, 15, 0, 1, 2, 3, 4, 5, 16, 17, 18, 19});
  gather("whole blocks", {{1, 2, 7, 4}, {1, 1, 7, 4}}, {8, 9, 10, 11, 4, 5, 6, 7});
  gather("one lane", {{1, 5, 3, 1}}, {4, 2});
  gather("none", {{1, 2, 3, 4}}, {});
  gather("empty", {{0, 2, 3, 3, 4}}, {1, 6, 2});
  from("no channels", {1, 0, 3, 3, 4}, {{"channels", int64_t{0}}});
}

}  // namespace

void add_movement_cases(std::vector<Case>& cases) {
  add_shapes(cases);
  add_parts(cases);
  add_gathers(cases);
  add_scatters(cases);
  add_layouts(cases);
  add_others(cases);
}

}  // namespace tensormill::ops_cases
