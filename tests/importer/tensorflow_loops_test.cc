// Loops over as many rows as a free dim says, as tf.map_fn makes them: graphs of a few nodes that are written
// here.
#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/loops.h"
#include "tests/expect_error.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/importer/tensorflow_nodes.h"

namespace tensormill::frontend {
namespace {

/// What iterations do: `rest` of the body, whose node "set" is the list that is handed on; `state`: what
/// becomes of a tensor, [2] at first; `cond`: how long the loop goes on.
struct Loop {
  Json rest, cond = Json::array({node_of("less", "Less", {"i", "n"}), node_of("more", "Less", {"i", "n"}),
                                 node_of("and", "LogicalAnd", {"less:z:0", "more:z:0"})});
  std::string state = "state", grown = "next:z:0";
  bool is_ragged = false;  ///< y are the elements of a ragged tensor, and "ends" where its rows end
};

/// y = the rows that iterations make of those of x [N,2], z = the state behind the last one.
std::unique_ptr<Importer> loop_of(const Loop& loop) {
  const Json inputs =
      Json::array({argument("i", "DT_INT32"), argument("n", "DT_INT32"), argument("from", "DT_VARIANT"),
                   argument("to", "DT_VARIANT"), argument("state", "DT_FLOAT")});
  const Json outputs =
      Json::array({argument("i_", "DT_INT32"), argument("n_", "DT_INT32"), argument("from_", "DT_VARIANT"),
                   argument("to_", "DT_VARIANT"), argument("state_", "DT_FLOAT")});
  const Json element = {{"element_dtype", type_of("DT_FLOAT")}};
  Json body = Json::array({number_of("one", 1), number_of("shape", -1, true),
                           node_of("next", "AddV2", {"i", "one:output:0"}),
                           node_of("row", "TensorListGetItem", {"from", "i", "shape:output:0"}, element)});
  for (const Json& each : loop.rest) body.push_back(each);
  const Json library = {
      {"function",
       Json::array({{{"signature",
                      {{"name", "cond"},
                       {"inputArg", inputs},
                       {"outputArg", Json::array({argument("goes_on", "DT_BOOL")})}}},
                     {"ret", {{"goes_on", "and:z:0"}}},
                     {"nodeDef", loop.cond}},
                    {{"signature", {{"name", "body"}, {"inputArg", inputs}, {"outputArg", outputs}}},
                     {"ret",
                      {{"i_", loop.grown},
                       {"n_", "n"},
                       {"from_", "from"},
                       {"to_", "set:output_handle:0"},
                       {"state_", loop.state}}},
                     {"nodeDef", body}}})}};
  const Json shape = {{"dim", Json::array({{{"size", "-1"}}, {{"size", "2"}}})}};
  const Json types = {
      {"list", {{"type", Json::array({"DT_INT32", "DT_INT32", "DT_VARIANT", "DT_VARIANT", "DT_FLOAT"})}}}};
  const Json made = {{"element_dtype", type_of(loop.is_ragged ? "DT_VARIANT" : "DT_FLOAT")}};
  Json nodes = Json::array(
      {node_of("x", "Placeholder", {}, {{"dtype", type_of("DT_FLOAT")}, {"shape", {{"shape", shape}}}}),
       node_of("extents", "Shape", {"x"}), number_of("begin", 0, true), number_of("behind", 1, true),
       node_of("n", "StridedSlice", {"extents", "begin", "behind", "behind"},
               {{"shrink_axis_mask", {{"i", "1"}}}}),
       number_of("zero", 0), number_of("axis", 0), number_of("shape", -1, true),
       node_of("first", "Max", {"x", "axis"}),
       node_of("from", "TensorListFromTensor", {"x", "shape"}, element),
       node_of("to", "TensorListReserve", {"shape", "n"}, made),
       node_of("loop", "StatelessWhile", {"zero", "n", "from", "to", "first"},
               {{"cond", called("cond")}, {"body", called("body")}, {"T", types}}),
       node_of("stack", "TensorListStack", {"loop:3", "shape"}, made), node_of("z", "Identity", {"loop:4"})});
  if (loop.is_ragged) {
    nodes.push_back(node_of("ragged", "RaggedTensorFromVariant", {"stack"},
                            {{"input_ragged_rank", {{"i", "0"}}},
                             {"output_ragged_rank", {{"i", "1"}}},
                             {"Tvalues", type_of("DT_FLOAT")},
                             {"Tsplits", type_of("DT_INT64")}}));
    nodes.push_back(node_of("ends", "Identity", {"ragged"}));
  }
  nodes.push_back(node_of("y", "Identity", {loop.is_ragged ? "ragged:1" : "stack"}));
  const Json model = {
      {"format", "graph-model"},
      {"generatedBy", "2.16.0"},
      {"modelTopology", {{"node", nodes}, {"library", library}, {"versions", Json::object()}}},
      {"weightsManifest", Json::array()}};
  return importer_of_bytes(stored_zip({{"net/model.json", model.dump()}}));
}

Json set_to(const char* value) {
  return node_of("set", "TensorListSetItem", {"to", "i", value}, {{"element_dtype", type_of("DT_FLOAT")}});
}

ir::Graph at_free(const Importer& model) {
  ir::Graph graph = model.import(with_symbols(model.facts(), {}), ops::standard_ops());
  ir::verify(graph);
  return graph;
}

size_t loops_in(const ir::Graph& graph) {
  size_t loops = 0;
  for (const ir::Node& node : graph.nodes()) loops += node.op == ir::kLoopBegin ? 1 : 0;
  return loops;
}

/// The name of the free dim.
std::string rows_of(const ir::Graph& graph) {
  return ir::to_string(graph.value(graph.inputs()[0]).type.shape[0]);
}

std::string refusal_of(const Loop& loop) {
  const auto model = loop_of(loop);
  try {
    model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOperatorNotImplemented) << error.message();
    return error.message();
  }
  return "imported";
}

// Rows and a running sum of them: a tensor that is handed on, and is a result as well.
TEST(TensorflowRows, AreGoneOverInALoop) {
  Loop loop;
  loop.rest = Json::array({node_of("sum", "AddV2", {"state", "row:item:0"}), set_to("sum:z:0")});
  loop.state = "sum:z:0";
  const auto model = loop_of(loop);
  const ir::Graph open = at_free(*model);
  EXPECT_EQ(loops_in(open), 1u) << ir::print(open);
  std::map<std::string, std::string> types;
  for (const ir::ValueId output : open.outputs())
    types[open.value(output).name] = ir::to_string(open.value(output).type);
  const std::string n = rows_of(open);
  EXPECT_EQ(types, (std::map<std::string, std::string>{{"y", "f32[" + n + ",2]"}, {"z", "f32[2]"}}));
}

// The same numbers as where the number of rows is known, and the loop is unrolled.
TEST(TensorflowRows, GiveWhatAnUnrolledLoopGives) {
  Loop loop;
  loop.rest = Json::array({node_of("sum", "AddV2", {"state", "row:item:0"}), set_to("sum:z:0")});
  loop.state = "sum:z:0";
  const auto model = loop_of(loop);
  const Tensor x = Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 0});
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{3}, int64_t{2}};
  const ir::Graph fixed = model->import(options, ops::standard_ops());
  EXPECT_EQ(loops_in(fixed), 0u);
  const Tensors unrolled = evaluated(fixed, {{"x", x}});
  expect_close(unrolled.at("y"), Tensor::from<float>({3, 2}, std::vector<float>{6, 6, 9, 10, 14, 10}), 0);
  const ir::Graph open = at_free(*model);
  const ir::Graph bound = ir::bind_symbols(open, {{rows_of(open), 3}});
  EXPECT_EQ(loops_in(bound), 1u);
  const Tensors looped = evaluated(bound, {{"x", x}});
  for (const char* output : {"y", "z"}) expect_close(looped.at(output), unrolled.at(output), 0);
}

