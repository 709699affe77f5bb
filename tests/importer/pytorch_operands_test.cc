// Operands of PyTorch's operators that are none, or have too few axes: programs of a node that are written
// here.
#include <cstdint>

#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/pytorch_program.h"

namespace tensormill::frontend {
namespace {

Json meta_of_shape(const std::vector<int64_t>& shape, int dtype = kFloat32) {
  Json sizes = Json::array(), strides = Json::array();
  int64_t elements = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    sizes.insert(sizes.begin(), extent(shape[i]));
    strides.insert(strides.begin(), extent(elements));
    elements *= shape[i];
  }
  return meta_of(dtype, sizes, strides);
}

void refuse_node(const Json& node, const std::string& text, const std::vector<int64_t>& shape = {4},
                 ErrorCode code = ErrorCode::kInvalidModel) {
  SCOPED_TRACE(text);
  const Json meta = meta_of_shape(shape);
  const auto model = program_of(meta, meta, Json::array({node}), Json::object());
  expect_error(code, text, [&] { model->import({}, ops::standard_ops()); });
}

const Json kNone = {{"as_none", true}};
Json ints_of(const std::vector<int64_t>& values) { return {{"as_ints", values}}; }
Json int_of(int64_t value) { return {{"as_int", value}}; }

TEST(PytorchOperands, OfAListMayNotBeMissing) {
  const Json parts = Json::array({tensor_of("x"), kNone});
  refuse_node(fx_node("torch.ops.aten.einsum.default",
                      {{"equation", {{"as_string", "a,a->a"}}}, {"tensors", {{"as_tensors", parts}}}},
                      tensor_of("y")),
              "argument tensors is no list of tensors alone");
}

TEST(PytorchOperands, OfNormsHaveChannels) {
  const Json norm = fx_node("torch.ops.aten.instance_norm.default",
                            {{"input", tensor_of("x")},
                             {"weight", kNone},
                             {"bias", kNone},
                             {"running_mean", kNone},
                             {"running_var", kNone},
                             {"use_input_stats", {{"as_bool", true}}},
                             {"momentum", {{"as_float", 0.1}}},
                             {"eps", {{"as_float", 1e-5}}},
                             {"cudnn_enabled", {{"as_bool", false}}}},
                            tensor_of("y"));
  refuse_node(norm, "the input has rank 1");
}

TEST(PytorchOperands, OfBagsAreRows) {
  const Json bags = fx_node("torch.ops.aten.embedding_bag.default",
                            {{"weight", tensor_of("x")},
                             {"indices", tensor_of("x")},
                             {"offsets", tensor_of("x")},
                             {"mode", {{"as_int", 0}}}},
                            tensor_of("y"));
  refuse_node(bags, "weights of shape [4]");
}

TEST(PytorchOperands, OfTooFewAreNamed) {
  refuse_node(fx_node("torch.ops.aten.add.Tensor", {{"self", tensor_of("x")}}, tensor_of("y")),
              "aten.add.Tensor");
  refuse_node(fx_node("torch.ops.aten.permute.default",
                      {{"self", tensor_of("x")}, {"dims", {{"as_ints", Json::array()}}}}, tensor_of("y")),
              "aten.permute.default");
}

// A number in place of a row.
TEST(PytorchOperands, OfTooFewAxesAreNamed) {
  const Json eight = meta_of(kFloat32, Json::array({extent(8)}), Json::array({extent(1)}));
  const Json cube = meta_of(kFloat32, Json::array({extent(2), extent(2), extent(2)}),
                            Json::array({extent(4), extent(2), extent(1)}));
  const Json one = meta_of(kFloat32, Json::array(), Json::array());
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.view.default",
               {{"self", tensor_of("x")}, {"size", {{"as_ints", Json::array({2, 2, 2})}}}}, tensor_of("w")),
       fx_node("torch.ops.aten.select.int",
               {{"self", tensor_of("x")}, {"dim", {{"as_int", 0}}}, {"index", {{"as_int", 0}}}},
               tensor_of("s")),
       fx_node("torch.ops.aten.bilinear.default",
               {{"input1", tensor_of("s")}, {"input2", tensor_of("s")}, {"weight", tensor_of("w")}},
               tensor_of("y"))});
  const auto model = program_of(eight, one, nodes, Json::object(), {{"w", cube}, {"s", one}});
  expect_error(ErrorCode::kInvalidModel, "node 2, aten.bilinear.default",
               [&] { model->import({}, ops::standard_ops()); });
}

