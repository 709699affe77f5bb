// Networks of Caffe2: their files, what their inputs are, what is refused, and broken copies of them.
// (Operators are caffe2_ops_test.cc's.)
#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/frontend/formats/detect.h"
#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/imported.h"
#include "tests/importer/net_model.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kCopiesOfNets = is_sweep() ? 2000 : 200;
const std::string kInfoOfX = R"({"x":[1,[2,3]]})";

/// y = relu(x + w), the Relu in place.
std::string relu_init() { return nets::net(nets::fill("w", {3}, {1, -2, 3})); }
std::string relu_predict() {
  return nets::net(nets::op("Add", {"x", "w"}, {"y"}) + nets::op("Relu", {"y"}, {"y"}), {"x", "w"}, {"y"});
}

ir::Graph imported_nets(const std::string& bytes, const ImportOptions& options = {}) {
  return importer_of_bytes(bytes)->import(options, ops::standard_ops());
}

/// A net of these operators over x [2,3] alone.
std::string net_over_x(const std::string& operators, const std::string& init = "") {
  return nets::model(nets::net(init), nets::net(operators, {"x"}, {"y"}), kInfoOfX);
}

void refuse_net(const std::string& bytes, ErrorCode code, const std::string& text) {
  SCOPED_TRACE(text);
  expect_error(code, text, [&] { imported_nets(bytes); });
}

Tensors relu_inputs() { return {{"x", Tensor::from<float>({2, 3}, std::vector<float>{0, 1, 2, -1, 4, -5})}}; }

void expect_relu_numbers(const ir::Graph& graph) {
  ir::verify(graph);
  const Tensor got = evaluated(graph, relu_inputs()).at("y");
  expect_same(got, Tensor::from<float>({2, 3}, std::vector<float>{1, 0, 5, 0, 2, 0}), 0);
}

/// A folder of files, which goes with the object.
class NetFolder {
public:
  explicit NetFolder(const std::vector<std::pair<std::string, std::string>>& files) {
    char name[] = "/tmp/tensormill_caffe2_XXXXXX";
    TM_CHECK(mkdtemp(name) != nullptr, "no folder");
    path_ = name;
    for (const auto& [file, data] : files) std::ofstream(path_ / file) << data;
  }
  NetFolder(const NetFolder&) = delete;
  NetFolder& operator=(const NetFolder&) = delete;
  ~NetFolder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& file = "") const { return (path_ / file).string(); }

private:
  std::filesystem::path path_;
};

TEST(Caffe2, NetworksAreImportedAsFoldersArchivesAndFiles) {
  const std::string zip = nets::model(relu_init(), relu_predict(), kInfoOfX);
  EXPECT_EQ(detect_format(zip), FileFormat::kCaffe2);
  expect_relu_numbers(imported_nets(zip));
  const NetFolder folder(
      {{"init_net.pb", relu_init()}, {"predict_net.pb", relu_predict()}, {"value_info.json", kInfoOfX}});
  EXPECT_EQ(detect_path(folder.path()), FileFormat::kCaffe2);
  EXPECT_EQ(detect_path(folder.path("predict_net.pb")), FileFormat::kCaffe2);
  for (const char* file : {"", "predict_net.pb", "init_net.pb"}) {
    SCOPED_TRACE(file);
    const auto model = open_importer(folder.path(file), Links::kRefused);
    EXPECT_EQ(model->format(), "caffe2");
    expect_relu_numbers(model->import({}, ops::standard_ops()));
    // What a package of this project holds of it is read again.
    expect_relu_numbers(make_importer(model->kept_source())->import({}, ops::standard_ops()));
  }
}

TEST(Caffe2, NetsMayHaveNamesOfTheirOwn) {
  const NetFolder folder({{"relu_init.pb", relu_init()}, {"relu_predict.pb", relu_predict()}});
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{3}};
  const std::string predict = folder.path("relu_predict.pb");
  const std::optional<FileFacts> facts = read_path_facts(predict, detect_path(predict));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->parameters, 3);
  for (const char* file : {"relu_init.pb", "relu_predict.pb"})
    expect_relu_numbers(
        open_importer(folder.path(file), Links::kRefused)->import(options, ops::standard_ops()));
}

