// Programs of a few nodes that are written here: forms of operators that need free dims or numbers of a run.
#include <functional>

#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/patch.h"
#include "compiler/ir/run_dims.h"
#include "tests/expect_error.h"
#include "tests/importer/imported.h"
#include "tests/importer/pytorch_program.h"

namespace tensormill::frontend {
namespace {

/// x [N,4] by as_strided of sizes that may have N as "n".
std::unique_ptr<Importer> strided(const Json& x_strides, const Json& size, const Json& stride, int64_t offset,
                                  const Json& y_sizes) {
  const Json y_strides = Json::array({extent(1), extent(1), extent(1)});
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.sym_size.int", {{"self", tensor_of("x")}, {"dim", {{"as_int", 0}}}},
               {{"as_sym_int", sym_int_of("n")}}),
       fx_node("torch.ops.aten.as_strided.default",
               {{"self", tensor_of("x")},
                {"size", {{"as_sym_ints", size}}},
                {"stride", {{"as_sym_ints", stride}}},
                {"storage_offset", {{"as_int", offset}}}},
               tensor_of("y"))});
  const Json shown = Json(
      std::vector<Json>(y_strides.begin(), y_strides.begin() + static_cast<std::ptrdiff_t>(y_sizes.size())));
  return program_of(meta_of(kFloat32, Json::array({symbol("s0"), extent(4)}), x_strides),
                    meta_of(kFloat32, y_sizes, shown), nodes, {{"n", symbol("s0")}});
}

const Json kRows = Json::array({extent(4), extent(1)});

Tensor counted(int64_t rows) {
  std::vector<float> values;
  for (int64_t i = 0; i < 4 * rows; ++i) values.push_back(static_cast<float>(i));
  return Tensor::from<float>({rows, 4}, values);
}

ImportOptions at_rows(int64_t rows) {
  ImportOptions options;
  options.input_shapes["x"] = {rows, int64_t{4}};
  return options;
}

TEST(PytorchStrides, OfFreeDimsAreWindowsOfRows) {
  const auto model = strided(kRows, Json::array({sym_int_of("n"), {{"as_int", 3}}, {{"as_int", 2}}}),
                             Json::array({{{"as_int", 4}}, {{"as_int", 1}}, {{"as_int", 1}}}), 0,
                             Json::array({symbol("s0"), extent(3), extent(2)}));
  const ir::Graph open = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(open);
  EXPECT_EQ(ir::to_string(open.value(open.outputs()[0]).type), "f32[s0,3,2]");
  for (const int64_t rows : {1, 3}) {
    SCOPED_TRACE(rows);
    const Tensor got =
        evaluated(model->import(at_rows(rows), ops::standard_ops()), {{"x", counted(rows)}}).at("y");
    ASSERT_EQ(got.shape(), (Shape{rows, 3, 2}));
    for (int64_t i = 0; i < got.num_elements(); ++i)
      EXPECT_EQ(got.element_as_double(i), static_cast<double>(i / 6 * 4 + i % 6 / 2 + i % 2)) << i;
  }
}

TEST(PytorchStrides, OfFreeDimsTurnAMatrix) {
  const auto model =
      strided(kRows, Json::array({{{"as_int", 4}}, sym_int_of("n")}),
              Json::array({{{"as_int", 1}}, {{"as_int", 4}}}), 0, Json::array({extent(4), symbol("s0")}));
  const Tensor got = evaluated(model->import(at_rows(3), ops::standard_ops()), {{"x", counted(3)}}).at("y");
  ASSERT_EQ(got.shape(), (Shape{4, 3}));
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(got.element_as_double(i), static_cast<double>(i % 3 * 4 + i / 3)) << i;
}

TEST(PytorchStrides, BehindTheElementsAreRefused) {
  const auto at = [](int64_t offset) {
    return strided(kRows, Json::array({sym_int_of("n"), {{"as_int", 4}}}),
                   Json::array({{{"as_int", 4}}, {{"as_int", 1}}}), offset,
                   Json::array({symbol("s0"), extent(4)}));
  };
  EXPECT_NO_THROW(at(0)->import(at_rows(3), ops::standard_ops()));
  expect_error(ErrorCode::kOperatorNotImplemented, "behind the elements",
               [&] { at(1)->import(at_rows(3), ops::standard_ops()); });
  // Whatever the dim is.
  const auto open = at(1);
  expect_error(ErrorCode::kOperatorNotImplemented, "behind the elements",
               [&] { open->import(with_symbols(open->facts(), {}), ops::standard_ops()); });
}

