// TorchScript files: networks, cases of operators and modules with control flow against what torch makes of
// them (tests/fixtures/pytorch_script); what their code may say, and what is refused, by file and line.
#include <algorithm>

#include "compiler/frontend/pytorch/script/import.h"
#include "compiler/ir/bind_symbols.h"
#include "tests/expect_error.h"
#include "tests/importer/fixtures.h"
#include "tests/importer/stored_zip.h"

namespace tensormill::frontend {
namespace {

std::vector<std::string> scripts() {
  std::vector<std::string> names = fixtures_in({"pytorch_script"}, ".pt");
  // What is as long as a run decides is cut by runs alone (tests/e2e/torchscript_test.py).
  std::erase_if(names, [](const std::string& name) {
    return name == "pytorch_script/ops_counted" || name.starts_with("pytorch_script/ops_lengths");
  });
  return names;
}

class TorchScripts : public testing::TestWithParam<std::string> {};

TEST_P(TorchScripts, GiveTheNumbersOfTorch) {
  const std::string name = GetParam();
  const Tensors inputs = arrays_of(name + ".npz", "in.");
  const auto model = importer_of(name + ".pt");
  EXPECT_EQ(model->format(), "torchscript");
  EXPECT_TRUE(model->unsupported().empty());
  ASSERT_EQ(model->facts().inputs.size(), inputs.size());
  for (const SignatureValue& input : model->facts().inputs)
    EXPECT_EQ(input.dtype, inputs.at(input.name).dtype()) << input.name;
  const ir::Graph graph = model->import(at_shapes_of(inputs), ops::standard_ops());
  ir::verify(graph);
  expect_outputs(evaluated(graph, inputs), arrays_of(name + ".npz", "out."),
                 [](const Tensor& want) { return want.dtype() == DType::kFloat16 ? 2e-3 : 2e-5; });
}
INSTANTIATE_TEST_SUITE_P(Files, TorchScripts, testing::ValuesIn(scripts()), label_of);

/// A file whose forward() is this; the module has no attributes.
std::string file_of(const std::string& forward, const std::string& before = "") {
  const std::string code = before + "class Net(Module):\n  def forward(self: __torch__.net.Net" + forward;
  return stored_zip({{"net/data.pkl", std::string("\x80\x02"
                                                  "c__torch__.net\nNet\n)\x81}b.")},
                     {"net/code/__torch__/net.py", code},
                     {"net/constants.pkl", std::string("\x80\x02).")},
                     {"net/version", "3\n"}});
}

ir::Graph graph_of(const std::string& forward, const std::string& before = "") {
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{3}};
  return importer_of_bytes(file_of(forward, before))->import(options, ops::standard_ops());
}

/// What forward(x) with this body makes of 0, 1, 2 ... [2, 3].
Tensor result_of(const std::string& body, const std::string& before = "") {
  const ir::Graph graph = graph_of(",\n    x: Tensor) -> Tensor:\n" + body, before);
  Tensor x(DType::kFloat32, {2, 3});
  for (int64_t i = 0; i < 6; ++i) x.set_element(i, static_cast<double>(i));
  return evaluated(graph, {{"x", x}}).at("output");
}

TEST(TorchScriptCode, ControlFlowIsFollowed) {
  const Tensor y = result_of(
      "    y = x\n    kept = annotate(List[Tensor], [])\n    for i in range(3):\n"
      "      if torch.eq(torch.remainder(i, 2), 0):\n        y0 = torch.add(y, i, alpha=2)\n"
      "      else:\n        y0 = torch.neg(y)\n      y = y0\n      _0 = torch.append(kept, y)\n"
      "    n = 0\n    while torch.lt(n, torch.len(kept)):\n      n = torch.add(n, 1)\n"
      "    first, second, third, = kept\n    return torch.mul(torch.add(first, third), n)\n");
  // first = x, third = -x + 4, three of them
  EXPECT_EQ(y.element_as_double(5), 12);
}

TEST(TorchScriptCode, FunctionsListsAndTextsAreFollowed) {
  const Tensor y = result_of(
      "    _1 = __torch__.net.scaled\n    sizes = torch.size(x)\n    by = {\"a\": 2, \"b\": sizes[-1]}\n"
      "    tail = torch.slice([4, 5, torch.sum([1, 2, 3])], 1, None, 1)\n"
      "    if torch.__contains__(by, \"b\"):\n      k = torch.add(by[\"b\"], tail[0])\n    else:\n      k = "
      "0\n"
      "    name = torch.add(\"a\", \"b\")\n    if torch.eq(name, \"ab\"):\n      z = _1(x, k, )\n"
      "    else:\n      z = x\n    return z\n",
      "def scaled(x: Tensor,\n    by: int,\n    more: float=0.5) -> Tensor:\n  return torch.add(torch.mul(x, "
      "by), more)\n");
  EXPECT_EQ(y.element_as_double(1), 8.5);
}

TEST(TorchScriptCode, WhatIsWrittenAfterwardsIsNotReadFromWhatMayBeAView) {
  // Where products of matrices lie is not followed.
  const std::string turned =
      "    y = torch.matmul(torch.transpose(x, 0, 1), torch.ones([2, 2]))\n    z = torch.reshape(y, [6])\n";
  expect_error(ErrorCode::kOperatorNotImplemented, "may or may not share",
               [&] { result_of(turned + "    y0 = torch.relu_(y)\n    return torch.add(z, 1)\n"); });
  EXPECT_EQ(result_of(turned + "    y0 = torch.abs_(y)\n    return y0\n").element_as_double(1), 3);
}

// Element by element it lies as its operand does.
TEST(TorchScriptCode, WhatIsMadeOfWhatIsTurnedIsTurned) {
  const std::string turned = "    y = torch.neg(torch.transpose(x, 0, 1))\n";
  EXPECT_EQ(
      result_of(turned + "    z = torch.mul_(torch.reshape(y, [6]), 2)\n    return y\n").element_as_double(1),
      -3);
  EXPECT_EQ(result_of(turned +
                      "    z = torch.mul_(torch.reshape(torch.transpose(y, 0, 1), [6]), 2)\n    return y\n")
                .element_as_double(1),
            -6);
}

TEST(TorchScriptCode, WhatIsAViewOrACopyFollowsFromWhereElementsLie) {
  const char* write = "    z = torch.mul_(torch.reshape(y, [-1]), 2)\n    return y\n";
  EXPECT_EQ(result_of(std::string("    y = torch.neg(x)\n") + write).element_as_double(1), -2);
  EXPECT_EQ(
      result_of(std::string("    y = torch.transpose(torch.neg(x), 0, 1)\n") + write).element_as_double(1),
      -3);
  EXPECT_EQ(result_of(std::string("    y = torch.select(torch.neg(x), 0, 1)\n") + write).element_as_double(1),
            -8);
  const char* kept = "    z = torch.mul_(torch.contiguous(y), 2)\n    return y\n";
  EXPECT_EQ(result_of(std::string("    y = torch.neg(x)\n") + kept).element_as_double(1), -2);
  EXPECT_EQ(
      result_of(std::string("    y = torch.transpose(torch.neg(x), 0, 1)\n") + kept).element_as_double(1),
      -3);
}

// What is broadcast beside it does not turn it back: it has no order of its own.
TEST(TorchScriptCode, WhatIsMadeOfSeveralLiesAsTheFirstThatHasAnOrder) {
  const auto last_of = [](const std::string& made) {
    const Tensor y =
        result_of("    y = " + made + "\n    z = torch.mul_(torch.reshape(y, [6]), 2)\n    return y\n");
    return y.element_as_double(5);
  };
  const std::string turned = "torch.transpose(torch.neg(x), 0, 1)";
  for (const char* row : {"torch.ones([3, 1])", "torch.ones([2])", "torch.ones([1, 1])"}) {
    EXPECT_EQ(last_of("torch.mul(" + turned + ", " + row + ")"), -5);
    EXPECT_EQ(last_of("torch.mul(" + std::string(row) + ", " + turned + ")"), -5);
  }
  EXPECT_EQ(last_of("torch.mul(" + turned + ", torch.ones([3, 2]))"), -5);
  EXPECT_EQ(last_of("torch.mul(torch.ones([3, 2]), " + turned + ")"), -10);
}

// expand(), broadcast_tensors() and meshgrid() make views, in which elements may be there more than once.
TEST(TorchScriptCode, WhatIsExpandedIsAView) {
  const std::string same =
                        "    y = torch.neg(x)\n    a, b, = torch.broadcast_tensors([y, torch.zeros([3])])\n",
                    more = "    y = torch.neg(torch.slice(x, 0, 0, 1))\n    a = torch.expand(y, [2, 3])\n",
                    grid = "    y = torch.neg(torch.select(x, 0, 0))\n    a, b, = torch.meshgrid([y, y])\n";
  const auto second_of = [](const std::string& body) { return result_of(body).element_as_double(1); };
  EXPECT_EQ(second_of(same + "    z = torch.mul_(y, 2)\n    return a\n"), -2);
  EXPECT_EQ(second_of(same + "    z = torch.mul_(a, 2)\n    return y\n"), -2);
  EXPECT_EQ(second_of(same + "    z = torch.mul_(torch.reshape(a, [-1]), 2)\n    return y\n"), -2);
  EXPECT_EQ(second_of(same + "    return torch.as_strided(a, [2], [4])\n"), -4);
  EXPECT_EQ(second_of(more + "    z = torch.mul_(y, 2)\n    return a\n"), -2);
  EXPECT_EQ(second_of(more + "    z = torch.mul_(torch.reshape(a, [-1]), 2)\n    return a\n"), -1);
  EXPECT_EQ(second_of(grid + "    z = torch.mul_(y, 2)\n    return b\n"), -2);
  for (const std::string& made : {more, grid})
    expect_error(ErrorCode::kOperatorNotImplemented, "elements that are there more than once",
                 [&] { result_of(made + "    z = torch.mul_(a, 2)\n    return y\n"); });
  expect_error(ErrorCode::kOperatorNotImplemented, "do not lie in rows",
               [&] { result_of(more + "    return torch.as_strided(a, [2], [4])\n"); });
}

/// What forward(x) with this body makes of 0, 1, 2 ... [N, 4], imported with N free and bound afterwards.
Tensor result_of_rows(const std::string& body, int64_t rows) {
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{3}, int64_t{4}};
  options.symbols["x"][0] = "N";
  const auto model = importer_of_bytes(file_of(",\n    x: Tensor) -> Tensor:\n" + body));
  const ir::Graph graph = ir::bind_symbols(model->import(options, ops::standard_ops()), {{"N", rows}});
  ir::verify(graph);
  Tensor x(DType::kFloat32, {rows, 4});
  for (int64_t i = 0; i < 4 * rows; ++i) x.set_element(i, static_cast<double>(i));
  return evaluated(graph, {{"x", x}}).at("output");
}