TEST(PytorchOperands, WithoutDimsHaveNoAxes) {
  const Json x = tensor_of("x"), y = tensor_of("y");
  const auto roll = fx_node("torch.ops.aten.roll.default",
                            {{"self", x}, {"shifts", ints_of({1})}, {"dims", ints_of({0})}}, y);
  refuse_node(roll, "axis 0 is outside of [0,0)", {});
  refuse_node(fx_node("torch.ops.aten.outer.default", {{"self", x}, {"vec2", x}}, y),
              "an operand of shape [], expected rank 1", {});
  refuse_node(fx_node("torch.ops.aten.cdist.default", {{"x1", x}, {"x2", x}}, y), "aten.cdist.default", {});
  const auto attention =
      fx_node("torch.ops.aten.scaled_dot_product_attention.default",
              {{"query", x}, {"key", x}, {"value", x}, {"enable_gqa", {{"as_bool", true}}}}, y);
  refuse_node(attention, "aten.scaled_dot_product_attention.default", {4, 4});
}

// A product of two extents of windows would be 0 in 64 bits, by which nothing divides.
TEST(PytorchOperands, OfWindowsAreNoLargerThanWindows) {
  const int64_t huge = int64_t{1} << 32;
  const auto windows = [&](const char* target, const std::vector<std::pair<const char*, Json>>& more) {
    std::vector<std::pair<const char*, Json>> inputs = {{"self", tensor_of("x")},
                                                        {"kernel_size", ints_of({huge, huge})},
                                                        {"dilation", ints_of({1, 1})},
                                                        {"padding", ints_of({huge, huge})},
                                                        {"stride", ints_of({1, 1})}};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return fx_node(target, inputs, tensor_of("y"));
  };
  const std::string text = "argument kernel_size is 4294967296";
  refuse_node(windows("torch.ops.aten.col2im.default", {{"output_size", ints_of({4, 4})}}), text, {1, 4, 4});
  refuse_node(windows("torch.ops.aten.im2col.default", {}), text, {1, 1, 4, 4});
}

TEST(PytorchOperands, AreNumbersWhoseSumsHave64Bits) {
  const Json x = tensor_of("x"), y = tensor_of("y");
  const int64_t least = INT64_MIN;
  refuse_node(fx_node("torch.ops.aten.diag_embed.default", {{"self", x}, {"offset", int_of(least)}}, y),
              "argument offset is -9223372036854775808");
  refuse_node(fx_node("torch.ops.aten.roll.default",
                      {{"self", x}, {"shifts", ints_of({least})}, {"dims", ints_of({0})}}, y),
              "a shift of -9223372036854775808");
  refuse_node(fx_node("torch.ops.aten.tensor_split.sections",
                      {{"self", x}, {"sections", int_of(int64_t{1} << 60)}}, y),
              "1152921504606846976 parts are not implemented", {4}, ErrorCode::kOperatorNotImplemented);
  refuse_node(fx_node("torch.ops.aten.kaiser_window.beta",
                      {{"window_length", int_of(4)},
                       {"periodic", {{"as_bool", true}}},
                       {"beta", {{"as_float", 20000.0}}}},
                      y),
              "20000.000000 is not implemented", {4}, ErrorCode::kOperatorNotImplemented);
}

TEST(PytorchNumbers, HaveQuotientsOf64Bits) {
  const Json n = {{"as_sym_int", sym_int_of("n")}};
  const auto refuse = [&](const char* target, int64_t a, int64_t b, const std::string& text) {
    refuse_node(fx_node(target, {{"a", int_of(a)}, {"b", int_of(b)}}, n), text);
  };
  refuse("_operator.floordiv", INT64_MIN, -1, "0 - -9223372036854775808 is too large");
  refuse("_operator.add", INT64_MAX, 1, "9223372036854775807 + 1 is too large");
  refuse("_operator.sub", INT64_MIN, 1, "-9223372036854775808 - 1 is too large");
  refuse_node(fx_node("_operator.neg", {{"a", int_of(INT64_MIN)}}, n),
              "0 - -9223372036854775808 is too large");
}