// Columns are one behind the other.
TEST(PytorchStrides, OfATurnedMatrixAreThoseOfItsColumns) {
  const auto model =
      strided(Json::array({extent(1), symbol("s0")}), Json::array({sym_int_of("n"), {{"as_int", 4}}}),
              Json::array({{{"as_int", 4}}, {{"as_int", 1}}}), 0, Json::array({symbol("s0"), extent(4)}));
  const Tensor got = evaluated(model->import(at_rows(3), ops::standard_ops()), {{"x", counted(3)}}).at("y");
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(got.element_as_double(i), static_cast<double>(i % 3 * 4 + i / 3)) << i;
}

TEST(PytorchStrides, OfElementsThatDoNotLieInRowsAreRefused) {
  const auto model =
      strided(Json::array({extent(8), extent(1)}), Json::array({sym_int_of("n"), {{"as_int", 4}}}),
              Json::array({{{"as_int", 4}}, {{"as_int", 1}}}), 0, Json::array({symbol("s0"), extent(4)}));
  expect_error(ErrorCode::kOperatorNotImplemented, "do not lie in rows",
               [&] { model->import(at_rows(3), ops::standard_ops()); });
}

/// What becomes of x, of that type, when another form of it in one axis is doubled in place.
Tensor doubled_in_a_row(const Json& whole, const Json& row_size, const Tensor& x) {
  const Json flat = meta_of(kFloat32, Json::array({row_size}), Json::array({extent(1)}));
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("x")}}, tensor_of("own")),
       fx_node("torch.ops.aten.reshape.default",
               {{"self", tensor_of("own")}, {"shape", {{"as_ints", Json::array({-1})}}}}, tensor_of("row")),
       fx_node("torch.ops.aten.mul_.Scalar", {{"self", tensor_of("row")}, {"other", {{"as_float", 2.0}}}},
               tensor_of("twice")),
       fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("own")}}, tensor_of("y"))});
  const auto model =
      program_of(whole, whole, nodes, Json::object(), {{"own", whole}, {"row", flat}, {"twice", flat}});
  ImportOptions options;
  options.input_shapes["x"] = DimShape(x.shape().begin(), x.shape().end());
  return evaluated(model->import(options, ops::standard_ops()), {{"x", x}}).at("y");
}

// What a file without examples of its symbols says of strides follows from them.
TEST(PytorchStrides, ThatAreFormulasTellAViewFromACopy) {
  const Tensor x = Tensor::from<float>({1, 3, 4}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Json sizes = Json::array({symbol("s0"), symbol("s1"), extent(4)});
  const char* all = "Mul(Integer(4), Symbol('s0', integer=True), Symbol('s1', integer=True))";
  const Json rows =
      Json::array({symbol("Mul(Integer(4), Symbol('s1', integer=True))"), extent(4), extent(1)});
  const Tensor written = doubled_in_a_row(meta_of(kFloat32, sizes, rows), symbol(all), x);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(written.element_as_double(i), static_cast<double>(2 * i)) << i;
  // The first two axes lie the other way round.
  const Json turned =
      Json::array({extent(4), symbol("Mul(Integer(4), Symbol('s0', integer=True))"), extent(1)});
  const Tensor kept = doubled_in_a_row(meta_of(kFloat32, sizes, turned), symbol(all), x);
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(kept.element_as_double(i), static_cast<double>(i)) << i;
  // One of which nobody knows is not read after the other was written.
  const Json unknown = Json::array({symbol("s2"), symbol("s3"), extent(1)});
  expect_error(ErrorCode::kOperatorNotImplemented, "",
               [&] { doubled_in_a_row(meta_of(kFloat32, sizes, unknown), symbol(all), x); });
}

// Nor is it an output then, which no operator reads.
TEST(PytorchStrides, ThatAreUnknownMakeNoOutputOfWhatMayBeWritten) {
  const Json whole = meta_of(kFloat32, Json::array({symbol("s0"), symbol("s1"), extent(4)}),
                             Json::array({symbol("s2"), symbol("s3"), extent(1)}));
  const char* all = "Mul(Integer(4), Symbol('s0', integer=True), Symbol('s1', integer=True))";
  const Json flat = meta_of(kFloat32, Json::array({symbol(all)}), Json::array({extent(1)}));
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("x")}}, tensor_of("y")),
       fx_node("torch.ops.aten.reshape.default",
               {{"self", tensor_of("y")}, {"shape", {{"as_ints", Json::array({-1})}}}}, tensor_of("row")),
       fx_node("torch.ops.aten.mul_.Scalar", {{"self", tensor_of("row")}, {"other", {{"as_float", 2.0}}}},
               tensor_of("twice"))});
  const auto model = program_of(whole, whole, nodes, Json::object(), {{"row", flat}, {"twice", flat}});
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{3}, int64_t{4}};
  expect_error(ErrorCode::kNotSupported, "may or may not share",
               [&] { model->import(options, ops::standard_ops()); });
}

