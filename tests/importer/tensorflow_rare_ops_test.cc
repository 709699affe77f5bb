// Operators that TensorFlow's own sessions do not run: those of TensorFlow.js, and those that it has dropped
// but frozen graphs still have. Graphs of a node, which are written here.
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