TEST(Caffe2, ANetAloneIsNoModel) {
  expect_error(ErrorCode::kInvalidModel, "Caffe2 network: there is no init_net.pb",
               [&] { importer_of_bytes(relu_predict()); });
  const NetFolder folder({{"predict_net.pb", relu_predict()}});
  expect_error(ErrorCode::kInvalidModel, "there is no init_net.pb",
               [&] { open_importer(folder.path("predict_net.pb"), Links::kRefused); });
}

TEST(Caffe2, ANetWithoutOutputsIsNoModel) {
  expect_error(ErrorCode::kInvalidModel, "predict_net.pb: the net has no outputs",
               [&] { importer_of_bytes(nets::model(relu_init(), nets::net(""))); });
  // What it does not name, its last operator makes.
  const std::string predict = nets::net(nets::op("Add", {"x", "w"}, {"s"}) + nets::op("Relu", {"s"}, {"y"}));
  expect_relu_numbers(imported_nets(nets::model(relu_init(), predict, kInfoOfX)));
}

TEST(Caffe2, SaysWhatIsInAFile) {
  const auto model = importer_of_bytes(nets::model(relu_init(), relu_predict(), kInfoOfX));
  EXPECT_EQ(model->facts().ops, (std::map<std::string, int64_t>{{"Add", 1}, {"Relu", 1}}));
  EXPECT_EQ(model->facts().parameters, 3);
  EXPECT_EQ(model->facts().weight_bytes, 12);
  EXPECT_EQ(model->facts().producer, "Caffe2 2 operators, 1 fills");
  ASSERT_EQ(model->facts().inputs.size(), 1u);
  EXPECT_EQ(model->facts().inputs[0].shape, (DimShape{int64_t{2}, int64_t{3}}));
  EXPECT_EQ(model->facts().outputs.at(0).shape, (DimShape{int64_t{2}, int64_t{3}}));
  EXPECT_TRUE(model->unsupported().empty());
}

TEST(Caffe2, ShapesOfInputsAreAskedFor) {
  const auto model = importer_of_bytes(nets::model(relu_init(), relu_predict()));
  expect_error(ErrorCode::kShapeRequired, "give input_shapes of \"x\", or value_info.json",
               [&] { model->import({}, ops::standard_ops()); });
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{3}};
  expect_relu_numbers(model->import(options, ops::standard_ops()));
}

TEST(Caffe2, ConvolutionsSayWhatTheirInputsHave) {
  const std::string init = nets::net(nets::fill("w", {2, 3, 1, 1}, {1, 0, 0, 0, 1, 0}));
  const auto model_of = [&](const std::string& order, const std::string& weights) {
    const std::string conv =
        nets::op("Conv", {"x", "w"}, {"y"}, nets::integer("kernel", 1) + nets::text("order", order));
    return importer_of_bytes(nets::model(weights, nets::net(conv, {"x", "w"}, {"y"})));
  };
  const Dim open = std::string();
  const auto first = model_of("NCHW", init);
  EXPECT_EQ(first->facts().inputs.at(0).shape, (DimShape{open, Dim(int64_t{3}), open, open}));
  EXPECT_EQ(first->facts().outputs.at(0).shape.size(), 4u);
  const auto last = model_of("NHWC", nets::net(nets::fill("w", {2, 1, 1, 3}, {1, 0, 0, 0, 1, 0})));
  EXPECT_EQ(last->facts().inputs.at(0).shape, (DimShape{open, open, open, Dim(int64_t{3})}));
  const ir::Graph symbolic = first->import(with_symbols(first->facts(), {}), ops::standard_ops());
  EXPECT_FALSE(symbolic.value(symbolic.outputs()[0]).type.shape[0].is_constant());
}