TEST(TensorflowRows, ThatNoIterationReadsAreStackedAsWell) {
  Loop loop;
  loop.rest = Json::array({set_to("state")});
  const ir::Graph open = at_free(*loop_of(loop));
  EXPECT_EQ(loops_in(open), 1u);
}

/// What iterations do that hand on the row of the place that node `at` says.
Json read_at(const char* at) {
  return Json::array({node_of("other", "TensorListGetItem", {"from", at, "shape:output:0"},
                              {{"element_dtype", type_of("DT_FLOAT")}}),
                      set_to("other:item:0")});
}

/// y of a loop over three rows where their number is free.
Tensor made_of_three(const Importer& model) {
  const ir::Graph open = at_free(model);
  EXPECT_EQ(loops_in(open), 1u);
  const Tensor x = Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 0});
  return evaluated(ir::bind_symbols(open, {{rows_of(open), 3}}), {{"x", x}}).at("y");
}

TEST(TensorflowRows, BesideTheIterationsOwnAreRead) {
  Loop loop;
  loop.rest = read_at("at:z:0");
  loop.rest.push_back(node_of("last", "Sub", {"n", "one:output:0"}));
  loop.rest.push_back(node_of("at", "Minimum", {"next:z:0", "last:z:0"}));
  expect_close(made_of_three(*loop_of(loop)),
               Tensor::from<float>({3, 2}, std::vector<float>{3, 4, 5, 0, 5, 0}), 0);
  loop.rest = read_at("at:z:0");
  loop.rest.push_back(number_of("first", 0));
  loop.rest.push_back(node_of("before", "Sub", {"i", "one:output:0"}));
  loop.rest.push_back(node_of("at", "Maximum", {"before:z:0", "first:output:0"}));
  expect_close(made_of_three(*loop_of(loop)),
               Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 1, 2, 3, 4}), 0);
}

