// Models of CNTK: what is in a file, blocks, what is refused, and broken copies of them. (Operators are
// cntk_ops_test.cc's.)
#include <set>

#include "compiler/frontend/formats/detect.h"
#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/cntk_model.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

namespace cm = cntk_model;

constexpr uint64_t kRelu = 3, kPlus = 19, kPastValue = 37, kCombine = 44, kRandom = 76, kTimes = 31,
                   kSlice = 14, kReduce = 39, kTopK = 87, kConvolution = 33, kCosDistance = 53, kPow = 69,
                   kCrop = 84;
const size_t kCopiesOfModels = is_sweep() ? 2000 : 200;

/// y = relu(x + w) over samples of three numbers, the Plus within a block.
std::string one_block(const std::vector<float>& weights = {1, -2, 3}) {
  return cm::model(
      {cm::input("Input1", {3}, {"batch"}, "x"), cm::parameter("Parameter2", {3}, weights),
       cm::variable(4, "Placeholder3", {3})},
      {cm::function(kPlus, "Plus4", {"Placeholder3", "Parameter2"}),
       cm::block("Block5", "Shift", "Plus4", {"Placeholder3"}, {"Input1"}, {{"any", cm::size(1)}}),
       cm::function(kRelu, "ReLU6", {"Block5_Output_0"})},
      "ReLU6");
}

/// One function of the input "x" of samples [3,2] in a tensor's order.
std::string one_function(const std::string& function, const std::string& root = "F1") {
  return cm::model({cm::input("x", {2, 3}), cm::parameter("w", {2}, {1, 2})}, {function}, root);
}

ir::Graph imported_model(const std::string& bytes, int64_t samples = 2) {
  const auto model = importer_of_bytes(bytes);
  return model->import(at_free_extent(*model, samples), ops::standard_ops());
}

void refuse_model(const std::string& bytes, ErrorCode code, const std::string& text) {
  SCOPED_TRACE(text);
  expect_error(code, text, [&] { imported_model(bytes); });
}

void expect_small_numbers(const ir::Graph& graph) {
  ir::verify(graph);
  const Tensor x = Tensor::from<float>({2, 3}, std::vector<float>{0, 1, 2, -1, 4, -5});
  expect_same(evaluated(graph, {{"x", x}}).at("ReLU6_Output_0"),
              Tensor::from<float>({2, 3}, std::vector<float>{1, 0, 5, 0, 2, 0}), 0);
}

TEST(Cntk, AModelIsImported) {
  const std::string bytes = one_block();
  EXPECT_EQ(detect_format(bytes), FileFormat::kCntk);
  const auto model = importer_of_bytes(bytes);
  EXPECT_EQ(model->format(), "cntk");
  expect_small_numbers(imported_model(bytes));
  expect_small_numbers(
      make_importer(model->kept_source())->import(at_free_extent(*model, 2), ops::standard_ops()));
}

TEST(Cntk, SaysWhatIsInAFile) {
  const auto model = importer_of_bytes(one_block());
  EXPECT_EQ(model->facts().ops, (std::map<std::string, int64_t>{{"Plus", 1}, {"ReLU", 1}}));
  EXPECT_EQ(model->facts().parameters, 3);
  EXPECT_EQ(model->facts().weight_bytes, 12);
  EXPECT_EQ(model->facts().producer, "CNTK 2 operators");
  ASSERT_EQ(model->facts().inputs.size(), 1u);
  EXPECT_EQ(model->facts().inputs[0].shape, (DimShape{std::string("N"), int64_t{3}}));
  EXPECT_EQ(model->facts().outputs.at(0).shape, (DimShape{std::string("N"), int64_t{3}}));
  EXPECT_TRUE(model->unsupported().empty());
}

TEST(Cntk, ElementsOfLargeFilesStandBehindTheMessage) {
  const std::string message = one_block({});
  std::string bytes = "ktnc";
  put_bytes(bytes, message.size(), 4);
  bytes += message + cm::floats({1, -2, 3});
  EXPECT_EQ(detect_format(bytes), FileFormat::kCntk);
  expect_small_numbers(imported_model(bytes));
  for (const size_t size : {size_t{4}, size_t{8}, size_t{20}, bytes.size() - 1}) {
    SCOPED_TRACE(size);
    expect_error(ErrorCode::kInvalidModel, "CNTK model: ", [&] { imported_model(bytes.substr(0, size)); });
  }
}