TEST(Caffe2, PlaceHoldersAreInputs) {
  // What an exporter fills x with; the same 0 that is no first operand is a weight.
  const std::string init = nets::net(nets::fill("x", {1}, {0}) + nets::fill("b", {1}, {0}));
  const std::string predict = nets::net(nets::op("Add", {"x", "b"}, {"y"}), {"x", "b"}, {"y"});
  const auto model = importer_of_bytes(nets::model(init, predict));
  ASSERT_EQ(model->facts().inputs.size(), 1u);
  EXPECT_EQ(model->facts().inputs[0].name, "x");
  EXPECT_EQ(model->facts().parameters, 1);
  // Another number is a weight, unless value_info.json says that it is an input.
  const std::string other = nets::net(nets::fill("x", {1}, {4}) + nets::fill("b", {1}, {0}));
  EXPECT_TRUE(importer_of_bytes(nets::model(other, predict))->facts().inputs.empty());
  EXPECT_EQ(importer_of_bytes(nets::model(other, predict, kInfoOfX))->facts().inputs.size(), 1u);
}

TEST(Caffe2, ValueInfoIsChecked) {
  const auto fails = [](const std::string& info, const std::string& text) {
    SCOPED_TRACE(info);
    expect_error(ErrorCode::kInvalidModel, "value_info.json: " + text,
                 [&] { importer_of_bytes(nets::model(relu_init(), relu_predict(), info)); });
  };
  fails("{", "");
  fails("[]", "it is no object");
  fails(R"({"x":[1]})", "\"x\" is not [type, [dims...]]");
  fails(R"({"x":[99,[1]]})", "\"x\" has the type 99");
  fails(R"({"x":[1,[-2]]})", "\"x\" has a dim that is no extent");
  fails(R"({"x":[1,["n"]]})", "\"x\" has a dim that is no extent");
}

TEST(Caffe2, AllOperatorsThatAreMissingAreNamed) {
  const std::string bytes = net_over_x(nets::op("Fancy", {"x"}, {"a"}) + nets::op("Odd", {"a"}, {"b"}) +
                                       nets::op("Fancy", {"b"}, {"y"}));
  const auto model = importer_of_bytes(bytes);
  const std::vector<ErrorDetail> details = model->unsupported();
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].pointer, "a");
  EXPECT_EQ(details[0].detail, "op Fancy, 2 nodes");
  refuse_net(bytes, ErrorCode::kOperatorNotImplemented, "2 operators are not supported: op Fancy, 2 nodes");
  try {
    model->import({}, ops::standard_ops());
  } catch (const Error& error) {
    EXPECT_NE(refused_graph(*model, error).find("\"refused\""), std::string::npos);
  }
}

TEST(Caffe2, RandomFillsAreRefused) {
  for (const char* type : {"XavierFill", "GaussianFill", "MSRAFill"}) {
    const std::string init = nets::op(type, {}, {"w"}, nets::integers("shape", {3}));
    refuse_net(nets::model(nets::net(init), relu_predict(), kInfoOfX), ErrorCode::kOperatorNotImplemented,
               "op " + std::string(type) + ": its numbers are drawn when the net runs");
  }
}

TEST(Caffe2, NetsInsideOfNetsAreRefused) {
  refuse_net(net_over_x(nets::op("RecurrentNetwork", {"x"}, {"y"})), ErrorCode::kOperatorNotImplemented,
             "op RecurrentNetwork: it runs a net that is an argument of it");
}

TEST(Caffe2, FormsOfDetectorsThatAreNotImplementedAreRefused) {
  const auto refuse = [](const std::string& operators, const std::string& text) {
    refuse_net(net_over_x(operators), ErrorCode::kOperatorNotImplemented, text);
  };
  refuse(nets::op("BBoxTransform", {"x", "x", "x"}, {"y"}, nets::integer("rotated", 1)),
         "op BBoxTransform: rotated: boxes with an angle");
  refuse(nets::op("BoxWithNMSLimit", {"x", "x"}, {"y", "b", "c"}, nets::integer("soft_nms_enabled", 1)),
         "op BoxWithNMSLimit: soft_nms_enabled: scores that fall by overlaps");
  refuse(nets::op("RoIPool", {"x", "x"}, {"y", "places"}), "op RoIPool: is_test: the places");
  refuse_net(net_over_x(nets::op("BBoxTransform", {"x", "x", "x"}, {"y"})), ErrorCode::kInvalidModel,
             "boxes of shape [2,3]");
}