// Where it lies every other element, in rows it is a copy.
TEST(PytorchStrides, OfWhatIsNotDenseMakeACopyInRows) {
  const Json whole = meta_of(kFloat32, Json::array({symbol("s0"), extent(4)}), kRows);
  const Json apart =
      meta_of(kFloat32, Json::array({symbol("s0"), extent(2)}), Json::array({extent(4), extent(2)}));
  const Json half =
      meta_of(kFloat32, Json::array({symbol("s0"), extent(2)}), Json::array({extent(2), extent(1)}));
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("x")}}, tensor_of("own")),
       fx_node("torch.ops.aten.slice.Tensor",
               {{"self", tensor_of("own")},
                {"dim", {{"as_int", 1}}},
                {"start", {{"as_int", 0}}},
                {"end", {{"as_int", 4}}},
                {"step", {{"as_int", 2}}}},
               tensor_of("apart")),
       fx_node("torch.ops.aten.contiguous.default", {{"self", tensor_of("apart")}}, tensor_of("half")),
       fx_node("torch.ops.aten.mul_.Scalar", {{"self", tensor_of("half")}, {"other", {{"as_float", 2.0}}}},
               tensor_of("twice")),
       fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("own")}}, tensor_of("y"))});
  const auto model = program_of(whole, whole, nodes, Json::object(),
                                {{"own", whole}, {"apart", apart}, {"half", half}, {"twice", half}});
  const Tensor got = evaluated(model->import(at_rows(3), ops::standard_ops()), {{"x", counted(3)}}).at("y");
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(got.element_as_double(i), static_cast<double>(i)) << i;
}

/// What becomes of x [N,2,2,3] when its form with the channels last, by that operator, is doubled in place.
Tensor doubled_with_channels_last(const char* target, const Json& own_strides, const Tensor& x) {
  const Json sizes = Json::array({symbol("s0"), extent(2), extent(2), extent(3)});
  const Json rows = meta_of(kFloat32, sizes, Json::array({extent(12), extent(6), extent(3), extent(1)}));
  const Json last = meta_of(kFloat32, sizes, Json::array({extent(12), extent(1), extent(6), extent(2)}));
  const Json own = meta_of(kFloat32, sizes, own_strides);
  std::vector<std::pair<const char*, Json>> inputs = {{"self", tensor_of("own")}};
  if (std::string(target).find("to.") != std::string::npos)
    inputs.push_back({"dtype", {{"as_scalar_type", kFloat32}}});
  inputs.push_back({"memory_format", {{"as_memory_format", 2}}});
  const Json nodes =
      Json::array({fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("x")}}, tensor_of("own")),
                   fx_node(target, inputs, tensor_of("last")),
                   fx_node("torch.ops.aten.mul_.Scalar",
                           {{"self", tensor_of("last")}, {"other", {{"as_float", 2.0}}}}, tensor_of("twice")),
                   fx_node("torch.ops.aten.clone.default", {{"self", tensor_of("own")}}, tensor_of("y"))});
  const auto model =
      program_of(rows, rows, nodes, Json::object(), {{"own", own}, {"last", last}, {"twice", last}});
  ImportOptions options;
  options.input_shapes["x"] = DimShape(x.shape().begin(), x.shape().end());
  return evaluated(model->import(options, ops::standard_ops()), {{"x", x}}).at("y");
}

