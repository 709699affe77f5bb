// Models of MXNet: both of their files in all their versions, what is refused, and broken copies of them.
// (Operators are mxnet_ops_test.cc's.)
#include <filesystem>
#include <fstream>

#include "compiler/frontend/formats/detect.h"
#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/imported.h"
#include "tests/importer/mxnet_model.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

namespace mx = mxnet_model;

const size_t kCopiesOfSymbols = is_sweep() ? 2000 : 200;

const std::vector<mx::Array> kArrays = {{"arg:fc_weight", {2, 3}, {1, 0, -1, 2, 1, 0}},
                                        {"arg:fc_bias", {2}, {0.5F, -10}}};

/// relu(x W + b) and a loss, whose label is no input; `attrs`: what the member of attributes is called.
std::string small_symbol(const std::string& attrs = "attrs", const std::string& data = "") {
  return mx::symbol(
      {mx::node("null", "data", "[]", data), mx::node("null", "fc_weight"), mx::node("null", "fc_bias"),
       mx::node("FullyConnected", "fc", "[[0,0,0],[1,0],[2,0,0]]",
                R"(,")" + attrs + R"(":{"num_hidden":"2"},"backward_source_id":-1)"),
       mx::node("Activation", "relu", "[[3,0]]", R"(,")" + attrs + R"(":{"act_type":"relu"})"),
       mx::node("null", "out_label"), mx::node("LinearRegressionOutput", "out", "[[4,0,0],[5,0,0]]")},
      "[[6,0]]");
}

std::string small_model(int version = 2) {
  return mx::archive(small_symbol(), mx::parameters(kArrays, version));
}

ir::Graph imported_at(const Importer& model, const DimShape& shape) {
  ImportOptions options;
  options.input_shapes["data"] = shape;
  return model.import(options, ops::standard_ops());
}

void expect_symbol_numbers(const Importer& model) {
  const ir::Graph graph = imported_at(model, {int64_t{1}, int64_t{3}});
  ir::verify(graph);
  const Tensor x = Tensor::from<float>({1, 3}, std::vector<float>{3, 1, 2});
  expect_same(evaluated(graph, {{"data", x}}).at("out_output"),
              Tensor::from<float>({1, 2}, std::vector<float>{1.5F, 0}), 0);
}

