#include "compiler/frontend/facts/file_graph.h"

#include <algorithm>

#include "imported.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend {
namespace {

using Labels = std::vector<std::string>;

FileNode node(const std::string& label, Labels inputs, Labels outputs) {
  return {.op = "Op", .label = label, .inputs = std::move(inputs), .outputs = std::move(outputs)};
}

/// Labels of the refused nodes in the file's order, each with its reasons.
std::vector<std::pair<std::string, Labels>> refused_of(const Json& graph) {
  std::vector<std::pair<std::string, Labels>> refused;
  for (const Json& each : graph.at("nodes"))
    if (each.contains("refused"))
      refused.emplace_back(each.at("origins").at(0).get<std::string>(), each.at("refused").get<Labels>());
  return refused;
}

/// The graph that the error of an import has.
Json refused_import(const Importer& model) {
  try {
    model.import_for_package({}, {}, ops::standard_ops(), nullptr);
  } catch (const Error& error) {
    return parse_json(refused_graph(model, error));
  }
  ADD_FAILURE() << "the model is imported";
  return {};
}

TEST(FileGraph, SaysOfEachNodeWhyItIsRefused) {
  FileGraph graph("net");
  graph.add_input("x", shown_type("f32", {"1", "N"}));
  graph.add_value("w", shown_type("f32", {}), true);
  graph.add_node(node("first", {"x", "w"}, {"a"}));
  FileNode loop = node("loop", {"a"}, {"b"});
  loop.path = "0:1";
  loop.within = {"2:"};
  graph.add_node(loop);
  graph.add_output("b", "");
  const Json json = parse_json(
      graph.json({{"first", "op Odd"}, {"first", "op Odd"}, {"2:7", "op Inner"}, {"loop", "another's"}}));
  using Refused = std::vector<std::pair<std::string, Labels>>;
  EXPECT_EQ(refused_of(json), (Refused{{"first", {"op Odd"}}, {"loop", {"op Inner"}}}));
  EXPECT_EQ(json.at("values").at("x"), Json({{"type", "f32[1,N]"}, {"constant", false}}));
  EXPECT_EQ(json.at("values").at("w"), Json({{"type", "f32[]"}, {"constant", true}}));
  EXPECT_EQ(json.at("inputs"), Json({"x"}));
  EXPECT_EQ(json.at("outputs"), Json({"b"}));
}

TEST(FileGraph, LeavesOutWhatMakesConstantsUnlessThatIsRefused) {
  FileGraph graph("net");
  FileNode constant = node("weights", {}, {"w"});
  constant.is_aside = true;
  graph.add_node(constant);
  graph.add_node(node("sum", {"x", "w"}, {"y"}));
  const Json json = parse_json(graph.json({}));
  ASSERT_EQ(json.at("nodes").size(), 1u);
  EXPECT_EQ(json.at("values").at("w").at("constant"), true);
  EXPECT_EQ(parse_json(graph.json({{"weights", "elements of type int4"}})).at("nodes").size(), 2u);
}

TEST(FileGraph, OfMoreThanAnybodyLooksAtIsNone) {
  FileGraph many("net");
  for (size_t i = 0; i < FileGraph::kMostNodes; ++i) many.add_node(node("n", {}, {}));
  EXPECT_FALSE(many.is_full());
  EXPECT_FALSE(many.json({}).empty());
  many.add_node(node("n", {}, {}));
  EXPECT_TRUE(many.is_full());
  EXPECT_EQ(many.json({}), "");
  FileGraph large("net");
  large.add_node(node("n", {std::string(FileGraph::kMostBytes, 'x')}, {}));
  EXPECT_EQ(large.json({}), "");
  // Text that is escaped is larger than it was.
  FileGraph escaped("net");
  escaped.add_node(node(std::string(FileGraph::kMostBytes / 4, '\x01'), {}, {}));
  EXPECT_FALSE(escaped.is_full());
  EXPECT_EQ(escaped.json({}), "");
}

TEST(FileGraphOfTflite, HasAllPlacesOfAKind) {
  const Json graph = refused_import(*importer_of("tflite_ops/missing.tflite"));
  const auto refused = refused_of(graph);
  EXPECT_EQ(refused.size(), graph.at("nodes").size());
  const Labels joined = {"op CONCAT_EMBEDDINGS version 1: not implemented"};
  EXPECT_EQ(
      std::count_if(refused.begin(), refused.end(), [&](const auto& each) { return each.second == joined; }),
      2);
}

TEST(FileGraphOfTflite, ALoopIsRefusedWhereItStands) {
  const auto refused = refused_of(refused_import(*importer_of("tflite/control_flow.tflite")));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].second.at(0).find("op WHILE version 1: "), std::string::npos);
}

}  // namespace
}  // namespace tensormill::frontend