TEST(TensorflowRows, ThatAreNotThereAreErrorsOfARun) {
  Loop loop;
  loop.rest = read_at("next:z:0");
  const auto behind = loop_of(loop);
  expect_error(ErrorCode::kTensorData, "other: place 3 of a list of 3", [&] { made_of_three(*behind); });
  loop.rest = read_at("before:z:0");
  loop.rest.push_back(node_of("before", "Sub", {"i", "one:output:0"}));
  const auto before = loop_of(loop);
  expect_error(ErrorCode::kTensorData, "other: place -1 of a list of 3", [&] { made_of_three(*before); });
}

TEST(TensorflowRows, OtherThanTheIterationsOwnAreNotSet) {
  Loop loop;
  loop.rest = Json::array({node_of("set", "TensorListSetItem", {"to", "next:z:0", "row:item:0"},
                                   {{"element_dtype", type_of("DT_FLOAT")}})});
  EXPECT_NE(refusal_of(loop).find("another one than that of a loop's iteration"), std::string::npos);
}

TEST(TensorflowRows, InLoopsThatCountOtherwiseAreRefused) {
  Loop loop;
  loop.rest = Json::array(
      {number_of("two", 2), node_of("far", "AddV2", {"i", "two:output:0"}), set_to("row:item:0")});
  loop.grown = "far:z:0";
  EXPECT_NE(refusal_of(loop).find("a counter that does not grow by 1"), std::string::npos);
  loop.grown = "next:z:0";
  EXPECT_EQ(refusal_of(loop), "imported");
  loop.cond = Json::array({node_of("and", "LessEqual", {"i", "n"})});
  EXPECT_NE(refusal_of(loop).find("another condition"), std::string::npos);
}

TEST(TensorflowRows, WhoseStateGrowsAreRefused) {
  Loop loop;
  loop.rest = Json::array(
      {number_of("axis", 0),
       node_of("longer", "ConcatV2", {"state", "row:item:0", "axis:output:0"}, {{"N", {{"i", "2"}}}}),
       set_to("row:item:0")});
  loop.state = "longer:output:0";
  EXPECT_NE(refusal_of(loop).find("that becomes f32[4]"), std::string::npos);
}