// floor(n / 2) and the like are exact in float64, and extents as n is.
TEST(TorchScriptCode, WholePartsOfFractionsOfFreeDimsAreFreeDims) {
  struct Fraction {
    const char* code;
    int64_t (*count)(int64_t rows);
  };
  const Fraction fractions[] = {
      {"int(torch.mul(torch.size(x, 0), 0.5))", [](int64_t n) { return n / 2; }},
      {"int(torch.div(torch.size(x, 0), 2))", [](int64_t n) { return n / 2; }},
      {"torch.floor(torch.mul(torch.size(x, 0), 0.75))", [](int64_t n) { return n * 3 / 4; }},
      {"torch.ceil(torch.div(torch.size(x, 0), 3))", [](int64_t n) { return (n + 2) / 3; }},
      {"torch.floor(torch.div(float(torch.size(x, 0)), 1.5))", [](int64_t n) { return n * 2 / 3; }},
      {"int(torch.neg(torch.mul(torch.size(x, 0), -0.5)))", [](int64_t n) { return n / 2; }},
      {"int(-torch.mul(torch.size(x, 0), -0.5))", [](int64_t n) { return n / 2; }},
      {"torch.floor(torch.add(torch.mul(torch.size(x, 0), 1.5), 0.25))",
       [](int64_t n) { return (6 * n + 1) / 4; }},
      // Toward zero on both sides of it.
      {"torch.add(4, int(torch.sub(torch.div(torch.size(x, 0), 2), 3.5)))",
       [](int64_t n) { return 4 + (n - 7) / 2; }},
      {"torch.size(torch.arange(torch.mul(torch.size(x, 0), 0.5)), 0)",
       [](int64_t n) { return (n + 1) / 2; }},
  };
  for (const Fraction& each : fractions) {
    SCOPED_TRACE(each.code);
    const std::string code = "    n = " + std::string(each.code) +
                             "\n    return torch.add(torch.ones([n, 4]), torch.select(x, 0, 0))\n";
    for (const int64_t rows : {3, 4, 7, 9})
      EXPECT_EQ(result_of_rows(code, rows).shape(), (Shape{each.count(rows), 4})) << rows;
  }
}