TEST(PytorchStrides, OfAMemoryFormatTellACopyFromTheTensorItself) {
  const Tensor x =
      Tensor::from<float>({1, 2, 2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Json rows = Json::array({extent(12), extent(6), extent(3), extent(1)});
  const Json last = Json::array({extent(12), extent(1), extent(6), extent(2)});
  for (const char* target : {"torch.ops.aten.contiguous.default", "torch.ops.aten.to.dtype"}) {
    SCOPED_TRACE(target);
    EXPECT_EQ(doubled_with_channels_last(target, rows, x).element_as_double(11), 11);
    EXPECT_EQ(doubled_with_channels_last(target, last, x).element_as_double(11), 22);
  }
  for (const char* target : {"torch.ops.aten.clone.default", "torch.ops.aten._to_copy.default"})
    EXPECT_EQ(doubled_with_channels_last(target, last, x).element_as_double(11), 11) << target;
}

TEST(PytorchStrides, OfATensorWithoutDimsAreThoseOfAView) {
  const Tensor x = Tensor::from<float>({}, std::vector<float>{3});
  const Tensor got = doubled_in_a_row(meta_of(kFloat32, Json::array(), Json::array()), extent(1), x);
  EXPECT_EQ(got.element_as_double(0), 6);
}

/// y = arange(start, x.item(), step).
ir::Graph range_to(const Json& start, const Json& step, int dtype = kFloat32) {
  const Json nodes = Json::array({fx_node("torch.ops.aten.item.default", {{"self", tensor_of("x")}},
                                          {{"as_sym_float", sym_int_of("end")}}),
                                  fx_node("torch.ops.aten.arange.start_step",
                                          {{"start", start},
                                           {"end", {{"as_sym_float", sym_int_of("end")}}},
                                           {"step", step},
                                           {"dtype", {{"as_scalar_type", dtype}}}},
                                          tensor_of("y"))});
  const auto model = program_of(meta_of(kFloat32, Json::array(), Json::array()),
                                meta_of(dtype, Json::array({symbol("u0")}), Json::array({extent(1)})), nodes,
                                Json::object());
  return model->import({}, ops::standard_ops());
}

/// How many elements it has where x is that.
int64_t count_at(const ir::Graph& graph, float x) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::kBindExtents) continue;
    ir::Graph counting = graph;
    counting.set_outputs({node.inputs[0]});
    counting = ir::remove_dead(counting);
    const Tensor end = Tensor::from<float>({}, std::vector<float>{x});
    return evaluated(counting, {{"x", end}}).begin()->second.element_as_int(0);
  }
  ADD_FAILURE() << "nothing is counted";
  return -1;
}

TEST(PytorchRange, ToARealNumberOfARunIsAsLongAsItSays) {
  const ir::Graph graph = range_to({{"as_int", 1}}, {{"as_float", 0.5}});
  ir::verify(graph);
  EXPECT_EQ(ir::to_string(graph.value(graph.outputs()[0]).type), "f32[run0]");
  EXPECT_EQ(count_at(graph, 1), 0);
  EXPECT_EQ(count_at(graph, 1.25F), 1);
  EXPECT_EQ(count_at(graph, 1.5F), 1);
  EXPECT_EQ(count_at(graph, 3.75F), 6);
  // As torch refuses it.
  EXPECT_THROW(count_at(graph, 0.5F), Error);
  EXPECT_THROW(count_at(graph, std::numeric_limits<float>::infinity()), Error);
  EXPECT_THROW(count_at(graph, std::numeric_limits<float>::quiet_NaN()), Error);
}

TEST(PytorchRange, GoesBackByAStepBelowZero) {
  const ir::Graph graph = range_to({{"as_float", 2.5}}, {{"as_float", -1.0}});
  EXPECT_EQ(count_at(graph, 2.5F), 0);
  EXPECT_EQ(count_at(graph, 0.5F), 2);
  EXPECT_EQ(count_at(graph, 0.25F), 3);
  EXPECT_THROW(count_at(graph, 3), Error);
}