Json row_to_set(const char* value) {
  return node_of("row_of", "RaggedTensorToVariant", {value},
                 {{"RAGGED_RANK", {{"i", "0"}}},
                  {"batched_input", {{"b", false}}},
                  {"Tvalues", type_of("DT_FLOAT")},
                  {"Tsplits", type_of("DT_INT64")}});
}

Loop to_ragged_rows(const char* value) {
  Loop loop;
  loop.is_ragged = true;
  loop.rest = Json::array(
      {row_to_set(value), node_of("set", "TensorListSetItem", {"to", "i", "row_of:encoded_ragged:0"},
                                  {{"element_dtype", type_of("DT_VARIANT")}})});
  return loop;
}

TEST(TensorflowRows, OfOneLengthAreThoseOfARaggedTensor) {
  const auto model = loop_of(to_ragged_rows("row:item:0"));
  const ir::Graph open = at_free(*model);
  EXPECT_EQ(loops_in(open), 1u);
  const Tensor x = Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 0});
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{3}, int64_t{2}};
  for (const ir::Graph& graph :
       {model->import(options, ops::standard_ops()), ir::bind_symbols(open, {{rows_of(open), 3}})}) {
    const Tensors got = evaluated(graph, {{"x", x}});
    expect_close(got.at("y"), Tensor::from<float>({6}, std::vector<float>{1, 2, 3, 4, 5, 0}), 0);
    expect_close(got.at("ends"), Tensor::from<int64_t>({4}, std::vector<int64_t>{0, 2, 4, 6}), 0);
  }
}