TEST(Cntk, FilesOfVersion1AreRefusedByName) {
  expect_error(ErrorCode::kNotSupported,
               "a CNTK model of version 1; TensorMill does not import it yet: load it in CNTK 2",
               [] { check_importable(std::string("B\0C\0N\0\0\0B\0V\0", 12)); });
}

TEST(Cntk, NamesAreThoseOfTheModelOrItsUids) {
  const std::string twice =
      cm::model({cm::input("Input1", {3}, {"batch"}, "x"), cm::input("Input2", {3}, {"batch"}, "x")},
                {cm::function(kPlus, "Plus3", {"Input1", "Input2"}, {}, {{"name", cm::text("y")}}),
                 cm::function(kRelu, "ReLU4", {"Plus3_Output_0"}),
                 cm::function(kCombine, "Combine5", {"Plus3_Output_0", "ReLU4_Output_0", "Input1"})},
                "Combine5");
  const auto model = importer_of_bytes(twice);
  ASSERT_EQ(model->facts().inputs.size(), 2u);
  std::set<std::string> names;
  for (const auto& input : model->facts().inputs) names.insert(input.name);
  EXPECT_EQ(names, (std::set<std::string>{"Input1", "Input2"}));
  ASSERT_EQ(model->facts().outputs.size(), 3u);
  EXPECT_EQ(model->facts().outputs[0].name, "y");
  EXPECT_EQ(model->facts().outputs[1].name, "ReLU4_Output_0");
  EXPECT_EQ(model->facts().outputs[2].name, "x");
  ir::verify(imported_model(twice));
}

TEST(Cntk, ABlockOfSomebodysOwnMayHaveAnyName) {
  // Without the attributes that CNTK gives its own.
  const std::string bytes = cm::model({cm::input("x", {2, 3}), cm::variable(4, "Placeholder3", {2, 3})},
                                      {cm::function(kRelu, "ReLU4", {"Placeholder3"}),
                                       cm::block("Block5", "Softmax", "ReLU4", {"Placeholder3"}, {"x"})},
                                      "Block5");
  EXPECT_EQ(importer_of_bytes(bytes)->facts().ops, (std::map<std::string, int64_t>{{"ReLU", 1}}));
  const std::string own =
      cm::model({cm::input("x", {2, 3}), cm::variable(4, "Placeholder3", {2, 3})},
                {cm::function(kRelu, "ReLU4", {"Placeholder3"}),
                 cm::block("Block5", "Softmax", "ReLU4", {"Placeholder3"}, {"x"}, {{"axis", cm::axis(-1)}})},
                "Block5");
  EXPECT_EQ(importer_of_bytes(own)->facts().ops, (std::map<std::string, int64_t>{{"Softmax", 1}}));
  ir::verify(imported_model(own));
}

TEST(Cntk, StepsOfSequencesAreSamples) {
  const std::string relu = cm::function(kRelu, "F1", {"x"});
  ir::verify(imported_model(cm::model({cm::input("x", {3}, {"steps", "batch"})}, {relu}, "F1")));
  // Unless something goes along them, or single samples stand beside them.
  refuse_model(cm::model({cm::input("x", {3}, {"steps", "batch"}), cm::parameter("w", {1}, {0})},
                         {cm::function(kPastValue, "F1", {"x", "w"}, {{"offset", cm::size(1)}})}, "F1"),
               ErrorCode::kOperatorNotImplemented, "op PastValue: it goes along the steps of a sequence");
  refuse_model(cm::model({cm::input("x", {3}, {"steps", "batch"}), cm::input("y", {3})},
                         {cm::function(kPlus, "F1", {"x", "y"})}, "F1"),
               ErrorCode::kNotSupported, "variable \"y\" has other dynamic axes than another input");
}

