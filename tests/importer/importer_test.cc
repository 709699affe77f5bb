// Models of every format behind one interface: TFLite networks, and graph files of what was imported.
#include "compiler/frontend/importer/importer.h"

#include <filesystem>
#include <fstream>

#include "compiler/frontend/graph_file/graph_file.h"
#include "compiler/frontend/importer/kept_import.h"
#include "compiler/frontend/onnx/free_dims/kept_model.h"
#include "runtime/base/json.h"
#include "tests/expect_error.h"
#include "tests/importer/imported.h"

namespace tensormill::frontend {
namespace {

constexpr double kTolerance = 1e-5;

Tensor values_of(const std::string& kind, const char* name, DType dtype, const Shape& shape) {
  const Json json = parse_json(read_file(fixture_path("tflite/" + kind + ".values.json")));
  Tensor tensor(dtype, shape);
  int64_t at = 0;
  for (const Json& value : json.at(name)) tensor.set_element(at++, value.get<double>());
  return tensor;
}

ImportOptions at_batch(int64_t batch) {
  ImportOptions options;
  options.input_shapes["image"] = {batch, int64_t{8}, int64_t{8}, int64_t{3}};
  return options;
}

Tensor classes_of(const ir::Graph& graph, const std::string& kind) {
  const DType dtype = kind == "int8" ? DType::kInt8 : DType::kFloat32;
  return evaluated(graph, {{"image", values_of("net_" + kind, "image", dtype, {1, 8, 8, 3})}}).at("output_0");
}

TEST(TfliteNetwork, GivesTheNumbersOfItsOwnRuntime) {
  for (const auto& [kind, tolerance] :
       {std::pair("float32", kTolerance), {"float16", 1e-4}, {"dynamic", 2e-2}}) {
    SCOPED_TRACE(kind);
    const auto model = importer_of(std::string("tflite/net_") + kind + ".tflite");
    const Tensor got = classes_of(model->import(at_batch(1), ops::standard_ops()), kind);
    expect_close(got, values_of(std::string("net_") + kind, "classes", DType::kFloat32, {1, 5}), tolerance);
  }
}

TEST(TfliteNetwork, OfIntegersIsWithinAQuantum) {
  const auto model = importer_of("tflite/net_int8.tflite");
  const Tensor got = classes_of(model->import(at_batch(1), ops::standard_ops()), "int8");
  const Tensor want = values_of("net_int8", "classes", DType::kInt8, {1, 5});
  ASSERT_EQ(got.dtype(), DType::kInt8);
  for (int64_t i = 0; i < 5; ++i) EXPECT_LE(std::abs(got.element_as_int(i) - want.element_as_int(i)), 1);
}

TEST(TfliteNetwork, HasNoTransposeBetweenConvolutions) {
  const auto model = importer_of("tflite/net_float32.tflite");
  const ir::Graph graph = model->import(at_batch(1), ops::standard_ops());
  size_t transposes = 0;
  for (const ir::Node& node : graph.nodes()) transposes += node.op == "transpose" ? 1 : 0;
  // Of the picture, whose channels stand last.
  EXPECT_EQ(transposes, 1u) << ir::print(graph);
}

TEST(TfliteNetwork, HasItsBatchAsADim) {
  const auto model = importer_of("tflite/net_float32.tflite");
  ASSERT_EQ(model->facts().inputs.size(), 1u);
  EXPECT_EQ(to_string(model->facts().inputs[0].shape),
            to_string(DimShape{std::string(), int64_t{8}, int64_t{8}, int64_t{3}}));
  const ir::Graph graph = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  EXPECT_EQ(ir::to_string(graph.value(graph.outputs()[0]).type), "f32[image_0,5]");
  EXPECT_TRUE(graph.symbols()->guards().empty());
  expect_error(ErrorCode::kShapeRequired, "dim 0 is free", [&] { model->import({}, ops::standard_ops()); });
}

TEST(TfliteNetwork, ThatAPackageHoldsIsImportedAtItsShapes) {
  const auto model = importer_of("tflite/net_float32.tflite");
  const ir::KeptModel kept = onnx::keep_model(model->source(), {}, false);
  ASSERT_EQ(kept.files.size(), 1u);
  const Tensor& bytes = kept.files[0].second;
  const KeptFiles files{
      {{"", MappedFile::part_of(std::make_shared<Tensor>(bytes),
                                {static_cast<const std::byte*>(bytes.data()), bytes.num_bytes()}, "model")}},
      kept.options,
      {"image_0"},
      {"output_0"}};
  const KeptImport import(files, ops::standard_ops());
  EXPECT_EQ(ir::hash(import.at({3})), ir::hash(model->import(at_batch(3), ops::standard_ops())));
}

// A package of one of a model's signatures opens the model it holds by the same one.
TEST(TfliteNetwork, ThatAPackageHoldsIsImportedByItsSignature) {
  const auto first = importer_of("tflite_ops/free_signatures.tflite");
  for (const char* name : {"", "twice", "product"}) {
    const auto model = make_importer(first->source(), name);
    const ir::Variants variants = model->import_for_package({}, {}, ops::standard_ops(), nullptr);
    ASSERT_TRUE(variants.model.has_value()) << name;
    const Tensor& bytes = variants.model->files.at(0).second;
    const KeptFiles files{
        {{"",
          MappedFile::part_of(std::make_shared<Tensor>(bytes),
                              {static_cast<const std::byte*>(bytes.data()), bytes.num_bytes()}, "model")}},
        variants.model->options,
        variants.free_dims,
        {model->facts().outputs[0].name}};
    const ir::Graph kept =
        KeptImport(files, ops::standard_ops()).at(std::vector<int64_t>(variants.free_dims.size(), 3));
    const bool is_product = std::string_view(name) == "product";
    EXPECT_EQ(kept.inputs().size(), is_product ? 2u : 1u) << name;
    EXPECT_EQ(kept.output_names(), std::vector<std::string>{is_product ? "both" : "y"}) << name;
    ASSERT_EQ(kept.nodes().size(), 1u) << name;
    EXPECT_EQ(kept.nodes()[0].op, is_product ? "mul" : "add") << name;
  }
}

TEST(TfliteNetwork, TellsAllOperatorsThatAreMissing) {
  const auto model = importer_of("tflite_ops/missing.tflite");
  const std::vector<ErrorDetail> missing = model->unsupported();
  ASSERT_EQ(missing.size(), 5u);
  EXPECT_EQ(missing[0].detail, "op CONCAT_EMBEDDINGS version 1, 2 nodes, operands float32[4]");
  EXPECT_EQ(missing[0].pointer, "joined_0");
  EXPECT_EQ(missing[1].detail,
            "op ADD version 99: versions up to 6 are known, 1 node, operands float32[4], float32[4]");
  EXPECT_EQ(missing[2].detail, "op SKIP_GRAM version 1, 1 node, operands float32[4]");
  EXPECT_EQ(missing[3].detail, "op OwnOperator version 1, 1 node, operands float32[4]");
  EXPECT_EQ(missing[4].detail, "op OtherOperator version 1, 1 node, operands float32[4]");
  expect_error(ErrorCode::kOperatorNotImplemented, "5 operators are not supported",
               [&] { model->import({}, ops::standard_ops()); });
}

TEST(TfliteNetwork, OfStepsIsUnrolled) {
  const auto model = importer_of("tflite/lstm.tflite");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  const std::string& input = graph.value(graph.inputs()[0]).name;
  const Tensors got = evaluated(graph, {{input, values_of("lstm", "steps", DType::kFloat32, {1, 6, 4})}});
  expect_close(got.begin()->second, values_of("lstm", "state", DType::kFloat32, {1, 3}), kTolerance);
}

TEST(TfliteNetwork, ChoosesByDataBetweenBranches) {
  const auto model = importer_of("tflite/control_flow.tflite");
  expect_error(ErrorCode::kOperatorNotImplemented, "how often the loop goes round",
               [&] { model->import({}, ops::standard_ops()); });
  ImportOptions options;
  options.input_values.insert_or_assign("n", Tensor::from<int32_t>({}, std::vector<int32_t>{2}));
  const ir::Graph graph = model->import(options, ops::standard_ops());
  const auto at = [&](const std::vector<float>& x) {
    return evaluated(graph, {{"x", Tensor::from<float>({2, 2}, x)}}).at("y");
  };
  // Twice x where its sum is above 0, else x - 1; then squared twice.
  expect_close(at({1, 0, 0, 1}), Tensor::from<float>({2, 2}, std::vector<float>{16, 0, 0, 16}), 0);
  expect_close(at({-1, 1, 1, -1}), Tensor::from<float>({2, 2}, std::vector<float>{16, 0, 0, 16}), 0);
}

TEST(TfliteNetwork, ThatIsCutOffIsRefusedAsWhatItIs) {
  const std::string bytes = read_file(fixture_path("tflite/net_int8.tflite")).substr(0, 2000);
  ModelSource source;
  source.model = MappedFile::part_of(nullptr, std::as_bytes(std::span(bytes)), "model");
  expect_error(ErrorCode::kInvalidModel, "TFLite model: ", [&] { make_importer(std::move(source)); });
}

class GraphFiles : public testing::Test {
protected:
  ~GraphFiles() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

private:
  const std::string folder_ = [] {
    std::string name = testing::TempDir() + "graph_file_XXXXXX";
    TM_CHECK(::mkdtemp(name.data()) != nullptr, "no folder");
    return name;
  }();
};

TEST_F(GraphFiles, AreTheModelThatWasImported) {
  const auto model = importer_of("tflite/net_float32.tflite");
  graph_file::write(path("net.tmg"), model->import(with_symbols(model->facts(), {}), ops::standard_ops()));
  const auto again = open_importer(path("net.tmg"), Links::kRefused);
  EXPECT_EQ(again->format(), "tmg");
  EXPECT_EQ(ir::hash(again->import(at_batch(1), ops::standard_ops())),
            ir::hash(model->import(at_batch(1), ops::standard_ops())));
  expect_error(ErrorCode::kInvalidArgument, "the model has 8", [&] {
    ImportOptions wide = at_batch(1);
    wide.input_shapes["image"][2] = int64_t{9};
    again->import(wide, ops::standard_ops());
  });
}

TEST_F(GraphFiles, HoldForMapsOfAnySize) {
  const auto model = importer_of("tflite/any_size.tflite");
  const ir::Graph open = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  EXPECT_FALSE(open.value(open.outputs()[0]).type.shape.is_constant());
  graph_file::write(path("any.tmg"), open);
  const auto again = open_importer(path("any.tmg"), Links::kRefused);
  for (const Json& each : parse_json(read_file(fixture_path("tflite/any_size.values.json")))) {
    const auto tensor = [&](const char* name, const char* shape) {
      return Tensor::from<float>(each.at(shape).get<Shape>(), each.at(name).get<std::vector<float>>());
    };
    const Tensor image = tensor("image", "shape");
    ImportOptions options;
    options.input_shapes["image"] = DimShape(image.shape().begin(), image.shape().end());
    for (const Importer* importer : {model.get(), again.get()}) {
      const ir::Graph graph = importer->import(options, ops::standard_ops());
      expect_close(evaluated(graph, {{"image", image}}).at("output_0"), tensor("map", "map_shape"),
                   kTolerance);
    }
  }
}

TEST_F(GraphFiles, MayBeTextAlone) {
  std::ofstream(path("text.tmg"))
      << "graph \"scaled\" dims(N: 3) (%x: f32[N,4]) {\n  %two = const f32[] {2.0}\n"
         "  %y: f32[N,4] = mul(%x, %two)\n  return %y\n}\n";
  const auto model = open_importer(path("text.tmg"), Links::kRefused);
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{4}};
  const Tensors got =
      evaluated(model->import(options, ops::standard_ops()),
                {{"x", Tensor::from<float>({2, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8})}});
  expect_close(got.at("y"), Tensor::from<float>({2, 4}, std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16}), 0);
}