// They are counted as real numbers, and are sums of whole parts.
TEST(PytorchRange, OfWholeNumbersIsCountedInRealOnes) {
  for (const int dtype : {kInt64, kInt32, kInt8}) {
    SCOPED_TRACE(dtype);
    const ir::Graph graph = range_to({{"as_float", 0.75}}, {{"as_float", 2.5}}, dtype);
    ir::verify(graph);
    EXPECT_EQ(ir::to_string(graph.value(graph.outputs()[0]).type), std::string(dtype == kInt64   ? "i64"
                                                                               : dtype == kInt32 ? "i32"
                                                                                                 : "i8") +
                                                                       "[run0]");
    EXPECT_EQ(count_at(graph, 4.5F), 2);
    EXPECT_EQ(count_at(graph, 5.5F), 2);
    EXPECT_EQ(count_at(graph, 6), 3);
    EXPECT_THROW(count_at(graph, 0.5F), Error);
  }
}

/// y = arange(start, end, step) of the first extent of x [N], which "n" is; as large as the file says in
/// `said`.
std::unique_ptr<Importer> range_of(const Json& start, const Json& end, const Json& step, int dtype,
                                   const Json& said) {
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.sym_size.int", {{"self", tensor_of("x")}, {"dim", {{"as_int", 0}}}},
               {{"as_sym_int", sym_int_of("n")}}),
       fx_node("torch.ops.aten.arange.start_step",
               {{"start", start}, {"end", end}, {"step", step}, {"dtype", {{"as_scalar_type", dtype}}}},
               tensor_of("y"))});
  return program_of(meta_of(kFloat32, Json::array({symbol("s0")}), Json::array({extent(1)})),
                    meta_of(dtype, Json::array({said}), Json::array({extent(1)})), nodes,
                    {{"n", symbol("s0")}});
}

std::vector<int64_t> whole_elements(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_int(i));
  return values;
}

TEST(PytorchRange, OfRealNumbersThatAreKnownHasTheirWholeParts) {
  struct Known {
    double start, end, step;
    int dtype;
    std::vector<int64_t> values;
  };
  // What torch makes of them.
  const Known cases[] = {{0.75, 6, 2.5, kInt32, {0, 2, 4}},
                         {-1.5, 2.2, 1.9, kInt64, {-1, 0}},
                         {5.5, -1.2, -1.5, kInt8, {5, 4, 3, 2, 1}},
                         {0, 3, 0.5, kInt32, {0, 0, 0, 0, 0, 0}},
                         {2.9, 3.1, 1, kInt32, {2}},
                         {250.5, 260.5, 3.5, kInt8, {-6, -3, 0}}};
  for (const Known& each : cases) {
    SCOPED_TRACE(each.start);
    const auto model =
        range_of({{"as_float", each.start}}, {{"as_float", each.end}}, {{"as_float", each.step}}, each.dtype,
                 extent(static_cast<int64_t>(each.values.size())));
    ImportOptions options;
    options.input_shapes["x"] = {int64_t{3}};
    const Tensor x = Tensor::from<float>({3}, std::vector<float>{0, 0, 0});
    const Tensor got = evaluated(model->import(options, ops::standard_ops()), {{"x", x}}).at("y");
    EXPECT_EQ(whole_elements(got), each.values);
  }
}

TEST(PytorchRange, ToAFreeDimIsAsLongAsItSays) {
  const auto model = range_of({{"as_float", 0.75}}, {{"as_sym_int", sym_int_of("n")}}, {{"as_float", 2.5}},
                              kInt32, symbol("u0"));
  const ir::Graph open = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(open);
  const ir::ValueType& type = open.value(open.outputs()[0]).type;
  EXPECT_EQ(type.dtype, DType::kInt32);
  EXPECT_FALSE(type.shape[0].is_constant());
  for (const auto& [rows, values] :
       std::map<int64_t, std::vector<int64_t>>{{3, {0}}, {4, {0, 2}}, {6, {0, 2, 4}}}) {
    SCOPED_TRACE(rows);
    const ir::Graph bound = ir::bind_symbols(open, {{"s0", rows}});
    const Tensor x(DType::kFloat32, {rows});
    EXPECT_EQ(whole_elements(evaluated(bound, {{"x", x}}).at("y")), values);
  }
}