/// Whether forward(x) with this body is the same for all numbers of rows of x [N,4].
bool is_of_all_rows(const std::string& body) {
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{3}, int64_t{4}};
  options.symbols["x"][0] = "N";
  const auto model = importer_of_bytes(file_of(",\n    x: Tensor) -> Tensor:\n" + body));
  const ir::Graph graph = model->import(options, ops::standard_ops());
  const auto& guards = graph.symbols()->guards();
  return std::none_of(guards.begin(), guards.end(), [](const ir::Guard& guard) {
    return guard.relation == ir::Relation::kEqual && guard.holds;
  });
}

TEST(TorchScriptCode, FractionsOfFreeDimsAreComparedWithoutAFixedDim) {
  EXPECT_TRUE(
      is_of_all_rows("    if torch.gt(torch.mul(torch.size(x, 0), 0.5), 1.0):\n      y = torch.neg(x)\n    "
                     "else:\n      y = x\n"
                     "    return y\n"));
}

// 0.1 has 55 digits behind the point, and a third of a third is rounded twice.
TEST(TorchScriptCode, WhatFloat64RoundsOfFreeDimsFixesThem) {
  for (const char* code :
       {"int(torch.mul(torch.size(x, 0), 0.1))", "int(torch.mul(torch.div(torch.size(x, 0), 3), 2))",
        "torch.floor(torch.div(torch.div(torch.size(x, 0), 3), 3))"})
    EXPECT_FALSE(is_of_all_rows("    n = " + std::string(code) + "\n    return torch.add(x, n)\n")) << code;
}