// Their lengths are extents that each iteration works out.
TEST(TensorflowRows, OfLengthsOfTheirOwnAreRefusedByTheNameOfTheLoop) {
  Loop loop = to_ragged_rows("some:z:0");
  loop.rest.push_back(number_of("to_int", 0));
  loop.rest.push_back(node_of("whole", "Cast", {"row:item:0"},
                              {{"SrcT", type_of("DT_FLOAT")}, {"DstT", type_of("DT_INT32")}}));
  loop.rest.push_back(node_of("length", "Max", {"whole:y:0", "to_int:output:0"}));
  loop.rest.push_back(node_of("places", "Range", {"to_int:output:0", "length:output:0", "one:output:0"}));
  loop.rest.push_back(node_of("reals", "Cast", {"places:output:0"},
                              {{"SrcT", type_of("DT_INT32")}, {"DstT", type_of("DT_FLOAT")}}));
  loop.rest.push_back(node_of("some", "AddV2", {"reals:y:0", "reals:y:0"}));
  const std::string refusal = refusal_of(loop);
  EXPECT_NE(refusal.find("of which is not known how many are the most"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("\"loop\""), std::string::npos) << refusal;
}

// What TensorFlow writes of loops that read the rows beside their own: tests/e2e/tensorflow_test.py has the
// numbers, which a run alone gives.
TEST(TensorflowRows, BesideEachOtherAsTensorflowWritesThem) {
  const ir::Graph open = at_free(*importer_of("tensorflow_nets/neighbours.zip"));
  EXPECT_EQ(loops_in(open), 3u) << ir::print(open);
}

// Rows of a ragged tensor: a result whose rows are as long has as many elements.
TEST(TensorflowRows, OfDifferentLengthsAreGoneOver) {
  const ir::Graph open = at_free(*importer_of("tensorflow_nets/uneven_rows.zip"));
  EXPECT_EQ(loops_in(open), 3u) << ir::print(open);
  std::map<std::string, ir::ValueType> types;
  for (const ir::ValueId id : open.inputs()) types[open.value(id).name] = open.value(id).type;
  for (const ir::ValueId id : open.outputs()) types[open.value(id).name] = open.value(id).type;
  EXPECT_EQ(ir::to_string(types.at("scaled")), ir::to_string(types.at("x")));
  EXPECT_EQ(ir::to_string(types.at("ends")), ir::to_string(types.at("x_1")));
}

/// A loop of TensorFlow 1 over the rows of x [N,2]: Enter, Merge, Switch, NextIteration and Exit of each
/// value, TensorArrays of the rows. y = what is written, z = the state, [2] at first, behind the last
/// iteration.
struct FrameLoop {
  Json rest = Json::array();                  ///< what iterations do: node "made" is the row written
  std::string read_at = "i", state = "made";  ///< place that is read, what becomes of the state
  std::string limit = "n", step = "by", first = "zero";
  Json before = Json::array();  ///< nodes before the loop
  std::string from = "filled", to = "to:1", initial = "first", condition = "less";
  bool has_lists = true;  ///< otherwise z is all that there is, and no row is read
};

Json frame() { return {{"frame_name", {{"s", "Zm9y"}}}, {"T", type_of("DT_FLOAT")}}; }

std::unique_ptr<Importer> loop_of(const FrameLoop& loop) {
  const Json shape = {{"dim", Json::array({{{"size", "-1"}}, {{"size", "2"}}})}};
  const Json element = {{"dtype", type_of("DT_FLOAT")}};
  Json nodes = Json::array(
      {node_of("x", "Placeholder", {}, {{"dtype", type_of("DT_FLOAT")}, {"shape", {{"shape", shape}}}}),
       node_of("extents", "Shape", {"x"}), number_of("begin", 0, true), number_of("behind", 1, true),
       node_of("n", "StridedSlice", {"extents", "begin", "behind", "behind"},
               {{"shrink_axis_mask", {{"i", "1"}}}}),
       number_of("zero", 0), number_of("one", 1), number_of("two", 2), number_of("axis", 0),
       node_of("first", "Max", {"x", "axis"}), node_of("places", "Range", {"zero", "n", "one"}),
       node_of("from", "TensorArrayV3", {"n"}, element),
       node_of("filled", "TensorArrayScatterV3", {"from", "places", "x", "from:1"}),
       node_of("to", "TensorArrayV3", {"n"}, element)});
  for (const Json& each : loop.before) nodes.push_back(each);
  const auto add_value = [&](const std::string& name, const std::string& initial, const std::string& next) {
    nodes.push_back(node_of(("enter_" + name).c_str(), "Enter", {initial}, frame()));
    nodes.push_back(node_of(("merge_" + name).c_str(), "Merge", {"enter_" + name, "next_" + name}));
    nodes.push_back(node_of(("switch_" + name).c_str(), "Switch", {"merge_" + name, "on"}));
    nodes.push_back(node_of(name.c_str(), "Identity", {"switch_" + name + ":1"}));
    nodes.push_back(node_of(("next_" + name).c_str(), "NextIteration", {next}));
    if (name != "i") nodes.push_back(node_of(("exit_" + name).c_str(), "Exit", {"switch_" + name}));
  };
  add_value("i", loop.first, "grown");
  if (loop.has_lists) add_value("list", loop.to, "written");
  add_value("state", loop.initial, loop.state);
  const Json parts = Json::array(
      {node_of("limit", "Enter", {loop.limit}, frame()), node_of("less", "Less", {"merge_i", "limit"}),
       node_of("on", "LoopCond", {loop.condition}), number_of("by", 1),
       node_of("grown", "AddV2", {"i", loop.step}), node_of("z", "Identity", {"exit_state"})});
  const Json of_lists = Json::array(
      {node_of("from_in", "Enter", {"from"}, frame()), node_of("filled_in", "Enter", {loop.from}, frame()),
       node_of("to_in", "Enter", {"to"}, frame()),
       node_of("row", "TensorArrayReadV3", {"from_in", loop.read_at, "filled_in"}, element),
       node_of("written", "TensorArrayWriteV3", {"to_in", "i", "made", "list"}),
       node_of("y", "TensorArrayGatherV3", {"to", "places", "exit_list"}, element)});
  for (const Json& each : parts) nodes.push_back(each);
  for (const Json& each : loop.has_lists ? of_lists : Json::array()) nodes.push_back(each);
  for (const Json& each : loop.rest) nodes.push_back(each);
  const Json model = {{"format", "graph-model"},
                      {"generatedBy", "1.15.0"},
                      {"modelTopology", {{"node", nodes}, {"versions", Json::object()}}},
                      {"weightsManifest", Json::array()}};
  return importer_of_bytes(stored_zip({{"net/model.json", model.dump()}}));
}

FrameLoop running_sums() {
  FrameLoop loop;
  loop.rest = Json::array({node_of("made", "AddV2", {"state", "row"})});
  return loop;
}

std::string refusal_of(const FrameLoop& loop) {
  const auto model = loop_of(loop);
  try {
    model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOperatorNotImplemented) << error.message();
    return error.message();
  }
  return "imported";
}