TEST(Caffe2, ArgumentsThatNobodyReadsAreRefused) {
  refuse_net(net_over_x(nets::op("Relu", {"x"}, {"y"}, nets::integer("slope", 1))),
             ErrorCode::kOperatorNotImplemented, "op Relu: slope: the argument is not implemented");
  refuse_net(net_over_x(nets::op("Relu", {"x", "x"}, {"y"})), ErrorCode::kOperatorNotImplemented,
             "op Relu: operand 1: the operand is not implemented");
  // How and where it runs is nobody's business.
  ir::verify(
      imported_nets(net_over_x(nets::op("Relu", {"x"}, {"y"}, nets::integer("exhaustive_search", 1)))));
}

TEST(Caffe2, OperatorsOfTrainingAreRefused) {
  refuse_net(net_over_x(nets::op("Dropout", {"x"}, {"y", "mask"})), ErrorCode::kOperatorNotImplemented,
             "op Dropout: is_test: elements are dropped for training");
  const std::string init = nets::fill("w", {3}, {1, 1, 1});
  refuse_net(net_over_x(nets::op("SpatialBN", {"x", "w", "w", "w", "w"}, {"y"}), init),
             ErrorCode::kOperatorNotImplemented, "op SpatialBN: is_test");
}

TEST(Caffe2, WrongOperatorsAreErrors) {
  const auto fails = [](const std::string& operators, const std::string& text, const std::string& init = "") {
    refuse_net(net_over_x(operators, init), ErrorCode::kInvalidModel, text);
  };
  fails(nets::op("Relu", {}, {"y"}), "predict_net.pb, operator 0, Relu \"y\": operand 0 is missing");
  fails(nets::op("Relu", {"x"}, {}), "output 0 is missing");
  fails(nets::op("Relu", {"x"}, {"z"}), "nothing makes the output \"y\"");
  fails(nets::op("Transpose", {"x"}, {"y"}, nets::integers("axes", {0, 5})), "axis 5 is outside");
  fails(nets::op("Transpose", {"x"}, {"y"}, nets::integers("axes", {0, 0})), "");
  fails(nets::op("Reshape", {"x"}, {"y", "s"}, nets::integers("shape", {4, -1})), "cannot become");
  fails(nets::op("Conv", {"x", "w"}, {"y"}), "operand 0 has rank 2",
        nets::fill("w", {1, 3, 1, 1}, {1, 1, 1}));
  fails(nets::op("MaxPool", {"x"}, {"y"}), "operand 0 has rank 2");
  fails(nets::op("Transpose", {"x"}, {"y"}, nets::integers("axes", {0})), "argument axes has 1 axes");
  fails(nets::op("FC", {"x"}, {"y"}), "predict_net.pb, operator 0, FC \"y\": operand 1 is missing");
  fails(nets::op("Add", {"x", "w"}, {"y"}, nets::integer("broadcast", 1) + nets::integer("axis", 1)),
        "from axis 1 on", nets::fill("w", {2}, {1, 1}));
  fails(nets::op("Add", {"x", "w"}, {"y"}, nets::integer("broadcast", 1) + nets::integer("axis", INT64_MAX)),
        "from axis 9223372036854775807 on", nets::fill("w", {2}, {1, 1}));
  fails(nets::op("TopK", {"x"}, {"y"}, nets::integer("k", 0)), "k is 0");
  fails(nets::op("Relu", {"x"}, {"y"}), "a fill of shape [2] has 1 values", nets::fill("w", {2}, {1}));
  fails(nets::op("Relu", {"x"}, {"y"}), "argument shape is none", nets::fill("w", {-1}, {1}));
  fails(nets::op("Int8Relu", {"x"}, {"y"}), "is no tensor of integers that stand for real numbers");
}