TEST(TorchScriptCode, WhatIsAViewOrACopyOfFreeDimsIsSoForAllOfThem) {
  const std::string columns = "    y = torch.slice(torch.neg(x), 1, 0, 2)\n";
  const std::string turned =
      "    y = torch.transpose(torch.reshape(torch.neg(x), [-1, 2, 2]), 1, 2)\n"
      "    z = torch.reshape(y, [-1, 4])\n";
  for (const int64_t rows : {1, 3}) {
    SCOPED_TRACE(rows);
    const auto last_of = [&](const std::string& body) {
      const Tensor y = result_of_rows(body, rows);
      return y.element_as_double(y.num_elements() - 1);
    };
    const double last = static_cast<double>(1 - 4 * rows);  // of neg(x)
    // Two columns are rows of their own, however many there are.
    EXPECT_EQ(last_of(columns + "    z = torch.mul_(torch.reshape(y, [-1, 1, 2]), 2)\n    return y\n"),
              2 * (last + 2));
    // Two axes that lie the other way round are no row, whatever is before them; their copy lies in rows.
    EXPECT_EQ(last_of(turned + "    z0 = torch.mul_(z, 2)\n    return y\n"), last);
    EXPECT_EQ(last_of(turned + "    z0 = torch.mul_(torch.reshape(z, [-1]), 2)\n    return z\n"), 2 * last);
    // So does what is contiguous, be it a view or a copy.
    EXPECT_EQ(last_of(columns + "    z = torch.contiguous(y)\n"
                                "    z0 = torch.mul_(torch.reshape(z, [-1]), 2)\n    return z\n"),
              2 * (last + 2));
  }
}