TEST(PytorchOperands, OfQuantilesAreShares) {
  for (const double q : {1.5, -0.1}) {
    const auto quantile =
        fx_node("torch.ops.aten.quantile.scalar",
                {{"self", tensor_of("x")}, {"q", {{"as_float", q}}}, {"dim", int_of(0)}}, tensor_of("y"));
    refuse_node(quantile, "q is not between 0 and 1");
  }
}

TEST(PytorchOperands, OfDecompositionsAreMatrices) {
  const Json x = tensor_of("x"), y = tensor_of("y");
  const auto of = [&](const std::string& op, const std::vector<std::pair<const char*, Json>>& more = {},
                      const char* name = "self") {
    std::vector<std::pair<const char*, Json>> inputs = {{name, x}};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return fx_node(("torch.ops.aten." + op).c_str(), inputs, y);
  };
  refuse_node(of("linalg_cond.default"), "aten.linalg_cond.default \"y\": matrices of shape [4]");
  refuse_node(of("linalg_matrix_exp.default"), "X has shape [2,3], expected square matrices", {2, 3});
  refuse_node(of("linalg_lu_factor.default", {{"pivot", {{"as_bool", false}}}}, "A"),
              "factors without exchanged rows are not implemented", {4, 4},
              ErrorCode::kOperatorNotImplemented);
  refuse_node(of("linalg_householder_product.default", {{"tau", x}}, "input"),
              "aten.linalg_householder_product", {});
  refuse_node(of("linalg_householder_product.default", {{"tau", x}}, "input"),
              "factors of shape [4,1,4] of reflections in [1,4,4]", {4, 4});
  refuse_node(of("lu_unpack.default", {{"LU_pivots", x}}, "LU_data"),
              "pivots of shape [4,1,4] for matrices of [1,4,4]", {4, 4});
  refuse_node(of("linalg_tensorinv.default", {{"ind", int_of(4)}}), "ind is 4", {2, 2, 2, 2});
  refuse_node(of("linalg_tensorsolve.default", {{"other", x}, {"dims", ints_of({1, -1})}}),
              "argument dims names an axis twice", {4, 4});
  refuse_node(of("gcd.default", {{"other", x}}), "divisors of f32");
  refuse_node(of("_int_mm.default", {{"mat2", x}}), "an operand is of f32, not of i8", {4, 4});
}

TEST(PytorchOperands, OfSearchesAreRows) {
  const auto search = [](const std::vector<std::pair<const char*, Json>>& more) {
    std::vector<std::pair<const char*, Json>> inputs = {{"sorted_sequence", tensor_of("x")}};
    inputs.insert(inputs.end(), more.begin(), more.end());
    return fx_node("torch.ops.aten.searchsorted.Tensor", inputs, tensor_of("y"));
  };
  const std::pair<const char*, Json> self{"self", tensor_of("x")};
  refuse_node(search({self}), "borders of shape [] for values of []", {});
  refuse_node(search({self, {"side", {{"as_string", "middle"}}}}), "side is \"middle\"");
  refuse_node(search({self, {"right", {{"as_bool", true}}}, {"side", {{"as_string", "left"}}}}),
              "side is \"left\", beside right");
}

TEST(PytorchOperands, OfSequencesHaveOneRank) {
  const auto padded = [](const Json& parts) {
    return fx_node("torch.ops.aten.pad_sequence.default", {{"sequences", {{"as_tensors", parts}}}},
                   tensor_of("y"));
  };
  refuse_node(padded(Json::array()), "there are no sequences");
  refuse_node(padded(Json::array({tensor_of("x")})), "a sequence of shape [] beside one of []", {});
}

constexpr int kComplex64 = 10;