/// What the loop makes of these rows where their number is known, and what one loop makes of any number.
void expect_alike(const FrameLoop& loop, const Tensor& x, const Tensor& y, const Tensor& z) {
  const auto model = loop_of(loop);
  ImportOptions options;
  options.input_shapes["x"] = {x.shape()[0], int64_t{2}};
  const ir::Graph fixed = model->import(options, ops::standard_ops());
  EXPECT_EQ(loops_in(fixed), 0u);
  const ir::Graph open = at_free(*model);
  EXPECT_EQ(loops_in(open), 1u) << ir::print(open);
  for (const ir::Graph& graph : {fixed, ir::bind_symbols(open, {{rows_of(open), x.shape()[0]}})}) {
    const Tensors got = evaluated(graph, {{"x", x}});
    expect_close(got.at("y"), y, 0);
    expect_close(got.at("z"), z, 0);
  }
}

TEST(TensorflowFrames, GoOverRowsInALoop) {
  expect_alike(running_sums(), Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 0}),
               Tensor::from<float>({3, 2}, std::vector<float>{6, 6, 9, 10, 14, 10}),
               Tensor::from<float>({2}, std::vector<float>{14, 10}));
}

TEST(TensorflowFrames, GoOverNoRows) {
  FrameLoop loop = running_sums();
  const Json tensor = {{"dtype", "DT_FLOAT"},
                       {"tensorShape", {{"dim", Json::array({{{"size", "2"}}})}}},
                       {"floatVal", Json::array({3, 4})}};
  loop.before = Json::array({node_of("state_at_first", "Const", {},
                                     {{"dtype", type_of("DT_FLOAT")}, {"value", {{"tensor", tensor}}}})});
  loop.initial = "state_at_first";
  const auto model = loop_of(loop);
  const ir::Graph open = at_free(*model);
  const Tensors got =
      evaluated(ir::bind_symbols(open, {{rows_of(open), 0}}), {{"x", Tensor(DType::kFloat32, {0, 2})}});
  EXPECT_EQ(got.at("y").shape(), (Shape{0, 2}));
  expect_close(got.at("z"), Tensor::from<float>({2}, std::vector<float>{3, 4}), 0);
}

// As tf.scan makes them: the first row is read and set before the loop, which begins with the second.
TEST(TensorflowFrames, GoOnBehindWhatIsSetBefore) {
  FrameLoop loop = running_sums();
  const Json element = {{"dtype", type_of("DT_FLOAT")}};
  loop.before = Json::array({node_of("head", "TensorArrayReadV3", {"from", "zero", "filled"}, element),
                             node_of("begun", "TensorArrayWriteV3", {"to", "zero", "head", "to:1"})});
  loop.initial = "head";
  loop.to = "begun";
  loop.first = "one";
  expect_alike(loop, Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 3, 4, 5, 0}),
               Tensor::from<float>({3, 2}, std::vector<float>{1, 2, 4, 6, 9, 6}),
               Tensor::from<float>({2}, std::vector<float>{9, 6}));
}