// Of one row a view, of more a copy.
TEST(TorchScriptCode, WhatFreeDimsMakeAViewOrACopyIsNotReadAfterAWrite) {
  const char* forms[] = {
      "    y = torch.transpose(torch.neg(x), 0, 1)\n    z = torch.reshape(y, [-1])\n",
      "    y = torch.slice(torch.neg(x), 1, 0, 2)\n    z = torch.reshape(y, [-1])\n",
      "    y = torch.slice(torch.neg(x), 1, 0, 2)\n    z = torch.flatten(y)\n",
      "    y = torch.slice(torch.neg(x), 1, 0, 2)\n    z = torch.contiguous(y)\n",
  };
  for (const std::string form : forms) {
    SCOPED_TRACE(form);
    for (const char* write : {"    z0 = torch.mul_(z, 2)\n    return torch.neg(y)\n",
                              "    y0 = torch.mul_(y, 2)\n    return torch.neg(z)\n"})
      expect_error(ErrorCode::kOperatorNotImplemented, "may or may not share",
                   [&] { result_of_rows(form + write, 1); });
    // What is not read afterwards may be either.
    for (const char* write : {"    z0 = torch.mul_(z, 2)\n    return z\n", "    return torch.mul_(y, 2)\n",
                              "    return torch.add(torch.sum(z), torch.sum(y))\n"})
      EXPECT_NO_THROW(result_of_rows(form + write, 3));
  }
}

/// What forward(x) with this body makes of 0, 1, 2 ... [N,C,2,3], imported with the dims of these names free,
/// and bound to one map of two channels.
Tensor result_of_maps(const std::string& body, const std::map<size_t, std::string>& free) {
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{4}, int64_t{2}, int64_t{2}, int64_t{3}};
  std::map<std::string, int64_t> sizes;
  for (const auto& [axis, name] : free) {
    options.symbols["x"][axis] = name;
    sizes[name] = axis == 0 ? 1 : 2;
  }
  const auto model = importer_of_bytes(file_of(",\n    x: Tensor) -> Tensor:\n" + body));
  const ir::Graph graph = ir::bind_symbols(model->import(options, ops::standard_ops()), sizes);
  ir::verify(graph);
  Tensor x(DType::kFloat32, {free.contains(0) ? 1 : 4, 2, 2, 3});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.set_element(i, static_cast<double>(i));
  return evaluated(graph, {{"x", x}}).at("output");
}

struct Written {
  const char* code;
  double last;
};

TEST(TorchScriptCode, WhatLiesWithTheChannelsLastIsViewedAndCopiedSo) {
  const std::string last = "    y = torch.neg(x)\n    c = torch.contiguous(y, memory_format=2)\n";
  const Written programs[] = {
      // Torch copies what lies in rows, and what is to lie in rows again; its own format is no copy.
      {"    z = torch.mul_(c, 2)\n    return y\n", -11},
      {"    z = torch.mul_(torch.contiguous(c), 2)\n    return c\n", -11},
      {"    z = torch.mul_(torch.contiguous(c, memory_format=2), 2)\n    return c\n", -22},
      {"    z = torch.mul_(torch.to(y, 6, False, False, 2), 2)\n    return y\n", -11},
      {"    z = torch.mul_(torch.to(c, 6, False, False, 2), 2)\n    return c\n", -22},
      {"    z = torch.mul_(torch.reshape(c, [-1]), 2)\n    return c\n", -11},
      {"    z = torch.mul_(torch.flatten(c, 1), 2)\n    return c\n", -11},
      {"    z = torch.mul_(torch.flatten(c, 2), 2)\n    return c\n", -22},
      {"    z = torch.mul_(torch.view(torch.permute(c, [0, 2, 3, 1]), [-1]), 2)\n    return c\n", -22},
      // What is made of it element by element, or like it, lies as it does.
      {"    r = torch.abs(c)\n    z = torch.mul_(torch.reshape(r, [-1]), 2)\n    return r\n", 11},
      {"    r = torch.clone(c)\n    z = torch.mul_(torch.reshape(r, [-1]), 2)\n    return r\n", -11},
      {"    r = torch.zeros_like(c)\n    z = torch.add_(torch.reshape(r, [-1]), 1)\n    return r\n", 0},
      {"    r = torch.zeros_like(c, memory_format=0)\n    z = torch.add_(torch.reshape(r, [-1]), 1)\n"
       "    return r\n",
       1},
      // Places in memory are those of rows of channels.
      {"    return torch.as_strided(c, [2], [3])\n", -7},
  };
  for (const Written& each : programs) {
    SCOPED_TRACE(each.code);
    const Tensor got = result_of_maps(last + each.code, {{0, "N"}});
    EXPECT_EQ(got.element_as_double(got.num_elements() - 1), each.last);
  }
}