/// A convolution of lines of `extent` elements by the window, with automatic pads.
std::string line_model(const std::vector<float>& window, int64_t extent, int64_t stride, int64_t dilation) {
  const auto taps = static_cast<int64_t>(window.size());
  return cm::model({cm::input("x", {extent, 1}), cm::parameter("w", {taps, 1, 1}, window)},
                   {cm::function(kConvolution, "F1", {"w", "x"},
                                 {{"strides", cm::dims({stride, 1})},
                                  {"dilation", cm::dims({dilation, 1})},
                                  {"autoPadding", cm::list({cm::flag(true), cm::flag(false)})},
                                  {"maxTempMemSizeInSamples", cm::size(0)}})},
                   "F1");
}

void expect_line(const std::string& bytes, int64_t free, const std::vector<float>& x,
                 const std::vector<float>& y) {
  const auto model = importer_of_bytes(bytes);
  const ir::Graph graph = model->import(at_free_extent(*model, free), ops::standard_ops());
  ir::verify(graph);
  const auto rows = static_cast<int64_t>(graph.value(graph.inputs()[0]).type.shape[0].hint());
  std::vector<float> given, wanted;
  for (int64_t i = 0; i < rows; ++i) {
    given.insert(given.end(), x.begin(), x.end());
    wanted.insert(wanted.end(), y.begin(), y.end());
  }
  const Tensor input = Tensor::from<float>({rows, 1, static_cast<int64_t>(x.size())}, given);
  expect_same(evaluated(graph, {{"x", input}}).at("F1_Output_0"),
              Tensor::from<float>({rows, 1, static_cast<int64_t>(y.size())}, wanted), 0);
}

TEST(Cntk, WindowsOfAutomaticPadsHaveTheirMiddlesInTheMiddle) {
  // What CNTK computes on a GPU alone: gaps in windows.
  expect_line(line_model({1, 0, 0}, 5, 1, 2), 1, {1, 2, 3, 4, 5}, {0, 0, 1, 2, 3});
  expect_line(line_model({0, 1, 0}, 6, 3, 1), 1, {1, 2, 3, 4, 5, 6}, {2, 5});
  expect_line(line_model({1}, 6, 3, 1), 1, {1, 2, 3, 4, 5, 6}, {2, 5});
}

TEST(Cntk, AutomaticPadsOfFreeExtentsFollowFromThem) {
  const std::string bytes = line_model({0, 1, 0}, -3, 3, 1);
  expect_line(bytes, 6, {1, 2, 3, 4, 5, 6}, {2, 5});
  expect_line(bytes, 4, {1, 2, 3, 4}, {1, 4});
  const auto model = importer_of_bytes(bytes);
  EXPECT_EQ(model->facts().inputs.at(0).shape, (DimShape{std::string("N"), int64_t{1}, std::string()}));
  const ir::Graph graph = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  ir::verify(graph);
  EXPECT_FALSE(graph.value(graph.outputs()[0]).type.shape[2].is_constant());
  const auto gaps = importer_of_bytes(line_model({1}, -3, 3, 1));
  expect_error(ErrorCode::kOperatorNotImplemented, "windows with gaps between them over free dims",
               [&] { gaps->import(with_symbols(gaps->facts(), {}), ops::standard_ops()); });
}

/// A transposed convolution of lines of two elements by the window 1, 2, 3, without automatic pads.
std::string transposed_line(int64_t extent) {
  const std::string no = cm::flag(false);
  return cm::model({cm::input("x", {2, 1}), cm::parameter("w", {3, 1, 1}, {1, 2, 3})},
                   {cm::function(kConvolution, "F1", {"w", "x"},
                                 {{"strides", cm::dims({2, 1})},
                                  {"autoPadding", cm::list({no, no})},
                                  {"transpose", cm::flag(true)},
                                  {"outputShape", cm::dims({extent, 1})}})},
                   "F1");
}

