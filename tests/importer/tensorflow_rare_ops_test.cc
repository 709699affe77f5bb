// Operators that TensorFlow's own sessions do not run: those of TensorFlow.js, and those that it has dropped
// but frozen graphs still have. Graphs of a node, which are written here.
#include <cmath>

#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/importer/tensorflow_nodes.h"

namespace tensormill::frontend {
namespace {

/// A graph of the node "y" over placeholders, by their names and shapes; `rest`: nodes beside it.
std::unique_ptr<Importer> graph_of(const Json& y, const std::map<std::string, std::vector<int64_t>>& given,
                                   const std::vector<Json>& rest = {}) {
  Json nodes = Json::array({y});
  for (const auto& [name, extents] : given) {
    Json dims = Json::array();
    for (const int64_t extent : extents) dims.push_back({{"size", std::to_string(extent)}});
    nodes.push_back(node_of(name.c_str(), "Placeholder", {},
                            {{"dtype", type_of("DT_FLOAT")}, {"shape", {{"shape", {{"dim", dims}}}}}}));
  }
  for (const Json& each : rest) nodes.push_back(each);
  const Json model = {{"format", "graph-model"},
                      {"generatedBy", "2.16.0"},
                      {"modelTopology", {{"node", nodes}, {"versions", Json::object()}}},
                      {"weightsManifest", Json::array()}};
  return importer_of_bytes(stored_zip({{"net/model.json", model.dump()}}));
}

Tensors results_of(const Importer& model, const Tensors& inputs) {
  const ir::Graph graph = model.import({}, ops::standard_ops());
  ir::verify(graph);
  return evaluated(graph, inputs);
}

Tensor floats(Shape shape, const std::vector<float>& values) {
  return Tensor::from<float>(std::move(shape), values);
}

TEST(TensorflowRareOps, HaveSlopesOfEachChannel) {
  const auto model = graph_of(node_of("y", "Prelu", {"x", "slope"}), {{"x", {2, 2}}, {"slope", {2}}});
  const Tensors made =
      results_of(*model, {{"x", floats({2, 2}, {1, -2, -3, 4})}, {"slope", floats({2}, {0.5F, 0.25F})}});
  expect_close(made.at("y"), floats({2, 2}, {1, -0.5F, -1.5F, 4}), 1e-6);
}

TEST(TensorflowRareOps, NormalizeByGivenStatistics) {
  const Json y = node_of("y", "BatchNormWithGlobalNormalization", {"x", "mean", "variance", "beta", "gamma"},
                         {{"variance_epsilon", {{"f", 0.0}}}, {"scale_after_normalization", {{"b", true}}}});
  const auto model =
      graph_of(y, {{"x", {1, 1, 2, 2}}, {"mean", {2}}, {"variance", {2}}, {"beta", {2}}, {"gamma", {2}}});
  const Tensors made = results_of(*model, {{"x", floats({1, 1, 2, 2}, {1, 2, 3, 4})},
                                           {"mean", floats({2}, {1, 0})},
                                           {"variance", floats({2}, {4, 16})},
                                           {"beta", floats({2}, {0.5F, 0})},
                                           {"gamma", floats({2}, {2, 4})}});
  expect_close(made.at("y"), floats({1, 1, 2, 2}, {0.5F, 2, 2.5F, 4}), 1e-6);
}

TEST(TensorflowRareOps, TakeTheLargestByAnAttribute) {
  const auto model = graph_of(node_of("top", "TopK", {"x"}, {{"k", {{"i", "2"}}}}), {{"x", {1, 4}}},
                              {node_of("y", "Identity", {"top"})});
  const Tensors made = results_of(*model, {{"x", floats({1, 4}, {1, 7, -2, 3})}});
  expect_close(made.at("y"), floats({1, 2}, {7, 3}), 0);
}

TEST(TensorflowOperands, OfTooFewAxesOrTooShortListsAreNamed) {
  const auto fails = [](const Json& y, const std::map<std::string, std::vector<int64_t>>& given,
                        const std::string& text) {
    SCOPED_TRACE(text);
    const auto model = graph_of(y, given);
    for (const std::string& each : {text, std::string("\"y\"")})
      expect_error(ErrorCode::kInvalidModel, each, [&] { model->import({}, ops::standard_ops()); });
  };
  const auto conv = [](const Json& strides) {
    return node_of("y", "Conv2D", {"x", "w"},
                   {{"strides", {{"list", {{"i", strides}}}}}, {"padding", {{"s", "VkFMSUQ="}}}});
  };
  fails(node_of("y", "AddV2", {"x"}), {{"x", {2}}}, "");
  fails(conv(Json::array({"1", "1", "1", "1"})), {{"x", {3}}, {"w", {1, 1, 1, 1}}}, "rank 1, expected 4");
  fails(conv(Json::array({"1"})), {{"x", {1, 2, 2, 1}}, {"w", {1, 1, 1, 1}}}, "strides has 1 numbers");
}

TEST(TensorflowRareOps, AreRefusedWithoutTheNumberThatTheyTake) {
  const Json none = {{"dtype", "DT_INT32"}, {"tensorShape", {{"dim", Json::array({{{"size", "0"}}})}}}};
  const Json count =
      node_of("count", "Const", {}, {{"dtype", type_of("DT_INT32")}, {"value", {{"tensor", none}}}});
  const std::vector<Json> rest = {number_of("ids", 0, true), number_of("one", 1), count};
  const auto fails = [&](const Json& y, const std::string& text) {
    SCOPED_TRACE(text);
    const auto model = graph_of(y, {{"x", {1}}}, rest);
    expect_error(ErrorCode::kInvalidModel, text, [&] { model->import({}, ops::standard_ops()); });
  };
  fails(node_of("y", "UnsortedSegmentSum", {"x", "ids", "count"}), "num_segments has 0 elements, expected 1");
  fails(node_of("y", "OneHot", {"ids", "count", "one", "one"}), "depth has 0 elements, expected 1");
}

Json integers(const char* name, const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  Json dims = Json::array();
  for (const int64_t extent : shape) dims.push_back({{"size", std::to_string(extent)}});
  const Json tensor = {{"dtype", "DT_INT64"}, {"tensorShape", {{"dim", dims}}}, {"int64Val", values}};
  return node_of(name, "Const", {}, {{"dtype", type_of("DT_INT64")}, {"value", {{"tensor", tensor}}}});
}

Json cast_of(const char* name, const char* x, const char* to) {
  return node_of(name, "Cast", {x}, {{"DstT", type_of(to)}});
}

/// A node that reads places, which a run says as floats "p", of a sparse matrix [3,4], and floats "v".
Tensors placed(const Json& y, const std::vector<float>& places, const Tensor& v) {
  const auto model = graph_of(
      y, {{"p", {1, 2}}, {"v", v.shape()}},
      {cast_of("places", "p", "DT_INT64"), integers("shape", {2}, {3, 4}), number_of("none", 0),
       cast_of("zero", "none", "DT_FLOAT"), integers("one", {1}, {1}), cast_of("ones", "one", "DT_FLOAT")});
  return results_of(*model, {{"p", floats({1, 2}, places)}, {"v", v}});
}

// A place that lies outside along one axis is another one in the axes taken together.
TEST(TensorflowRareOps, PlacesAreInsideOfEachAxis) {
  const Tensor table = Tensor::zeros(DType::kFloat32, {3, 4}), row = floats({1}, {5});
  const std::vector<std::pair<Json, Tensor>> nodes = {
      {node_of("y", "GatherNd", {"v", "places"}), table},
      {node_of("y", "ScatterNd", {"places", "v", "shape"}), row},
      {node_of("y", "TensorScatterAdd", {"v", "places", "ones"}), table},
      {node_of("y", "SparseToDense", {"places", "shape", "v", "zero"}), row},
      {node_of("y", "SparseTensorDenseMatMul", {"places", "ones", "shape", "v"}),
       floats({4, 1}, {1, 2, 3, 4})},
      {node_of("y", "SparseReduceSum", {"places", "v", "shape", "one"}), row},
      {node_of("y", "SparseDenseCwiseMul", {"places", "ones", "shape", "v"}), table},
      {node_of("y", "SparseTensorDenseAdd", {"places", "ones", "shape", "v"}), table}};
  for (const auto& each : nodes) {
    const Json& node = each.first;
    const Tensor& v = each.second;
    SCOPED_TRACE(node.dump());
    EXPECT_FALSE(placed(node, {1, 2}, v).empty());
    const bool is_of_rows = node.at("op") == "SparseReduceSum";
    for (const std::vector<float>& wrong : {std::vector<float>{0, 7}, {1, -1}, {3, 0}, {-1, 0}})
      if (!is_of_rows || wrong[1] == 0)
        expect_error(ErrorCode::kTensorData, "is out of range for an axis", [&] { placed(node, wrong, v); });
  }
}

TEST(TensorflowRareOps, FailWhereTensorflowDoes) {
  const auto fails = [&](const Json& y, const std::vector<float>& x, const std::string& text) {
    const auto model = graph_of(
        y, {{"x", {2}}},
        {node_of("row", "Reshape", {"x", "wide"}), integers("wide", {2}, {1, 2}),
         cast_of("numbers", "x", "DT_INT32"), integers("ends", {2}, {0, 2}), number_of("bins", 4),
         number_of("low", 0, true), number_of("high", 9, true), number_of("axis", 0),
         node_of("range", "ConcatV2", {"low", "high", "axis"}), cast_of("limits", "range", "DT_FLOAT"),
         node_of("label", "Max", {"numbers", "low"}, {{"keep_dims", {{"b", true}}}})});
    expect_error(ErrorCode::kTensorData, text, [&] { results_of(*model, {{"x", floats({2}, x)}}); });
  };
  const Json loss = node_of("y", "SparseSoftmaxCrossEntropyWithLogits", {"row", "label"});
  fails(loss, {0, 2}, "a label is no class");
  fails(loss, {-3, -1}, "a label is no class");
  const Json counts = node_of("y", "HistogramFixedWidth", {"x", "limits", "bins"}),
             turned = node_of("y", "HistogramFixedWidth", {"x", "x", "bins"});
  fails(counts, {1, std::nanf("")}, "a value is NaN");
  fails(turned, {2, 2}, "a range of nothing");
  const auto encoded = [](const char* errors) {
    return node_of("y", "UnicodeEncode", {"numbers", "ends"},
                   {{"output_encoding", {{"s", "VVRGLTg="}}}, {"errors", {{"s", errors}}}});
  };
  const char* const strict = "c3RyaWN0";
  for (const float wrong : {-1.0F, 55296.0F, 1114112.0F})
    fails(encoded(strict), {97, wrong}, "a number is no code point");
  fails(encoded(strict), {97, 0}, "zero bytes are not implemented");
}

TEST(TensorflowRareOps, AreRefusedWithAReason) {
  for (const auto& [op, text] : {std::pair{"DecodeJpeg", "export a signature that takes decoded pictures"},
                                 {"ParseExampleV2", "export a signature whose inputs are the features"},
                                 {"XlaCallModule", "native_serialization=False"},
                                 {"PyFunc", "it calls Python"},
                                 {"CudnnRNNV3", "tf.keras.layers.LSTM or GRU"},
                                 {"UniformQuantizedDot", "export the model with real numbers"},
                                 {"QuantizedConv2DAndRequantize", "TensorFlow's own optimizer"},
                                 {"MaxPoolGradWithArgmax", "export the model for inference"},
                                 {"StatelessRandomNormal", "it draws random numbers"},
                                 {"TensorArrayReadV2", "an earlier form of lists"},
                                 {"MapPeek", "it keeps tensors beside the graph"}}) {
    SCOPED_TRACE(op);
    const auto model = graph_of(node_of("y", op, {"x"}), {{"x", {2}}});
    expect_error(ErrorCode::kOperatorNotImplemented, text, [&] { model->import({}, ops::standard_ops()); });
  }
  const auto model =
      graph_of(node_of("y", "StringToHashBucketFast", {"text"}, {{"num_buckets", {{"i", "0"}}}}),
               {{"x", {2}}}, {node_of("text", "AsString", {"n"}), cast_of("n", "x", "DT_INT32")});
  expect_error(ErrorCode::kInvalidModel, "num_buckets is 0", [&] { model->import({}, ops::standard_ops()); });
}

// Of what stands in the graph.
TEST(TensorflowSequences, OfOtherNumbersAreRefused) {
  const auto fails = [](const Json& y, const std::string& text, ErrorCode code = ErrorCode::kInvalidModel) {
    const std::map<std::string, std::vector<int64_t>> given = {
        {"x", {3, 2, 4}}, {"square", {4, 4}}, {"row", {2}}, {"diagonals", {2, 5}}, {"pair", {1, 2}}};
    const auto model = graph_of(y, given, {cast_of("steps", "row", "DT_INT32")});
    for (const std::string& each : {text, std::string("\"y\"")}) {
      SCOPED_TRACE(each);
      expect_error(code, each, [&] { model->import({}, ops::standard_ops()); });
    }
  };
  const auto search = [](const char* scores, const char* width, const char* paths) {
    return node_of("y", "CTCBeamSearchDecoder", {scores, "steps"},
                   {{"beam_width", {{"i", width}}}, {"top_paths", {{"i", paths}}}});
  };
  fails(search("x", "2", "3"), "top_paths is 3, beam_width 2");
  fails(search("x", "2", "0"), "top_paths is 0, beam_width 2");
  fails(search("square", "2", "1"), "scores of shape [4,4]");
  fails(search("x", "16385", "1"), "it is above 16384", ErrorCode::kOperatorNotImplemented);
  fails(node_of("y", "Lu", {"pair"}), "[1,2]");
  fails(node_of("y", "Eig", {"pair"}, {{"Tout", type_of("DT_COMPLEX64")}}), "[1,2]");
  fails(node_of("y", "TridiagonalSolve", {"diagonals", "square"}), "diagonals of shape [2,5]");
  fails(node_of("y", "TridiagonalMatMul", {"diagonals", "diagonals", "diagonals", "square"}),
        "a diagonal of shape [2,5]");
  fails(node_of("y", "ReluGrad", {"pair", "row"}), "operands of shapes [1,2] and [2]");
  fails(node_of("y", "BiasAddGrad", {"row"}), "an operand of shape [2]");
}

// Of what a run says.
TEST(TensorflowSequences, OfOtherNumbersFailInARun) {
  const auto result = [](const Json& y, const std::vector<float>& x) {
    const auto model = graph_of(y, {{"x", {2, 2}}},
                                {cast_of("places", "x", "DT_INT64"), integers("labels", {2}, {5, 6}),
                                 integers("shape", {2}, {3, 2})});
    return results_of(*model, {{"x", floats({2, 2}, x)}});
  };
  const auto fails = [&](const Json& y, const std::vector<float>& x, const std::string& text) {
    SCOPED_TRACE(y.dump());
    expect_error(ErrorCode::kTensorData, text, [&] { result(y, x); });
  };
  for (const char* op : {"Lu", "MatrixInverse"})
    fails(node_of("y", op, {"x"}), {1, 2, 2, 4}, "a matrix has no inverse");
  fails(node_of("y", "MatrixSolve", {"x", "x"}), {1, 2, 2, 4}, "a matrix has no inverse");
  const Json distance =
      node_of("y", "EditDistance", {"places", "labels", "shape", "places", "labels", "shape"});
  expect_close(result(distance, {0, 0, 2, 0}).at("y"), floats({3}, {0, 0, 0}), 0);
  fails(distance, {2, 0, 0, 0}, "places that are not in order");
  fails(distance, {0, 0, 3, 0}, "is out of range");
  fails(distance, {-1, 0, 0, 0}, "is out of range");
}

/// A graph over x [N], with half of N, in real numbers rounded down, as "half" [1].
ir::Graph graph_at_free(const Json& y, const std::vector<Json>& more = {}) {
  std::vector<Json> rest = {node_of("extents", "Shape", {"x"}),
                            cast_of("real", "extents", "DT_FLOAT"),
                            number_of("two", 2),
                            cast_of("by", "two", "DT_FLOAT"),
                            node_of("exact", "RealDiv", {"real", "by"}),
                            node_of("whole", "Floor", {"exact"}),
                            cast_of("half", "whole", "DT_INT32"),
                            number_of("none", 0),
                            cast_of("zero", "none", "DT_FLOAT")};
  rest.insert(rest.end(), more.begin(), more.end());
  const auto model = graph_of(y, {{"x", {-1}}}, rest);
  ir::Graph graph = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(graph);
  const std::string name = ir::to_string(graph.value(graph.inputs()[0]).type.shape[0]);
  for (const ir::Guard& guard : graph.symbols()->guards())
    EXPECT_TRUE(ir::holds_at(guard, {{name, 15}})) << "an extent has one value";
  EXPECT_TRUE(graph.symbols()->run_time_symbols().empty()) << "an extent is not known before a run";
  return graph;
}

ir::SymShape shape_of_result(const ir::Graph& graph) { return graph.value(graph.outputs()[0]).type.shape; }

TEST(TensorflowRareOps, RealNumbersOfFreeDimsAreExtents) {
  EXPECT_FALSE(shape_of_result(graph_at_free(node_of("y", "Fill", {"half", "zero"}))).is_constant());
  // As tf.image.resize_with_pad has it: what is missing of 8 elements.
  const ir::Graph padded = graph_at_free(
      node_of("y", "Pad", {"filled", "paddings"}),
      {node_of("filled", "Fill", {"half", "zero"}), number_of("eight", 8), number_of("before", 0, true),
       node_of("behind", "Sub", {"eight", "half"}), node_of("both", "ConcatV2", {"before", "behind", "none"}),
       integers("row", {2}, {1, 2}), node_of("paddings", "Reshape", {"both", "row"})});
  ASSERT_TRUE(shape_of_result(padded).is_constant());
  EXPECT_EQ(shape_of_result(padded).hints(), Shape{8});
}

TEST(TensorflowRareOps, RangesOfRealNumbersStayFree) {
  const std::vector<Json> more = {integers("point", {0}, {}), node_of("end", "Reshape", {"real", "point"}),
                                  node_of("number", "Reshape", {"extents", "point"}), number_of("one", 1),
                                  cast_of("step", "one", "DT_FLOAT")};
  const ir::Graph range = graph_at_free(node_of("y", "Range", {"zero", "end", "step"}), more);
  EXPECT_FALSE(shape_of_result(range).is_constant());
  const ir::Graph line = graph_at_free(node_of("y", "LinSpace", {"zero", "step", "number"}), more);
  EXPECT_EQ(ir::to_string(shape_of_result(line)), ir::to_string(line.value(line.inputs()[0]).type.shape));
}

// Complex numbers go where their parts may go alone, and are refused elsewhere.
TEST(TensorflowRareOps, NameWhatTakesNoComplexNumbers) {
  const auto model =
      graph_of(node_of("y", "Tanh", {"z"}), {{"x", {2}}}, {node_of("z", "Complex", {"x", "x"})});
  try {
    model->import({}, ops::standard_ops());
    FAIL() << "the hyperbolic tangent of a complex number was imported";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOperatorNotImplemented);
    EXPECT_NE(error.message().find("complex numbers"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tensormill::frontend