/// A folder of a model, which goes with the object.
class ModelFolder {
public:
  ModelFolder() {
    char name[] = "/tmp/tensormill_mxnet_XXXXXX";
    TM_CHECK(mkdtemp(name) != nullptr, "no folder");
    path_ = name;
    std::ofstream(path_ / "net-symbol.json") << small_symbol();
    std::ofstream(path_ / "net-0000.params") << "an earlier epoch";
    std::ofstream(path_ / "net-0012.params") << mx::parameters(kArrays);
    std::ofstream(path_ / "other-0013.params") << "another model's";
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

TEST(Mxnet, ModelsAreImportedAsFoldersZipsAndFiles) {
  EXPECT_EQ(detect_format(small_model()), FileFormat::kMxnet);
  const auto zipped = importer_of_bytes(small_model());
  EXPECT_EQ(zipped->format(), "mxnet");
  expect_symbol_numbers(*zipped);
  const ModelFolder folder;
  EXPECT_EQ(detect_path(folder.path()), FileFormat::kMxnet);
  // Of several epochs the last one counts.
  const auto whole = open_importer(folder.path(), Links::kRefused);
  const auto alone = open_importer(folder.path() + "/net-symbol.json", Links::kRefused);
  EXPECT_EQ(whole->digest(), alone->digest());
  expect_symbol_numbers(*whole);
  expect_symbol_numbers(*alone);
  // What a package of this project holds of it is read again.
  ModelSource kept = whole->kept_source();
  expect_symbol_numbers(*make_importer(std::move(kept)));
  const std::optional<FileFacts> facts = read_path_facts(folder.path(), FileFormat::kMxnet);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->parameters, 8);
}

TEST(Mxnet, AllVersionsOfBothFilesAreRead) {
  for (const int version : {0, 1, 2, 3}) {
    SCOPED_TRACE(version);
    expect_symbol_numbers(*importer_of_bytes(small_model(version)));
  }
  for (const char* attributes : {"attr", "param", "attrs"}) {
    SCOPED_TRACE(attributes);
    expect_symbol_numbers(*importer_of_bytes(mx::archive(small_symbol(attributes), mx::parameters(kArrays))));
  }
}

TEST(Mxnet, SaysWhatIsInAFile) {
  const auto model = importer_of_bytes(small_model());
  EXPECT_EQ(model->facts().ops,
            (std::map<std::string, int64_t>{
                {"Activation", 1}, {"FullyConnected", 1}, {"LinearRegressionOutput", 1}}));
  EXPECT_EQ(model->facts().parameters, 8);
  EXPECT_EQ(model->facts().weight_bytes, 32);
  EXPECT_EQ(model->facts().producer, "MXNet 1.9.1");
  ASSERT_EQ(model->facts().inputs.size(), 1u);
  EXPECT_EQ(model->facts().inputs[0].name, "data");
  ASSERT_EQ(model->facts().outputs.size(), 1u);
  EXPECT_EQ(model->facts().outputs[0].name, "out_output");
  EXPECT_TRUE(model->unsupported().empty());
}

TEST(Mxnet, ShapesOfInputsComeFromTheSymbolItsReadersOrTheCaller) {
  const auto said = importer_of_bytes(
      mx::archive(small_symbol("attrs", R"j(,"attrs":{"__shape__":"(0, 3)","__dtype__":"0"})j"),
                  mx::parameters(kArrays)));
  EXPECT_EQ(said->facts().inputs.at(0).shape, (DimShape{std::string(), int64_t{3}}));
  expect_error(ErrorCode::kInvalidArgument, "the rank 3, the model has 2", [&] {
    imported_at(*said, {int64_t{1}, int64_t{3}, int64_t{1}});
  });
  // What a layer that flattens reads may have any number of dims.
  const auto read = importer_of_bytes(small_model());
  EXPECT_EQ(read->facts().inputs.at(0).shape, (DimShape{std::string(), int64_t{3}}));
  imported_at(*read, {int64_t{2}, int64_t{1}, int64_t{3}});
  const ir::Graph symbolic = read->import(with_symbols(read->facts(), {}), ops::standard_ops());
  EXPECT_FALSE(symbolic.value(symbolic.outputs()[0]).type.shape[0].is_constant());
  const auto unsaid = importer_of_bytes(
      mx::archive(mx::symbol({mx::node("null", "data"), mx::node("relu", "y", "[[0,0,0]]")}, "[[1,0,0]]"),
                  mx::parameters({})));
  expect_error(ErrorCode::kShapeRequired, "input \"data\" has no shape in the model",
               [&] { unsaid->import({}, ops::standard_ops()); });
  ir::verify(imported_at(*unsaid, {int64_t{2}, int64_t{3}}));
}

TEST(Mxnet, ASymbolWithoutParametersIsRefused) {
  expect_error(ErrorCode::kInvalidModel, "give a tar or zip of both files",
               [&] { importer_of_bytes(small_symbol()); });
  EXPECT_EQ(detect_format(mx::parameters(kArrays)), FileFormat::kMxnetParameters);
  expect_error(ErrorCode::kNotSupported, "it has weights alone: give NAME-symbol.json",
               [&] { check_importable(mx::parameters(kArrays)); });
}

TEST(Mxnet, AllOperatorsThatAreMissingAreNamed) {
  const auto model = importer_of_bytes(
      mx::archive(mx::symbol({mx::node("null", "data"), mx::node("Fancy", "a", "[[0,0,0]]"),
                              mx::node("Odd", "b", "[[1,0,0]]"), mx::node("Fancy", "c", "[[2,0,0]]")},
                             "[[3,0,0]]"),
                  mx::parameters({})));
  const std::vector<ErrorDetail> details = model->unsupported();
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].pointer, "a");
  EXPECT_EQ(details[0].detail, "op Fancy, 2 nodes");
  try {
    imported_at(*model, {int64_t{2}});
    ADD_FAILURE() << "imported";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOperatorNotImplemented);
    EXPECT_NE(refused_graph(*model, error).find("\"refused\""), std::string::npos);
  }
}

std::string over_data(const std::string& op, const std::string& inputs, const std::string& attributes,
                      const std::string& heads, const std::string& shape = "(2, 9, 6)") {
  const std::string data = mx::node("null", "data", "[]", R"j(,"attrs":{"__shape__":")j" + shape + R"("})");
  const std::string node = mx::node(op, "n", inputs, R"(,"attrs":{)" + attributes + "}");
  return mx::archive(mx::symbol({data, node}, heads), mx::parameters({}));
}

TEST(Mxnet, WhatMakesTargetsOfTrainingIsRefusedWithTheReason) {
  const auto model =
      importer_of_bytes(over_data("_contrib_MultiBoxTarget", "[[0,0,0],[0,0,0],[0,0,0]]", "", "[[1,0,0]]"));
  expect_error(ErrorCode::kOperatorNotImplemented,
               "op _contrib_MultiBoxTarget: it makes the targets of training",
               [&] { model->import({}, ops::standard_ops()); });
}