TEST(Caffe2, TopKFillsUpWhatIsNotThere) {
  const std::string top =
      nets::op("TopK", {"x"}, {"y", "places", "all"}, nets::integer("k", 4) + nets::integer("axis", 1));
  const ir::Graph graph =
      imported_nets(nets::model(nets::net(""), nets::net(top, {"x"}, {"y", "places", "all"}), kInfoOfX));
  ir::verify(graph);
  const Tensors got = evaluated(graph, relu_inputs());
  expect_same(got.at("y"), Tensor::from<float>({2, 4}, std::vector<float>{2, 1, 0, 0, 4, -1, -5, 0}), 0);
  expect_same(got.at("places"), Tensor::from<int64_t>({2, 4}, std::vector<int64_t>{2, 1, 0, -1, 1, 0, 2, -1}),
              0);
  expect_same(got.at("all"), Tensor::from<int64_t>({8}, std::vector<int64_t>{2, 1, 0, -1, 4, 3, 5, -1}), 0);
}

TEST(Caffe2, IntegersAreJoinedAlongTheFirstAxisUnlessAnOrderIsSaid) {
  const std::string scale =
      nets::message(5, nets::message(1, "Y_scale") + nets::real(2, 0.5F)) + nets::integer("Y_zero_point", 10);
  const auto shape_of = [&](const std::string& arguments) {
    const std::string joined = nets::op("Int8Quantize", {"x"}, {"q"}, scale) +
                               nets::op("Int8Concat", {"q", "q"}, {"j"}, scale + arguments) +
                               nets::op("Int8Dequantize", {"j"}, {"y"});
    const ir::Graph graph = imported_nets(net_over_x(joined));
    return Shape(graph.value(graph.outputs()[0]).type.shape);
  };
  EXPECT_EQ(shape_of(""), (Shape{4, 3}));
  EXPECT_EQ(shape_of(nets::text("order", "NHWC")), (Shape{2, 6}));
}

TEST(Caffe2, ManySamplesOfARegionAreRefused) {
  using nets::integer;
  const std::string align =
      nets::op("RoIAlign", {"x", "b"}, {"y"},
               integer("pooled_h", 4096) + integer("pooled_w", 4096) + integer("sampling_ratio", 4096));
  refuse_net(
      nets::model(nets::net(""), nets::net(align, {"x", "b"}, {"y"}), R"({"x":[1,[1,1,4,4]],"b":[1,[1,4]]})"),
      ErrorCode::kOperatorNotImplemented, "op RoIAlign: sampling_ratio: more than 4096 samples of a side");
}

TEST(Caffe2, SpellingsOfWindowsAgree) {
  const std::string init = nets::net(nets::fill("w", {1, 1, 3, 3}, std::vector<float>(9, 1)));
  const auto shape_of = [&](const std::string& arguments) {
    const std::string predict = nets::net(nets::op("Conv", {"x", "w"}, {"y"}, arguments), {"x", "w"}, {"y"});
    const ir::Graph graph = imported_nets(nets::model(init, predict, R"({"x":[1,[1,1,7,9]]})"));
    return Shape(graph.value(graph.outputs()[0]).type.shape);
  };
  using nets::integer;
  using nets::integers;
  const Shape want{1, 1, 4, 5};
  EXPECT_EQ(shape_of(integer("kernel", 3) + integer("stride", 2) + integer("pad", 1)), want);
  EXPECT_EQ(
      shape_of(integers("kernels", {3, 3}) + integers("strides", {2, 2}) + integers("pads", {1, 1, 1, 1})),
      want);
  EXPECT_EQ(shape_of(integer("kernel_h", 3) + integer("kernel_w", 3) + integer("stride_h", 2) +
                     integer("stride_w", 2) + integer("pad_t", 1) + integer("pad_l", 1) +
                     integer("pad_b", 1) + integer("pad_r", 1)),
            want);
  EXPECT_EQ(shape_of(integer("kernel", 3) + integer("stride", 2) + integer("legacy_pad", 2)), want);
}