TEST_F(GraphFiles, HoldWhatARunBinds) {
  std::ofstream(path("found.tmg"))
      << R"(graph "found" dims(N: 32) run_dims (run0: 9 from 0 to "N") (%x: f32[N]) {
  %zero = const f32[1] {0.0}
  %above: bool[N] = greater(%x, %zero)
  %places: i64[1,N], %count: i64[1] = find_nonzero(%above)
  %bound: i64[1] = bind_extents(%count) {extents: dims[run0]}
  %there: i64[1,run0] = slice(%places) {extents: dims[1, run0], starts: dims[0, 0], steps: ints[1, 1]}
  return %there
}
)";
  const auto model = open_importer(path("found.tmg"), Links::kRefused);
  const ir::Graph open = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  graph_file::write(path("again.tmg"), open);
  const auto again = open_importer(path("again.tmg"), Links::kRefused);
  EXPECT_EQ(ir::hash(again->import(with_symbols(again->facts(), {}), ops::standard_ops())), ir::hash(open));
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{5}};
  const ir::Graph graph = again->import(options, ops::standard_ops());
  ASSERT_EQ(graph.symbols()->run_time_symbols().size(), 1u);
  const ir::RunSymbol& symbol = graph.symbols()->run_time_symbols()[0];
  EXPECT_EQ(symbol.high->to_string(), "5");
  EXPECT_LE(graph.symbols()->hints().at(symbol.name), 5);
  EXPECT_EQ(to_string(graph.value(graph.outputs()[0]).type.shape), "[1,run0]");
  const ir::Variants variants = again->import_for_package(
      options, {}, ops::standard_ops(), [](const ir::SymbolicModel&, std::string*) { return true; });
  EXPECT_TRUE(variants.graphs.empty() && variants.symbolic) << "a package of it has a plan";
}