TEST(TensorflowFrames, ReadRowsBesideTheIterationsOwn) {
  FrameLoop loop = running_sums();
  loop.read_at = "at";
  loop.before = Json::array({node_of("last", "Sub", {"n", "one"})});
  loop.rest.push_back(node_of("last_in", "Enter", {"last"}, frame()));
  loop.rest.push_back(node_of("at", "Minimum", {"grown", "last_in"}));
  expect_alike(loop, Tensor::from<float>({2, 2}, std::vector<float>{1, 2, 3, 4}),
               Tensor::from<float>({2, 2}, std::vector<float>{6, 8, 9, 12}),
               Tensor::from<float>({2}, std::vector<float>{9, 12}));
}

// Iterations are counted without a list, too: none where the number is below that from which is counted.
TEST(TensorflowFrames, WithoutListsAreCounted) {
  FrameLoop loop;
  loop.has_lists = false;
  loop.rest = Json::array({node_of("made", "AddV2", {"state", "state"})});
  loop.first = "two";
  const auto model = loop_of(loop);
  ImportOptions options;
  options.outputs = {"z"};
  const ir::Graph open = model->import(with_symbols(model->facts(), options), ops::standard_ops());
  ir::verify(open);
  EXPECT_EQ(loops_in(open), 1u) << ir::print(open);
  for (const auto& [rows, want] : std::map<int64_t, float>{{4, 4}, {2, 1}, {1, 1}}) {
    const Tensor x = Tensor::from<float>({rows, 2}, std::vector<float>(static_cast<size_t>(2 * rows), 1));
    const Tensors got = evaluated(ir::bind_symbols(open, {{rows_of(open), rows}}), {{"x", x}});
    expect_close(got.at("z"), Tensor::from<float>({2}, std::vector<float>{want, want}), 0);
  }
}

TEST(TensorflowFrames, ThatEndByTwoNumbersEndByTheFirst) {
  FrameLoop loop = running_sums();
  loop.before = Json::array({node_of("more", "AddV2", {"n", "two"})});
  loop.rest.push_back(node_of("most", "Enter", {"more"}, frame()));
  loop.rest.push_back(node_of("below", "Less", {"merge_i", "most"}));
  loop.rest.push_back(node_of("all", "LogicalAnd", {"below", "less"}));
  loop.condition = "all";
  expect_alike(loop, Tensor::from<float>({2, 2}, std::vector<float>{1, 2, 3, 4}),
               Tensor::from<float>({2, 2}, std::vector<float>{4, 6, 7, 10}),
               Tensor::from<float>({2}, std::vector<float>{7, 10}));
}

// What TensorFlow writes of map_fn, scan and while_loop (tests/fixtures/tensorflow_nets).
TEST(TensorflowFrames, AsTensorflowWritesThem) {
  const auto model = importer_of("tensorflow_nets/frames.pb");
  const ir::Graph open = at_free(*model);
  EXPECT_EQ(loops_in(open), 5u) << ir::print(open);
  const Tensors x = arrays_of("tensorflow_nets/frames.npz", "in."),
                want = arrays_of("tensorflow_nets/frames.npz", "out.");
  const Tensors got = evaluated(ir::bind_symbols(open, {{rows_of(open), x.at("x").shape()[0]}}), x);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [output, tensor] : want) {
    SCOPED_TRACE(output);
    ASSERT_EQ(got.count(output), 1u);
    expect_close(got.at(output), tensor, 1e-5);
  }
}

TEST(TensorflowFrames, OfAnotherKindAreRefused) {
  FrameLoop loop = running_sums();
  EXPECT_EQ(refusal_of(loop), "imported");
  loop.rest.push_back(node_of("far", "Enter", {"two"}, frame()));
  loop.step = "far";
  EXPECT_NE(refusal_of(loop).find("a number that changes is not implemented"), std::string::npos);
  loop = running_sums();
  loop.limit = "two";
  EXPECT_NE(refusal_of(loop), "imported");
}

}  // namespace
}  // namespace tensormill::frontend