TEST(Caffe2, PoolsOfFreeExtentsFollowCaffesRule) {
  const std::string pool =
      nets::op("MaxPool", {"x"}, {"y"},
               nets::integer("kernel", 3) + nets::integer("stride", 2) + nets::integer("legacy_pad", 3));
  const auto model = importer_of_bytes(
      nets::model(nets::net(""), nets::net(pool, {"x"}, {"y"}), R"({"x":[1,[1,1,-1,-1]]})"));
  const ir::Graph graph = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(graph);
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{1}, int64_t{1}, int64_t{6}, int64_t{7}};
  const ir::Graph fixed = model->import(options, ops::standard_ops());
  EXPECT_EQ(Shape(fixed.value(fixed.outputs()[0]).type.shape), (Shape{1, 1, 3, 3}));
}

TEST(Caffe2, CutOffFilesAreErrors) {
  const std::string predict = relu_predict(), init = relu_init();
  const std::set<ErrorCode> refusals = {ErrorCode::kInvalidModel, ErrorCode::kNotSupported,
                                        ErrorCode::kOperatorNotImplemented};
  size_t refused = 0;
  for (const bool cuts_init : {true, false}) {
    const std::string& whole = cuts_init ? init : predict;
    for (size_t size = 0; size < whole.size(); ++size) {
      SCOPED_TRACE(size);
      const std::string part = whole.substr(0, size);
      try {
        // Between two fields a part is a net as well.
        ir::verify(imported_nets(cuts_init ? nets::model(part, predict, R"({"x":[1,[2,3]],"w":[1,[3]]})")
                                           : nets::model(init, part, kInfoOfX)));
      } catch (const Error& error) {
        EXPECT_EQ(refusals.count(error.code()), 1u) << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, init.size());
  expect_error(ErrorCode::kInvalidModel, "init_net.pb: at byte ",
               [&] { imported_nets(nets::model(init.substr(0, init.size() - 2), predict, kInfoOfX)); });
}

/// Operators with arguments of all forms, of which broken copies are made.
std::string rich_nets() {
  using nets::integer;
  using nets::integers;
  const std::string operators =
      nets::op("Conv", {"x", "w", "b"}, {"c"},
               integer("kernel", 3) + integer("pad", 1) + nets::text("order", "NCHW")) +
      nets::op("Relu", {"c"}, {"c"}) +
      nets::op("MaxPool", {"c"}, {"p"},
               integer("kernel", 3) + integer("stride", 2) + integer("legacy_pad", 3)) +
      nets::op("Concat", {"p", "p"}, {"j", "split"}, integer("axis", 1)) +
      nets::op("Slice", {"j"}, {"s"}, integers("starts", {0, 1, 0, 0}) + integers("ends", {-1, 3, -1, -1})) +
      nets::op("Transpose", {"s"}, {"t"}, integers("axes", {0, 2, 3, 1})) +
      nets::op("Reshape", {"t"}, {"r", "old"}, integers("shape", {0, -1})) +
      nets::op("Split", {"r"}, {"u", "v"}, integer("axis", 1)) + nets::op("Softmax", {"u"}, {"y"});
  return nets::net(operators, {"x", "w", "b"}, {"y"});
}

TEST(Caffe2, BrokenCopiesAreImportedOrRefused) {
  const std::string init =
      nets::net(nets::fill("w", {2, 1, 3, 3}, std::vector<float>(18, 0.5F)) + nets::fill("b", {2}, {1, -1}));
  const std::string predict = rich_nets(), info = R"({"x":[1,[1,1,6,6]]})";
  ir::verify(imported_nets(nets::model(init, predict, info)));
  const auto import_copy = [&](size_t, std::mt19937& random) {
    std::string first = init, second = predict;
    for (size_t k = 0; k < 1 + random() % 3; ++k) {
      std::string& changed = random() % 4 == 0 ? first : second;
      changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
    }
    ir::verify(imported_nets(nets::model(first, second, info)));
  };
  expect_imported_or_refused(kCopiesOfNets, 29, import_copy, {ErrorCode::kShapeRequired});
}

}  // namespace
}  // namespace tensormill::frontend