// x -> c = x + xi -> its conjugate k -> r, which is k as torch looks at it next.
Json conjugates(const Json& last) {
  const auto one = [](const char* target, const char* of, const char* to) {
    return fx_node(target, {{"self", tensor_of(of)}}, tensor_of(to));
  };
  Json nodes = Json::array({fx_node("torch.ops.aten.complex.default",
                                    {{"real", tensor_of("x")}, {"imag", tensor_of("x")}}, tensor_of("c")),
                            one("torch.ops.aten._conj.default", "c", "k"),
                            one("torch.ops.aten.resolve_conj.default", "k", "r")});
  for (const Json& node : last) nodes.push_back(node);
  return nodes;
}

std::unique_ptr<Importer> complex_program(const Json& nodes) {
  Json tensors = Json::object();
  for (const char* name : {"c", "k", "r", "w"}) tensors[name] = meta_of_shape({4}, kComplex64);
  const Json row = meta_of_shape({4});
  return program_of(row, row, nodes, Json::object(), tensors);
}

// It is a copy of what is to be turned: c keeps what it was.
TEST(PytorchComplex, OfWhatIsResolvedNothingElseIsWritten) {
  const Json two = {{"as_float", 2.0}};
  const Json last = Json::array(
      {fx_node("torch.ops.aten.mul_.Scalar", {{"self", tensor_of("r")}, {"other", two}}, tensor_of("w")),
       fx_node("torch.ops.aten.real.default", {{"self", tensor_of("c")}}, tensor_of("y"))});
  const auto model = complex_program(conjugates(last));
  expect_error(ErrorCode::kOperatorNotImplemented, "may or may not share its elements",
               [&] { model->import({}, ops::standard_ops()); });
}

TEST(PytorchComplex, FactorsOfSumsAreReal) {
  const Json factor = {{"as_complex", {{"real", {{"as_float", 0.0}}}, {"imag", {{"as_float", 2.0}}}}}};
  const Json last = Json::array(
      {fx_node("torch.ops.aten.add.Tensor",
               {{"self", tensor_of("c")}, {"other", tensor_of("r")}, {"alpha", factor}}, tensor_of("w")),
       fx_node("torch.ops.aten.real.default", {{"self", tensor_of("w")}}, tensor_of("y"))});
  const auto model = complex_program(conjugates(last));
  expect_error(ErrorCode::kOperatorNotImplemented, "complex factors are not implemented",
               [&] { model->import({}, ops::standard_ops()); });
}

/// Elements x[i], x[i] of a matrix of 2 by 2 that x is, too, where i is x as integers.
Tensor picked(const std::vector<float>& values) {
  const Json x = meta_of_shape({4}), i = meta_of_shape({4}, kInt64);
  const Json indices = {{"as_optional_tensors", Json::array({tensor_of("i"), tensor_of("i")})}};
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.view.default", {{"self", tensor_of("x")}, {"size", ints_of({2, 2})}},
               tensor_of("m")),
       fx_node("torch.ops.aten._to_copy.default",
               {{"self", tensor_of("x")}, {"dtype", {{"as_scalar_type", kInt64}}}}, tensor_of("i")),
       fx_node("torch.ops.aten.index.Tensor", {{"self", tensor_of("m")}, {"indices", indices}},
               tensor_of("y"))});
  const auto model = program_of(x, x, nodes, Json::object(), {{"m", meta_of_shape({2, 2})}, {"i", i}});
  const ir::Graph graph = model->import({}, ops::standard_ops());
  return evaluated(graph, {{"x", Tensor::from<float>({4}, values)}}).at("y");
}

// A place outside of an axis is not one of the next row, nor of the row before.
TEST(PytorchIndices, OfSeveralAxesAreWithinEach) {
  const Tensor y = picked({0, 1, -1, -2});
  const std::vector<double> want = {0, -2, -2, 0};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.element_as_double(i), want[static_cast<size_t>(i)]) << i;
  for (const float outside : {2.0F, 3.0F, -3.0F, -4.0F})
    EXPECT_THROW(static_cast<void>(picked({0, 1, outside, 0})), Error) << outside;
}

}  // namespace
}  // namespace tensormill::frontend