/// y, by the last node, from a fraction of the free extent N of x [N], "part".
std::unique_ptr<Importer> of_part(double fraction, const std::vector<Json>& nodes, int dtype) {
  Json all = Json::array(
      {fx_node("torch.ops.aten.sym_size.int", {{"self", tensor_of("x")}, {"dim", {{"as_int", 0}}}},
               {{"as_sym_int", sym_int_of("n")}}),
       fx_node("torch.sym_float", {{"a", {{"as_sym_int", sym_int_of("n")}}}},
               {{"as_sym_float", sym_int_of("real")}}),
       fx_node("_operator.mul",
               {{"a", {{"as_sym_float", sym_int_of("real")}}}, {"b", {{"as_float", fraction}}}},
               {{"as_sym_float", sym_int_of("part")}})});
  for (const Json& node : nodes) all.push_back(node);
  return program_of(meta_of(kFloat32, Json::array({symbol("s0")}), Json::array({extent(1)})),
                    meta_of(dtype, Json::array({symbol("u0")}), Json::array({extent(1)})), all,
                    {{"n", symbol("s0")}});
}

/// y = arange(N * fraction)
std::unique_ptr<Importer> range_to_part(double fraction) {
  return of_part(
      fraction,
      {fx_node("torch.ops.aten.arange.default",
               {{"end", {{"as_sym_float", sym_int_of("part")}}}, {"dtype", {{"as_scalar_type", kInt32}}}},
               tensor_of("y"))},
      kInt32);
}

// Digits of 0.3 are rounded: how many elements there are is a number of each run.
TEST(PytorchRange, ToARealNumberOfAFreeDimIsAsLongAsARunSays) {
  const auto model = range_to_part(0.3);
  const ir::Graph open = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(open);
  EXPECT_EQ(ir::to_string(open.value(open.outputs()[0]).type), "i32[run0]");
  for (const auto& [rows, count] : std::map<int64_t, int64_t>{{1, 1}, {4, 2}, {7, 3}}) {
    ImportOptions options;
    options.input_shapes["x"] = {rows};
    const ir::Graph fixed = model->import(options, ops::standard_ops());
    const Tensor got = evaluated(fixed, {{"x", Tensor(DType::kFloat32, {rows})}}).at("y");
    EXPECT_EQ(got.num_elements(), count);
  }
}

TEST(PytorchNumbers, WholePartsOfFractionsOfFreeDimsAreExtents) {
  const auto filled = [](const char* target) {
    return of_part(
        0.75,
        {fx_node(target, {{"a", {{"as_sym_float", sym_int_of("part")}}}}, {{"as_sym_int", sym_int_of("m")}}),
         fx_node("torch.ops.aten.full.default",
                 {{"size", {{"as_sym_ints", Json::array({sym_int_of("m")})}}},
                  {"fill_value", {{"as_float", 1.0}}},
                  {"dtype", {{"as_scalar_type", kFloat32}}}},
                 tensor_of("y"))},
        kFloat32);
  };
  const auto range = range_to_part(0.75), down = filled("math.trunc"), up = filled("math.ceil");
  for (const int64_t rows : {3, 4, 6}) {
    const auto count = [&](const Importer& model) {
      const ir::Graph open = model.import(with_symbols(model.facts(), {}), ops::standard_ops());
      const ir::Graph bound = ir::bind_symbols(open, {{"s0", rows}});
      return evaluated(bound, {{"x", Tensor(DType::kFloat32, {rows})}}).at("y").num_elements();
    };
    EXPECT_EQ(count(*down), rows * 3 / 4);
    EXPECT_EQ(count(*up), (rows * 3 + 3) / 4);
    EXPECT_EQ(count(*range), (rows * 3 + 3) / 4);
  }
}

// What float64 numbers round is counted in them, by the run.
TEST(PytorchRange, ByAStepOfManyDigitsIsCountedByTheRun) {
  const auto model = range_of({{"as_float", 0.0}}, {{"as_sym_int", sym_int_of("n")}}, {{"as_float", 0.1}},
                              kInt32, symbol("u0"));
  const ir::Graph open = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(open);
  EXPECT_EQ(ir::to_string(open.value(open.outputs()[0]).type), "i32[run0]");
}

}  // namespace
}  // namespace tensormill::frontend