// As torch 2.15 has it on CPUs: of a copy the last number stays, of a view it is doubled.
TEST(TorchScriptCode, MapsOfWhatHasTheChannelsLastHaveThemLast) {
  const std::string last =
      "    y = torch.neg(x)\n    c = torch.contiguous(y, memory_format=2)\n    w = torch.ones([4, 2, 1, "
      "1])\n";
  const Written programs[] = {
      {"torch.conv2d(c, w)", -16},
      {"torch.conv2d(y, w)", -32},
      {"torch.conv2d(y, torch.contiguous(torch.ones([4, 2, 2, 2]), memory_format=2))", -48},
      {"torch.conv_transpose2d(c, torch.ones([2, 4, 1, 1]))", -16},
      {"torch.abs(torch.conv2d(torch.abs(c), w))", 16},
      {"torch.conv2d(torch.max_pool2d(c, [2, 2], [1, 1]), w)", -8},
      {"torch.max_pool2d(c, [2, 2], [1, 1])", -7},
      {"torch.avg_pool2d(c, [1, 1], [1, 1])", -11},
      {"torch.avg_pool2d(y, [1, 1], [1, 1])", -22},
      {"torch.adaptive_avg_pool2d(c, [2, 3])", -11},
      {"torch.batch_norm(c, None, None, torch.zeros([2]), torch.ones([2]), False, 0.1, 1e-05, True)", -11},
      {"torch.conv2d(torch.batch_norm(c, None, None, torch.zeros([2]), torch.ones([2]), False, 0.1, 1e-05, "
       "True), w)",
       -16},
      {"torch.cat([c, c], 1)", -11},
      {"torch.cat([c, y], 1)", -22},
      {"torch.mul(torch.ones([2, 1, 1]), c)", -11},
      // These make rows whatever they are given.
      {"torch.mul(torch.softmax(c, 1), 1000)", 4.94525},
  };
  for (const Written& each : programs) {
    SCOPED_TRACE(each.code);
    const std::string code =
        last + "    r = " + each.code + "\n    z = torch.mul_(torch.reshape(r, [-1]), 2)\n    return r\n";
    const Tensor got = result_of_maps(code, {{0, "N"}});
    EXPECT_NEAR(got.element_as_double(got.num_elements() - 1), each.last, 1e-3);
  }
  const Tensor viewed = result_of_maps(
      last +
          "    r = torch.conv2d(c, w)\n"
          "    z = torch.mul_(torch.view(torch.permute(r, [0, 2, 3, 1]), [-1]), 2)\n    return r\n",
      {{0, "N"}});
  EXPECT_EQ(viewed.element_as_double(viewed.num_elements() - 1), -32);
}

TEST(TorchScriptCode, WhatTorchDoesNotViewIsRefused) {
  const std::string last = "    c = torch.contiguous(x, memory_format=2)\n";
  expect_error(ErrorCode::kInvalidModel, "torch has no view of shape", [&] {
    result_of_maps(last + "    return torch.view(torch.conv2d(c, torch.ones([4, 2, 1, 1])), [-1])\n",
                   {{0, "N"}});
  });
  expect_error(ErrorCode::kInvalidModel, "torch has no view of shape", [&] {
    result_of_maps(last + "    return torch.view(c, [-1])\n", {{0, "N"}});
  });
  expect_error(ErrorCode::kInvalidModel, "memory_format is none of tensors of rank 4", [&] {
    result_of_maps("    return torch.contiguous(x, memory_format=3)\n", {{0, "N"}});
  });
}