TEST(Cntk, TransposedConvolutionsHaveTheExtentsThatTheFileSays) {
  expect_line(transposed_line(5), 1, {1, 2}, {1, 2, 5, 4, 6});
  // A window over six elements stands at as many places as one over five.
  expect_line(transposed_line(6), 1, {1, 2}, {1, 2, 5, 4, 6, 0});
  for (const int64_t extent : {int64_t{4}, int64_t{7}})
    refuse_model(transposed_line(extent), ErrorCode::kInvalidModel,
                 "a result of " + std::to_string(extent) + " elements along an axis of 2");
  refuse_model(transposed_line(INT64_MAX), ErrorCode::kInvalidModel,
               "attribute outputShape has 922337203685477");
}

TEST(Cntk, TheCosineOfASampleWithoutALengthIs0) {
  const ir::Graph graph = imported_model(one_function(cm::function(kCosDistance, "F1", {"x", "x"})));
  const Tensor x = Tensor::from<float>({2, 3, 2}, std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6});
  expect_close(evaluated(graph, {{"x", x}}).at("F1_Output_0"),
               Tensor::from<float>({2}, std::vector<float>{0, 1}), 1e-6);
}

TEST(Cntk, ZeroToANegativePowerIs0) {
  const std::string bytes = cm::model({cm::input("x", {2}), cm::parameter("w", {2}, {-1, 0})},
                                      {cm::function(kPow, "F1", {"x", "w"})}, "F1");
  const Tensor x = Tensor::from<float>({2, 2}, std::vector<float>{0, 0, -2, 2});
  expect_same(evaluated(imported_model(bytes), {{"x", x}}).at("F1_Output_0"),
              Tensor::from<float>({2, 2}, std::vector<float>{0, 1, -0.5F, 1}), 0);
}