TEST(Mxnet, OutputsOfDetectorsHaveMxnetsNames) {
  const auto names_of = [](const std::string& bytes) {
    std::vector<std::string> names;
    const auto model = importer_of_bytes(bytes);
    for (const SignatureValue& output : model->facts().outputs) names.push_back(output.name);
    return names;
  };
  using NameList = std::vector<std::string>;
  const std::string three = "[[0,0,0],[0,0,0],[0,0,0]]", scored = R"("output_score":"True")";
  EXPECT_EQ(names_of(over_data("_contrib_box_nms", "[[0,0,0]]", "", "[[1,0,0]]")), (NameList{"n_output0"}));
  EXPECT_EQ(names_of(over_data("_contrib_Proposal", three, "", "[[1,0,0]]")), (NameList{"n_output"}));
  EXPECT_EQ(names_of(over_data("_contrib_Proposal", three, scored, "[[1,0,0],[1,1,0]]")),
            (NameList{"n_output", "n_score"}));
}

TEST(Mxnet, BoxesAreChosenAmongAnyNumberOfThem) {
  const auto model = importer_of_bytes(
      over_data("_contrib_box_nms", "[[0,0,0]]", R"("topk":"4","id_index":"0")", "[[1,0,0]]", "(0, 0, 6)"));
  const ir::Graph graph = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(graph);
  EXPECT_TRUE(same(graph.value(graph.outputs()[0]).type.shape, graph.value(graph.inputs()[0]).type.shape));
}

TEST(Mxnet, WrongOperatorsOfDetectorsAreErrors) {
  const auto fails = [](const std::string& op, const std::string& inputs, const std::string& attributes,
                        ErrorCode code, const std::string& text) {
    SCOPED_TRACE(text);
    const auto model = importer_of_bytes(over_data(op, inputs, attributes, "[[1,0,0]]"));
    expect_error(code, text, [&] { model->import({}, ops::standard_ops()); });
  };
  const std::string one = "[[0,0,0]]", two = "[[0,0,0],[0,0,0]]";
  fails("_contrib_box_nms", one, R"("score_index":"3")", ErrorCode::kInvalidModel,
        "boxes of 6 numbers with coord_start 2, score_index 3");
  fails("_contrib_box_nms", one, R"("in_format":"polar")", ErrorCode::kInvalidModel,
        "in_format is \"polar\"");
  fails("_contrib_box_iou", two, "", ErrorCode::kInvalidModel, "boxes of shape [2,9,6]");
  fails("_contrib_ROIAlign", two, R"j("pooled_size":"(2, 2)","spatial_scale":"1")j", ErrorCode::kInvalidModel,
        "maps of shape [2,9,6]");
}

TEST(Mxnet, OperandsOfTooFewAxesOrTooShortListsAreErrors) {
  const auto fails = [](const std::string& op, const std::string& attributes, const std::string& shape,
                        const std::string& text) {
    SCOPED_TRACE(text);
    const auto model = importer_of_bytes(over_data(op, "[[0,0,0]]", attributes, "[[1,0,0]]", shape));
    expect_error(ErrorCode::kInvalidModel, "node 1, " + op + " \"n\": " + text,
                 [&] { model->import({}, ops::standard_ops()); });
  };
  fails("elemwise_add", "", "(4,)", "it has 1 inputs, input 1 is missing");
  fails("Pooling", R"j("kernel":"(2, 2)")j", "(4,)", "the input has rank 1");
  fails("Pooling", R"j("kernel":"(2,)")j", "(1, 1, 4, 4)", "attribute kernel has 1 numbers");
}

TEST(Mxnet, PriorsMayHaveManyRatios) {
  std::string ratios = "1";
  for (int i = 2; i <= 20; ++i) ratios += ", " + std::to_string(i);
  const auto model =
      importer_of_bytes(over_data("_contrib_MultiBoxPrior", "[[0,0,0]]",
                                  R"j("ratios":"()j" + ratios + R"j()")j", "[[1,0,0]]", "(1, 3, 2, 2)"));
  const ir::Graph graph = model->import({}, ops::standard_ops());
  EXPECT_EQ(Shape(graph.value(graph.outputs()[0]).type.shape), (Shape{1, 80, 4}));
}

TEST(Mxnet, PartsOfExtentsAreThoseOfFloat32) {
  // 0.29 times 100 is 29 in float32, and less than that in float64.
  const auto model = importer_of_bytes(over_data("_contrib_BilinearResize2D", "[[0,0,0]]",
                                                 R"("scale_height":"0.29","scale_width":"0.5")", "[[1,0,0]]",
                                                 "(1, 1, 100, 4)"));
  const ir::Graph graph = model->import({}, ops::standard_ops());
  EXPECT_EQ(Shape(graph.value(graph.outputs()[0]).type.shape), (Shape{1, 1, 29, 2}));
}