// Of one channel rows are both.
TEST(TorchScriptCode, WhatFreeChannelsMakeAViewOrACopyIsNotReadAfterAWrite) {
  for (const char* part : {"torch.contiguous(y, memory_format=2)",
                           "torch.reshape(torch.contiguous(y, memory_format=2), [-1])"}) {
    const std::string code = "    y = torch.neg(x)\n    z = torch.mul_(" + std::string(part) + ", 2)\n";
    expect_error(ErrorCode::kOperatorNotImplemented, "may or may not share", [&] {
      result_of_maps(code + "    return torch.neg(y)\n", {{0, "N"}, {1, "C"}});
    });
    EXPECT_EQ(result_of_maps(code + "    return z\n", {{0, "N"}, {1, "C"}}).element_as_double(0), 0);
  }
}

struct Refused {
  ErrorCode code;
  const char* words;
  const char* forward;
};
constexpr Refused kRefused[] = {
    {ErrorCode::kNotSupported, "net.py:4: it writes to attribute \"count\"",
     ",\n    x: Tensor) -> Tensor:\n    self.count = x\n    return x\n"},
    {ErrorCode::kNotSupported, "net.py:4: statements with \"with\"",
     ",\n    x: Tensor) -> Tensor:\n    with x:\n      pass\n    return x\n"},
    {ErrorCode::kNotSupported, "argument \"n\" of forward() is of type int",
     ",\n    x: Tensor,\n    n: int) -> Tensor:\n    return x\n"},
    {ErrorCode::kNotSupported, "forward() returns Dict[str, Tensor]",
     ",\n    x: Tensor) -> Dict[str, Tensor]:\n    return {\"a\": x}\n"},
    {ErrorCode::kNotSupported, "\"__torch__.other.helper\" is not implemented",
     ",\n    x: Tensor) -> Tensor:\n    return __torch__.other.helper(x, )\n"},
    {ErrorCode::kOperatorNotImplemented, "aten.special_airy_ai",
     ",\n    x: Tensor) -> Tensor:\n    y = torch.fft_fft(x)\n    return torch.special_airy_ai(y)\n"},
    {ErrorCode::kOperatorNotImplemented,
     "aten.relu.default: operands: complex numbers are not implemented here",
     ",\n    x: Tensor) -> Tensor:\n    y = torch.fft_fft(x)\n    return torch.relu(y)\n"},
    {ErrorCode::kNotSupported, "output \"output\" is complex, which is not implemented",
     ",\n    x: Tensor) -> Tensor:\n    return torch.fft_fft(x)\n"},
    {ErrorCode::kOperatorNotImplemented, "a number that a run works out",
     ",\n    x: Tensor) -> Tensor:\n    if bool(torch.gt(torch.sum(x), 0)):\n      y = x\n    else:\n"
     "      y = torch.neg(x)\n    return y\n"},
    {ErrorCode::kInvalidModel, "net.py:4: aten.view.default \"y\"",
     ",\n    x: Tensor) -> Tensor:\n    y = torch.view(x, [4])\n    return y\n"},
    {ErrorCode::kInvalidModel, "raises an exception for these shapes: rank 2",
     ",\n    x: Tensor) -> Tensor:\n    ops.prim.RaiseException(torch.format(\"rank\", torch.dim(x)))\n    "
     "return x\n"},
    {ErrorCode::kInvalidModel, "nothing is called \"z\"", ",\n    x: Tensor) -> Tensor:\n    return z\n"},
    {ErrorCode::kInvalidModel, "net.py:5: a bracket has no end",
     ",\n    x: Tensor) -> Tensor:\n    return (x\n"},
    {ErrorCode::kInvalidModel, "net.py:4: a character", ",\n    x: Tensor) -> Tensor:\n    return x ? 1\n"},
    {ErrorCode::kTooLarge, "1000000 statements",
     ",\n    x: Tensor) -> Tensor:\n    while True:\n      pass\n    return x\n"},
    {ErrorCode::kTooLarge, "calls are nested",
     ",\n    x: Tensor) -> Tensor:\n    return (self).forward(x, )\n"},
    {ErrorCode::kInvalidModel, "a list holds itself",
     ",\n    x: Tensor) -> Tensor:\n    a = [x]\n    b = torch.append(a, a)\n    return x\n"},
    {ErrorCode::kInvalidModel, "elements of lists",
     ",\n    x: Tensor) -> Tensor:\n    a = [1]\n    for i in range(64):\n      a = torch.add(a, a)\n    "
     "return x\n"},
};