TEST(Cntk, StepsOfASliceMayBePastItsEnd) {
  const std::string slice = cm::function(kSlice, "F1", {"x"},
                                         {{"axis", cm::axis(1)},
                                          {"beginIndex", cm::integer(1)},
                                          {"endIndex", cm::integer(3)},
                                          {"sliceStrides", cm::size(INT64_MAX)}});
  const Tensor x = Tensor::from<float>({1, 3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
  expect_same(evaluated(imported_model(one_function(slice), 1), {{"x", x}}).at("F1_Output_0"),
              Tensor::from<float>({1, 1, 2}, std::vector<float>{3, 4}), 0);
}

TEST(Cntk, WhatAFunctionAddsHasShortNames) {
  std::string uid;
  for (size_t i = 0; i < 600; ++i) uid += "\xC3\xA9";
  const ir::Graph graph = imported_model(one_function(cm::function(kCosDistance, uid, {"x", "x"}), uid));
  size_t made = 0;
  for (const ir::Value& value : graph.values()) {
    EXPECT_TRUE(is_utf8(value.name));
    if (value.name.find('#') == std::string::npos) continue;
    EXPECT_LT(value.name.size(), 520u);
    ++made;
  }
  EXPECT_GT(made, 4u);
}

TEST(Cntk, AllOperatorsThatAreMissingAreNamed) {
  const std::string bytes = cm::model(
      {cm::input("x", {2, 3})},
      {cm::function(kRandom, "A1", {}), cm::function(299, "A2", {"x"}),
       cm::dictionary({{"type", cm::text("UserDefinedFunction")},
                       {"uid", cm::text("A3")},
                       {"inputs", cm::texts({"A2_Output_0"})}}),
       cm::function(kPlus, "A4", {"A1_Output_0", "A3_Output_0"}), cm::function(299, "A5", {"A4_Output_0"})},
      "A5");
  const auto model = importer_of_bytes(bytes);
  const std::vector<ErrorDetail> details = model->unsupported();
  ASSERT_EQ(details.size(), 3u);
  refuse_model(bytes, ErrorCode::kOperatorNotImplemented,
               "op RandomDistribution: its numbers are drawn when the model runs");
  refuse_model(bytes, ErrorCode::kOperatorNotImplemented, "op operator 299, 2 nodes");
  refuse_model(bytes, ErrorCode::kOperatorNotImplemented,
               "op UserDefinedFunction: its code is not in the file");
  try {
    model->import({}, ops::standard_ops());
    ADD_FAILURE() << "imported";
  } catch (const Error& error) {
    EXPECT_NE(refused_graph(*model, error).find("\"refused\""), std::string::npos);
  }
}

TEST(Cntk, AttributesThatNobodyReadsAreRefused) {
  refuse_model(one_function(cm::function(kRelu, "F1", {"x"}, {{"slope", cm::real(1)}})),
               ErrorCode::kOperatorNotImplemented, "op ReLU: slope: the attribute is not implemented");
  refuse_model(one_function(cm::function(kRelu, "F1", {"x", "x"})), ErrorCode::kOperatorNotImplemented,
               "op ReLU: operand 1: the operand is not implemented");
  // What training does with it is nobody's business.
  ir::verify(imported_model(one_function(
      cm::function(15, "F1", {"x"}, {{"dropoutRate", cm::real(0.5)}, {"rngSeed", cm::size(1)}}))));
}

TEST(Cntk, WhatGoesAlongTheBatchIsRefused) {
  const auto reduce = [](const std::string& axis) {
    return one_function(
        cm::function(kReduce, "F1", {"x"}, {{"axis", axis}, {"reductionOpName", cm::text("Sum")}}));
  };
  refuse_model(reduce(cm::axis(cm::kBatchAxis, "defaultBatchAxis")), ErrorCode::kOperatorNotImplemented,
               "op ReduceElements: axis: \"defaultBatchAxis\" is no axis of a sample");
  ir::verify(imported_model(reduce(cm::axis(1))));
}

TEST(Cntk, WrongFunctionsAreErrors) {
  const auto fails = [](const std::string& function, const std::string& text) {
    refuse_model(one_function(function), ErrorCode::kInvalidModel, text);
  };
  fails(cm::function(kRelu, "F1", {}), "function 0, ReLU \"F1\": operand 0 is missing");
  fails(cm::function(kPlus, "F1", {"x"}), "it has 1 operands");
  fails(cm::function(kRelu, "F1", {"z"}), "nothing makes \"z\"");
  fails(cm::function(kRelu, "F1", {"F1_Output_0"}), "a function reads what is made of its own result");
  fails(cm::function(kRelu, "F1", {"F1_Output_3"}), "");
  fails(cm::function(kTimes, "F1", {"w", "x"}, {{"outputRank", cm::size(9)}}), "outputRank is 9 of rank 1");
  fails(cm::function(kSlice, "F1", {"x"},
                     {{"axis", cm::axis(7)}, {"beginIndex", cm::integer(0)}, {"endIndex", cm::integer(1)}}),
        "axis 7 of an operand of rank 2");
  fails(cm::function(kSlice, "F1", {"x"},
                     {{"axis", cm::axis(0)}, {"beginIndex", cm::integer(0)}, {"endIndex", cm::integer(5)}}),
        "elements 0 to 5 by 1 of an axis of 2");
  fails(cm::function(kSlice, "F1", {"x"},
                     {{"axisVec", cm::list({cm::axis(0), cm::axis(1)})},
                      {"beginIndexVec", cm::list({cm::integer(0)})},
                      {"endIndexVec", cm::list({cm::integer(1), cm::integer(1)})}}),
        "parts of 2 axes with other numbers of ends");
  refuse_model(cm::model({cm::input("x", {}), cm::parameter("w", {1}, {1})},
                         {cm::function(kConvolution, "F1", {"w", "x"})}, "F1"),
               ErrorCode::kInvalidModel, "\"F1\": operand 1 has no axis");
  fails(cm::function(kTopK, "F1", {"x"}, {{"axis", cm::axis(0)}, {"numItems", cm::size(3)}}),
        "3 items of an axis of 2");
  fails(cm::function(kReduce, "F1", {"x"}, {{"reductionOpName", cm::text("Sum")}}),
        "attribute axis is missing");
  // Of other forms of it there is more to say.
  refuse_model(one_function(cm::function(kCrop, "F1", {"x", "x"})), ErrorCode::kOperatorNotImplemented,
               "op Crop: offset: places that follow from other functions are not implemented");
}

TEST(Cntk, WrongModelsAreErrors) {
  const auto fails = [](const std::string& bytes, const std::string& text) {
    refuse_model(bytes, ErrorCode::kInvalidModel, text);
  };
  const std::string relu = cm::function(kRelu, "F1", {"x"});
  fails(one_function(relu, "F2"), "there is no function \"F2\", the root");
  fails(cm::entries({{"type", cm::text("Trainer")}, {"root", cm::text("x")}}),
        "a dictionary of type \"Trainer\"");
  fails(cm::entries({{"type", cm::text("CompositeFunction")}, {"root", cm::text("x")}}),
        "a dictionary without \"inputs\"");
  fails(cm::model({cm::input("x", {2, 3})}, {relu, cm::function(kCombine, "C", {})}, "C"),
        "the model has no outputs");
  fails(cm::model({cm::variable(4, "x", {3})}, {relu}, "F1"), "nothing stands for the place holder \"x\"");
  fails(cm::model({cm::variable(9, "x", {3})}, {relu}, "F1"), "variable \"x\" is of the kind 9");
  fails(cm::model({cm::parameter("x", {3}, {1, 2})}, {relu}, "F1"), "variable \"x\" has 8 bytes of elements");
  fails(cm::model({cm::parameter("x", {int64_t{1} << 40, int64_t{1} << 40}, {1, 2})}, {relu}, "F1"),
        "which are not those");
  fails(cm::model({cm::input("x", {2}), cm::variable(4, "p", {2}), cm::variable(4, "q", {2})},
                  {cm::function(kRelu, "F1", {"p"}), cm::block("B", "b", "F1", {"p"}, {"q"}),
                   cm::block("D", "d", "B", {"q"}, {"p"})},
                  "D"),
        "stands for itself");
  fails(cm::model({cm::input("x", {2})}, {cm::block("B", "b", "B", {}, {})}, "B"), "has no root");
  fails(cm::model({cm::input("a", {2}, {"batch"}, "b"), cm::input("b", {2}, {"batch"}, "b")},
                  {cm::function(kPlus, "F1", {"a", "b"})}, "F1"),
        "several inputs or outputs are called \"b\"");
  fails(cm::model({cm::input("x", std::vector<int64_t>(33, 1))}, {relu}, "F1"), "a shape of 33 extents");
}

TEST(Cntk, ResultsOfBlocksInBlocksAreBounded) {
  constexpr size_t kMany = 200;
  const auto uid = [](size_t block) { return "B" + std::to_string(block) + std::string(1000, '_'); };
  cm::Values functions = {cm::function(kCombine, uid(0), cm::Names(kMany, "x"))};
  for (size_t i = 1; i < kMany; ++i) functions.push_back(cm::block(uid(i), "b", uid(i - 1), {}, {}));
  refuse_model(cm::model({cm::input("x", {2})}, functions, uid(kMany - 1)), ErrorCode::kInvalidModel,
               "bytes of names of blocks' results");
}

TEST(Cntk, CutOffFilesAreErrors) {
  const std::string whole = one_block();
  const std::set<ErrorCode> refusals = {ErrorCode::kInvalidModel, ErrorCode::kNotSupported};
  for (size_t size = 1; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    try {
      imported_model(whole.substr(0, size));
      ADD_FAILURE() << "imported";
    } catch (const Error& error) {
      EXPECT_EQ(refusals.count(error.code()), 1u) << error.message();
    }
  }
}

TEST(Cntk, BrokenCopiesAreImportedOrRefused) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(fixture_path("cntk_nets/inception.model"));
  const std::string small = one_block(), whole(file->text());
  const auto import_copy = [&](size_t i, std::mt19937& random) {
    std::string copy = i % 4 == 0 ? whole : small;
    for (size_t k = 0; k < 1 + random() % 3; ++k)
      copy[random() % copy.size()] ^= static_cast<char>(1 << random() % 8);
    ir::verify(imported_model(copy, 1));
  };
  expect_imported_or_refused(kCopiesOfModels, 29, import_copy,
                             {ErrorCode::kShapeRequired, ErrorCode::kInvalidArgument});
}

}  // namespace
}  // namespace tensormill::frontend