TEST(Mxnet, WrongPartsAreErrors) {
  std::string begins = "0";
  for (int i = 0; i < 1 << 16; ++i) begins += ",0";
  const auto split = importer_of_bytes(
      over_data("_split_v2", "[[0,0,0]]", R"j("indices":"()j" + begins + R"j()")j", "[[1,0,0]]"));
  expect_error(ErrorCode::kInvalidModel, "it has 65537 indices",
               [&] { split->import({}, ops::standard_ops()); });
  const auto variable = [](const std::string& name, const std::string& shape) {
    return mx::node("null", name, "[]", R"j(,"attrs":{"__shape__":")j" + shape + R"("})");
  };
  const auto crop = importer_of_bytes(
      mx::archive(mx::symbol({variable("a", "(1, 1, 4, 4)"), variable("b", "(2, 2)"),
                              mx::node("Crop", "n", "[[0,0,0],[1,0,0]]", R"(,"attrs":{"num_args":"2"})")},
                             "[[2,0,0]]"),
                  mx::parameters({})));
  expect_error(ErrorCode::kInvalidModel, "the second input has rank 2",
               [&] { crop->import({}, ops::standard_ops()); });
}

TEST(Mxnet, IntegersWithANumberThatIsNoneAreRefused) {
  const auto sum_of = [](const std::string& is_int) {
    const std::string data =
        mx::node("null", "data", "[]", R"j(,"attrs":{"__shape__":"(2,)","__dtype__":"4"})j");
    const std::string sum = mx::node("_plus_scalar", "n", "[[0,0,0]]",
                                     R"(,"attrs":{"scalar":"1.5","is_int":")" + is_int + R"("})");
    return importer_of_bytes(mx::archive(mx::symbol({data, sum}, "[[1,0,0]]"), mx::parameters({})));
  };
  expect_error(ErrorCode::kOperatorNotImplemented, "op _plus_scalar: is_int: integers with a number",
               [&] { sum_of("False")->import({}, ops::standard_ops()); });
  ir::verify(sum_of("True")->import({}, ops::standard_ops()));
}

TEST(Mxnet, AnAttributeThatNobodyReadsIsRefused) {
  const auto with = [](const std::string& attributes) {
    const std::string relu =
        mx::node("Activation", "y", "[[0,0,0]]", R"(,"attrs":{"act_type":"relu",)" + attributes + "}");
    return importer_of_bytes(
        mx::archive(mx::symbol({mx::node("null", "data"), relu}, "[[1,0,0]]"), mx::parameters({})));
  };
  expect_error(ErrorCode::kOperatorNotImplemented, "op Activation: slope: the attribute is not implemented",
               [&] { imported_at(*with(R"("slope":"1")"), {int64_t{2}}); });
  // Notes of whoever made the symbol say nothing of a run.
  ir::verify(imported_at(*with(R"("__note__":"x","weight_lr_mult":"2","ctx_group":"a")"), {int64_t{2}}));
}

void expect_wrong_parameters(const std::string& bytes, const std::string& text) {
  SCOPED_TRACE(text);
  expect_error(ErrorCode::kInvalidModel, text,
               [&] { importer_of_bytes(mx::archive(small_symbol(), bytes)); });
}