TEST(TorchScriptCode, WhatIsNotFollowedIsRefusedWhereItStands) {
  for (const Refused& each : kRefused) {
    SCOPED_TRACE(each.forward);
    expect_error(each.code, each.words, [&] { graph_of(each.forward); });
  }
}

TEST(TorchScriptCode, ResidualsOfLeastSquaresAreThoseOfFullRanks) {
  const auto residual = [](const std::string& a, const std::string& driver) {
    const std::string of = a + ", torch.ones([3]), None, driver=\"" + driver + "\"";
    return result_of("    y, r, n, s, = torch.linalg_lstsq(" + of + ")\n    return r\n").element_as_double(0);
  };
  EXPECT_NEAR(residual("torch.ones([3, 2])", "gels"), 0, 1e-9);
  EXPECT_NEAR(residual("torch.transpose(x, 0, 1)", "gelsd"), 0, 1e-9);
  expect_error(ErrorCode::kTensorData, "ranks 1", [&] { residual("torch.ones([3, 2])", "gelsd"); });
  expect_error(ErrorCode::kInvalidModel, "driver is \"fast\"",
               [&] { residual("torch.ones([3, 2])", "fast"); });
}

TEST(TorchScriptCode, DeepCodeIsRefused) {
  const std::string open(5'000, '('), close(5'000, ')');
  expect_error(ErrorCode::kInvalidModel, "nested too deeply",
               [&] { result_of("    return " + open + "x" + close + "\n"); });
  std::string dots;
  for (int i = 0; i < 5'000; ++i) dots += ".a";
  expect_error(ErrorCode::kInvalidModel, "nested too deeply",
               [&] { result_of("    return x" + dots + "\n"); });
}

TEST(TorchScriptCode, AllThatIsNotImplementedIsToldAtOnceBeforeShapesAre) {
  const auto model =
      importer_of_bytes(file_of(",\n    x: Tensor) -> Tensor:\n    y = torch.rand_like(x)\n    return "
                                "torch.special_airy_ai(torch.rand_like(y))\n"));
  ASSERT_EQ(model->unsupported().size(), 2u);
  EXPECT_EQ(model->unsupported()[0].pointer, "code/__torch__/net.py:4");
  EXPECT_EQ(model->unsupported()[0].detail,
            "op aten.rand_like: random numbers are not implemented, as a package "
            "gives the same results for the same inputs: give them to the module "
            "as an input, or export it in eval mode, 2 calls");
  EXPECT_EQ(model->unsupported()[1].detail, "op aten.special_airy_ai, 1 call");
  expect_error(ErrorCode::kOperatorNotImplemented, "aten.rand_like",
               [&] { model->import({}, ops::standard_ops()); });
}

TEST(TorchScriptShapes, AreAskedForByTheNamesOfInputs) {
  const auto traced = importer_of("pytorch_script/gru_traced.pt");
  expect_error(ErrorCode::kShapeRequired, "it was traced with [6,3,3]",
               [&] { traced->import({}, ops::standard_ops()); });
  const auto scripted = importer_of("pytorch_script/search_scripted.pt");
  expect_error(ErrorCode::kShapeRequired, "input_shapes of \"ids\"",
               [&] { scripted->import({}, ops::standard_ops()); });
}

}  // namespace
}  // namespace tensormill::frontend