TEST_F(GraphFiles, CheckWhatTheImportAssumed) {
  ir::Graph graph(ops::standard_ops());
  graph.set_symbols(std::make_shared<ir::SymbolTable>());
  const ir::SymInt n = graph.symbols()->add("N", 4);
  const ir::ValueId x = graph.add_input("x", {DType::kFloat32, {n, 2}});
  const ir::SymbolTable::Origin origin(graph.symbols().get(), "halves");
  ASSERT_TRUE(ir::demand(ir::Relation::kLessEqual, n, 5));
  graph.set_outputs(graph.add_node("relu", {x}, {}, {"halves"}, {"y"}));
  graph_file::write(path("guarded.tmg"), graph);
  const auto model = open_importer(path("guarded.tmg"), Links::kRefused);
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{5}, int64_t{2}};
  EXPECT_EQ(model->import(options, ops::standard_ops()).nodes().size(), 1u);
  options.input_shapes["x"] = {int64_t{6}, int64_t{2}};
  expect_error(ErrorCode::kInvalidModel, "halves", [&] { model->import(options, ops::standard_ops()); });
}

TEST_F(GraphFiles, ThatAreBrokenAreRefused) {
  const auto model = importer_of("tflite/net_float32.tflite");
  graph_file::write(path("net.tmg"), model->import(at_batch(1), ops::standard_ops()));
  const std::string whole = read_file(path("net.tmg"));
  for (const size_t size : {size_t{30}, size_t{127}, size_t{500}, whole.size() - 1}) {
    write_file(path("cut.tmg"), whole.substr(0, size));
    expect_error(ErrorCode::kInvalidModel, "", [&] { open_importer(path("cut.tmg"), Links::kRefused); });
  }
  for (size_t at = 24; at < whole.size(); at += 97) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    write_file(path("changed.tmg"), changed);
    try {
      open_importer(path("changed.tmg"), Links::kRefused)->import({}, ops::standard_ops());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidModel) << error.message();
    }
  }
}

}  // namespace
}  // namespace tensormill::frontend