TEST(Mxnet, ParametersAreChecked) {
  const std::string good = mx::parameters(kArrays);
  const auto with = [&](size_t at, uint64_t value, size_t bytes) {
    std::string file = good;
    for (size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
    return file;
  };
  // The first array: its mark at 24, storage 28, dims 32, extents 36 and 44, a device at 52, its type at 60.
  expect_wrong_parameters(with(0, 0x113, 8), "byte 8: the file does not begin");
  expect_wrong_parameters(with(16, UINT64_MAX, 8), "18446744073709551615 arrays");
  expect_wrong_parameters(with(32, 1000, 4), "an array of 1000 dims");
  expect_wrong_parameters(with(36, UINT64_MAX, 8), "a dim of -1");
  expect_wrong_parameters(with(36, uint64_t{1} << 62, 8), "an array of shape");
  expect_wrong_parameters(with(36, 1000, 8), "an array has 12000 bytes");
  expect_wrong_parameters(with(60, 99, 4), "elements of type 99");
  expect_wrong_parameters(good.substr(0, good.size() - 1), "a name has 11 bytes, 10 are left");
  const std::vector<mx::Array> twice = {kArrays[0], kArrays[0]};
  expect_wrong_parameters(mx::parameters(twice), "\"arg:fc_weight\" stands twice");
  expect_error(ErrorCode::kNotSupported, "sparse arrays",
               [&] { importer_of_bytes(mx::archive(small_symbol(), with(28, 1, 4))); });
}

TEST(Mxnet, SymbolsAreChecked) {
  const auto refuse = [](const std::string& symbol, const std::string& text) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::kInvalidModel, text,
                 [&] { importer_of_bytes(mx::archive(symbol, mx::parameters(kArrays))); });
  };
  const std::string data = mx::node("null", "data");
  refuse("{", "the symbol: ");
  refuse(R"({"arg_nodes":[],"heads":[[0,0]]})", "\"nodes\" is missing");
  refuse(mx::symbol({data}, "[]"), "it has no heads");
  refuse(mx::symbol({data}, "[[1,0,0]]"), "an entry names node 1, of which there are 1");
  refuse(mx::symbol({data}, "[[-1,0]]"), "an entry is no list of two or three numbers");
  refuse(mx::symbol({data}, "[[0,1,0]]"), "a head is output 1 of \"data\", which has 1");
  refuse(mx::symbol({mx::node("relu", "y", "[[0,0,0]]")}, "[[0,0,0]]"), "node 0: the symbol: an entry names");
  refuse(mx::symbol({mx::node("null", "data", "[]", R"(,"attrs":{"a":1})")}, "[[0,0,0]]"),
         "attribute \"a\" is no text");
  refuse(mx::symbol({data, data, mx::node("_plus", "y", "[[0,0],[1,0]]")}, "[[2,0,0]]"),
         "two variables are called \"data\"");
}

TEST(Mxnet, CutOffFilesAreErrors) {
  const std::string symbol = small_symbol(), parameters = mx::parameters(kArrays);
  for (size_t size = 0; size < parameters.size(); ++size) {
    SCOPED_TRACE(size);
    expect_error(ErrorCode::kInvalidModel, "the parameters: byte ",
                 [&] { importer_of_bytes(mx::archive(symbol, parameters.substr(0, size))); });
  }
  for (size_t size = 0; size < symbol.size(); ++size) {
    SCOPED_TRACE(size);
    expect_error(ErrorCode::kInvalidModel,
                 "the symbol: ", [&] { importer_of_bytes(mx::archive(symbol.substr(0, size), parameters)); });
  }
}

TEST(Mxnet, BrokenCopiesAreImportedOrRefused) {
  const std::string symbol = small_symbol(), parameters = mx::parameters(kArrays);
  const auto words = words_of(symbol);
  const auto import_copy = [&](size_t i, std::mt19937& random) {
    std::string copy = symbol, weights = parameters;
    if (i % 2 == 0) copy = with_changed_words(symbol, words, random);
    for (size_t k = 0; i % 2 == 1 && k < 1 + random() % 3; ++k)
      weights[random() % weights.size()] ^= static_cast<char>(1 << random() % 8);
    ir::verify(imported_at(*importer_of_bytes(mx::archive(copy, weights)), {int64_t{2}, int64_t{3}}));
  };
  expect_imported_or_refused(kCopiesOfSymbols, 29, import_copy,
                             {ErrorCode::kShapeRequired, ErrorCode::kInvalidArgument});
}

TEST(Mxnet, OldNormsHaveTheirStatisticsByName) {
  const std::string norm = mx::node("BatchNorm", "bn", "[[0,0],[1,0],[2,0]]",
                                    R"(,"param":{"fix_gamma":"False","eps":"0"},"attr":{})");
  const std::string symbol = mx::symbol(
      {mx::node("null", "data"), mx::node("null", "bn_gamma"), mx::node("null", "bn_beta"), norm}, "[[3,0]]");
  const auto row = [](const char* name, float value) { return mx::Array{name, {2}, {value, value}}; };
  const auto model = importer_of_bytes(
      mx::archive(symbol, mx::parameters({row("arg:bn_gamma", 3), row("arg:bn_beta", 1),
                                          row("aux:bn_moving_mean", 2), row("aux:bn_moving_var", 4)})));
  const ir::Graph graph = imported_at(*model, {int64_t{1}, int64_t{2}});
  const Tensor x = Tensor::from<float>({1, 2}, std::vector<float>{4, 0});
  expect_same(evaluated(graph, {{"data", x}}).at("bn_output"),
              Tensor::from<float>({1, 2}, std::vector<float>{4, -2}), 1e-6);
}

}  // namespace
}  // namespace tensormill::frontend
