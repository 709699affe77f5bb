// Models of Core ML: packages and files, what is refused, and broken copies of them. (Operations are
// coreml_ops_test.cc's.)
#include <filesystem>
#include <fstream>
#include <set>

#include "compiler/frontend/formats/detect.h"
#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/imported.h"
#include "tests/importer/mil_model.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

using mil::kFp32;

const size_t kCopiesOfPrograms = is_sweep() ? 2000 : 200;

std::string f32(const std::vector<int64_t>& dims) { return mil::tensor(kFp32, dims); }

/// y = relu(x + w), with w in the file of weights.
std::string small_program(const std::vector<int64_t>& dims = {2, 3}, std::string_view opset = "CoreML7",
                          std::string_view description = "") {
  const std::string w = mil::constant("w", f32({3}), mil::blob_value(kFp32, {3}, 64));
  const std::string sum = mil::operation("add", "sum", {{"x", mil::by_name("x")}, {"y", mil::by_name("w")}},
                                         mil::named("s", f32(dims)));
  const std::string relu =
      mil::operation("relu", "last", {{"x", mil::by_name("s")}}, mil::named("y", f32(dims)));
  return mil::model({mil::named("x", f32(dims))}, {w, sum, relu}, {"y"}, opset, description);
}

const std::vector<float> kWeights = {1, -2, 3};

std::string small_package() { return mil::package(small_program(), mil::weights(kWeights)); }

Tensors small_inputs() {
  return {{"x", Tensor::from<float>({2, 3}, std::vector<float>{0, 1, 2, -1, 4, -5})}};
}

void expect_small_numbers(const Importer& model) {
  const ir::Graph graph = model.import({}, ops::standard_ops());
  ir::verify(graph);
  const Tensor got = evaluated(graph, small_inputs()).at("y");
  expect_same(got, Tensor::from<float>({2, 3}, std::vector<float>{1, 0, 5, 0, 2, 0}), 0);
}

/// A folder of a package, which goes with the object.
class PackageFolder {
public:
  PackageFolder() {
    char name[] = "/tmp/tensormill_coreml_XXXXXX";
    TM_CHECK(mkdtemp(name) != nullptr, "no folder");
    path_ = name;
    const std::filesystem::path data = path_ / "net.mlpackage/Data/com.apple.CoreML";
    std::filesystem::create_directories(data / "weights");
    std::ofstream(path_ / "net.mlpackage/Manifest.json") << mil::manifest();
    std::ofstream(data / "model.mlmodel") << small_program();
    std::ofstream(data / "weights/weight.bin") << mil::weights(kWeights);
  }
  PackageFolder(const PackageFolder&) = delete;
  PackageFolder& operator=(const PackageFolder&) = delete;
  ~PackageFolder() { std::filesystem::remove_all(path_); }
  std::string package() const { return (path_ / "net.mlpackage").string(); }
  std::string model() const { return package() + "/Data/com.apple.CoreML/model.mlmodel"; }

private:
  std::filesystem::path path_;
};

TEST(Coreml, PackagesAreImportedAsFoldersZipsAndFiles) {
  const std::string zip = small_package();
  EXPECT_EQ(detect_format(zip), FileFormat::kMlPackage);
  const auto zipped = importer_of_bytes(zip);
  EXPECT_EQ(zipped->format(), "mlpackage");
  expect_small_numbers(*zipped);
  const PackageFolder folder;
  EXPECT_EQ(detect_path(folder.package()), FileFormat::kMlPackage);
  EXPECT_EQ(detect_path(folder.model()), FileFormat::kCoreMl);
  const auto whole = open_importer(folder.package(), Links::kRefused);
  const auto alone = open_importer(folder.model(), Links::kRefused);
  EXPECT_EQ(whole->format(), "mlpackage");
  EXPECT_EQ(alone->format(), "coreml");
  expect_small_numbers(*whole);
  expect_small_numbers(*alone);
  // What a package of this project holds of it is read again.
  ModelSource kept = whole->kept_source();
  expect_small_numbers(*make_importer(std::move(kept)));
}

TEST(Coreml, SaysWhatIsInAFile) {
  const auto model = importer_of_bytes(small_package());
  EXPECT_EQ(model->facts().ops, (std::map<std::string, int64_t>{{"add", 1}, {"relu", 1}}));
  EXPECT_EQ(model->facts().parameters, 3);
  EXPECT_EQ(model->facts().weight_bytes, 12);
  EXPECT_EQ(model->facts().producer, "Core ML specification 8, CoreML7");
  EXPECT_TRUE(model->signatures().empty());
  EXPECT_TRUE(model->unsupported().empty());
  const std::optional<FileFacts> facts = read_file_facts(small_package(), FileFormat::kMlPackage);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->inputs.at(0).name, "x");
  EXPECT_EQ(facts->inputs.at(0).type, "float32");
  EXPECT_EQ(facts->outputs.at(0).shape, (std::vector<std::string>{"2", "3"}));
}

TEST(Coreml, FreeDimsKeepTheirRanges) {
  // FeatureDescription x: a multiArrayType with a shapeRange of [1, 4] and [3, 3].
  const std::string range = mil::message(1, mil::number(1, 1) + mil::number(2, 4)) +
                            mil::message(1, mil::number(1, 3) + mil::number(2, 3));
  const std::string x = mil::message(1, "x") + mil::message(3, mil::message(5, mil::message(31, range)));
  const std::string program = small_program({-1, 3}, "CoreML7", mil::message(1, x));
  const auto model = importer_of_bytes(mil::package(program, mil::weights(kWeights)));
  ASSERT_TRUE(std::holds_alternative<std::string>(model->facts().inputs.at(0).shape.at(0)));
  const auto at = [&](int64_t rows) {
    ImportOptions options;
    options.input_shapes["x"] = {rows, int64_t{3}};
    return model->import(options, ops::standard_ops());
  };
  const Tensor got = evaluated(at(2), small_inputs()).at("y");
  EXPECT_EQ(got.shape(), (Shape{2, 3}));
  expect_error(ErrorCode::kInvalidArgument, "the extent 5 in dim 0, the model takes 1 to 4", [&] { at(5); });
  expect_error(ErrorCode::kShapeRequired, "\"x\"", [&] { model->import({}, ops::standard_ops()); });
  const ir::Graph symbolic = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  EXPECT_FALSE(symbolic.value(symbolic.outputs()[0]).type.shape[0].is_constant());
}

TEST(Coreml, FunctionsAreSignatures) {
  const std::string block = mil::message(2, "x"), input = mil::message(1, mil::named("x", f32({2})));
  const std::string function = input + mil::message(2, "CoreML8") + mil::entry(3, "CoreML8", block);
  const std::string description = mil::message(21, "second");
  const std::string bytes =
      mil::number(1, 9) + mil::message(2, description) +
      mil::message(502, mil::entry(2, "first", function) + mil::entry(2, "second", function));
  const auto model = importer_of_bytes(bytes);
  ASSERT_EQ(model->signatures().size(), 2u);
  EXPECT_EQ(model->signatures()[1].name, "second");
  EXPECT_EQ(model->import({}, ops::standard_ops()).name(), "second");
  ModelSource source = model->source();
  EXPECT_EQ(make_importer(source, "first")->import({}, ops::standard_ops()).name(), "first");
  expect_error(ErrorCode::kInvalidArgument, "it has first, second", [&] { make_importer(source, "third"); });
}

/// FeatureDescription of an array: its type's own fields, and whether it is optional.
std::string feature(std::string_view name, const std::string& array, bool is_optional) {
  return mil::message(1, mil::message(1, name) + mil::message(3, mil::message(5, array) +
                                                                     mil::number(1000, is_optional ? 1 : 0)));
}

TEST(Coreml, DefaultsOfOptionalInputsAreShown) {
  // ArrayFeatureType's floatDefaultValue: 0.25.
  const std::string quarter = {static_cast<char>(0x9d), 3, 0, 0, static_cast<char>(0x80), 0x3e};
  const std::string program = small_program({2, 3}, "CoreML7", feature("x", quarter, true));
  const std::string bytes = mil::package(program, mil::weights(kWeights));
  const std::optional<FileFacts> facts = read_file_facts(bytes, FileFormat::kMlPackage);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->inputs.at(0).note, "optional, 0.25 where it is not given");
  // It is an input of the package all the same.
  expect_small_numbers(*importer_of_bytes(bytes));
}

std::string state_of(const std::string& tensor) { return mil::message(5, mil::message(1, tensor)); }

std::string reading(std::string_view name) {
  return mil::operation("read_state", name, {{"input", mil::by_name("kv")}}, mil::named(name, f32({2})));
}
std::string writing(std::string_view value) {
  return mil::message(1, "write_state") + mil::entry(2, "input", mil::by_name("kv")) +
         mil::entry(2, "data", mil::by_name(value));
}
std::string summed(std::string_view a, std::string_view b, std::string_view to) {
  return mil::operation("add", to, {{"x", mil::by_name(a)}, {"y", mil::by_name(b)}},
                        mil::named(to, f32({2})));
}

Tensor pair_of(float a, float b) { return Tensor::from<float>({2}, std::vector<float>{a, b}); }

TEST(Coreml, StatesAreInputsAndOutputs) {
  const auto model =
      importer_of_bytes(mil::model({mil::named("x", f32({2})), mil::named("kv", state_of(f32({2})))},
                                   {reading("before"), summed("before", "x", "more"), writing("more"),
                                    reading("after"), summed("before", "after", "y")},
                                   {"y"}, "CoreML8"));
  ASSERT_EQ(model->facts().inputs.size(), 2u);
  ASSERT_EQ(model->facts().outputs.size(), 2u);
  EXPECT_EQ(model->facts().inputs[1].name, "kv");
  EXPECT_EQ(model->facts().inputs[1].kind, ValueKind::kTensor);
  EXPECT_EQ(model->facts().outputs[1].name, "kv_out");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  ir::verify(graph);
  const Tensors first = evaluated(graph, {{"x", pair_of(1, 2)}, {"kv", pair_of(0, 0)}});
  expect_same(first.at("kv_out"), pair_of(1, 2), 0);
  const Tensors second = evaluated(graph, {{"x", pair_of(3, 4)}, {"kv", first.at("kv_out")}});
  expect_same(second.at("y"), pair_of(5, 8), 0);
  expect_same(second.at("kv_out"), pair_of(4, 6), 0);
}

TEST(Coreml, StatesThatABranchWritesAreChosen) {
  const std::string truth = mil::tensor(1, {});
  const auto branch = [](const std::vector<std::string>& operations, std::string_view output) {
    std::string block = mil::message(2, output);
    for (const std::string& each : operations) block += mil::message(3, each);
    return mil::message(4, block);
  };
  const std::string cond = mil::message(1, "cond") + mil::entry(2, "pred", mil::by_name("p")) +
                           mil::message(3, mil::named("y", f32({2}))) +
                           branch({summed("x", "x", "twice"), writing("twice")}, "twice") + branch({}, "x");
  const auto model = importer_of_bytes(
      mil::model({mil::named("x", f32({2})), mil::named("kv", state_of(f32({2}))), mil::named("p", truth)},
                 {cond}, {"y"}, "CoreML8"));
  const ir::Graph graph = model->import({}, ops::standard_ops());
  ir::verify(graph);
  for (const bool holds : {false, true}) {
    Tensor p(DType::kBool, {});
    p.set_element_int(0, holds ? 1 : 0);
    const Tensors got = evaluated(graph, {{"x", pair_of(1, 2)}, {"kv", pair_of(7, 8)}, {"p", p}});
    expect_same(got.at("kv_out"), holds ? pair_of(2, 4) : pair_of(7, 8), 0);
    expect_same(got.at("y"), holds ? pair_of(2, 4) : pair_of(1, 2), 0);
  }
}

TEST(Coreml, StatesAreReadByTheirOperationsAlone) {
  const auto refuse = [](const std::string& node, const std::string& text) {
    const auto model = importer_of_bytes(mil::model(
        {mil::named("x", f32({2})), mil::named("kv", state_of(f32({2})))}, {node}, {"y"}, "CoreML8"));
    expect_error(ErrorCode::kInvalidModel, text, [&] { model->import({}, ops::standard_ops()); });
  };
  refuse(summed("x", "kv", "y"), "\"kv\" is a state, expected a tensor");
  refuse(mil::operation("read_state", "y", {{"input", mil::by_name("x")}}, mil::named("y", f32({2}))),
         "operand input is no state");
}

TEST(Coreml, ClassifiersGiveTheirLabels) {
  std::string classes;
  for (const char* label : {"cat", "dog", "gnu"}) classes += mil::message(1, mil::text_value(label));
  const std::string list = mil::message(2, mil::message(2, "")) + mil::message(3, mil::message(3, classes));
  const std::string node = mil::message(1, "classify") + mil::entry(2, "probabilities", mil::by_name("x")) +
                           mil::entry(2, "classes", mil::by_value(list)) +
                           mil::message(3, mil::named("label", mil::tensor(mil::kString, {}))) +
                           mil::message(3, mil::named("all", mil::message(4, "")));
  const auto model = importer_of_bytes(mil::model({mil::named("x", f32({1, 3}))}, {node}, {"label", "all"}));
  EXPECT_EQ(model->facts().outputs.at(1).kind, ValueKind::kTensor);
  EXPECT_EQ(model->facts().outputs.at(1).shape, (DimShape{int64_t{3}}));
  const Tensor x = Tensor::from<float>({1, 3}, std::vector<float>{0.25F, 0.5F, 0.25F});
  const Tensors got = evaluated(model->import({}, ops::standard_ops()), {{"x", x}});
  EXPECT_EQ(texts_of(got.at("label")), (std::vector<std::string>{"dog"}));
  expect_same(got.at("all"), x.reshaped({3}), 0);
}

TEST(Coreml, OtherKindsOfModelsAreRefused) {
  const std::string head = mil::number(1, 4) + mil::message(2, mil::message(1, ""));
  expect_error(ErrorCode::kNotSupported, "this is a neural network, and ML Programs alone are imported",
               [&] { importer_of_bytes(head + mil::message(500, "")); });
  expect_error(ErrorCode::kNotSupported, "convert_to=\"mlprogram\"",
               [&] { importer_of_bytes(head + mil::message(302, "")); });
  expect_error(ErrorCode::kNotSupported, "a function has blocks for CoreML17 alone", [&] {
    importer_of_bytes(small_program({2, 3}, "CoreML17"));
  });
}

TEST(Coreml, AllOperationsThatAreMissingAreNamed) {
  const auto unknown = [](const char* type, const char* name) {
    return mil::operation(type, name, {{"x", mil::by_name("x")}}, mil::named(name, f32({2})));
  };
  const auto model = importer_of_bytes(
      mil::model({mil::named("x", f32({2}))},
                 {unknown("fancy", "a"), unknown("odd", "b"), unknown("fancy", "c")}, {"a", "b", "c"}));
  const std::vector<ErrorDetail> details = model->unsupported();
  ASSERT_EQ(details.size(), 2u);
  EXPECT_EQ(details[0].pointer, "a");
  EXPECT_EQ(details[0].detail, "op fancy, 2 nodes");
  expect_error(ErrorCode::kOperatorNotImplemented, "2 operators are not supported: op fancy, 2 nodes",
               [&] { model->import({}, ops::standard_ops()); });
  try {
    model->import({}, ops::standard_ops());
  } catch (const Error& error) {
    EXPECT_NE(refused_graph(*model, error).find("\"refused\""), std::string::npos);
  }
}

TEST(Coreml, AnOperandThatNobodyReadsIsRefused) {
  const std::string relu =
      mil::operation("relu", "r", {{"x", mil::by_name("x")}, {"slope", mil::by_value(mil::ints_value({1}))}},
                     mil::named("y", f32({2})));
  const auto model = importer_of_bytes(mil::model({mil::named("x", f32({2}))}, {relu}, {"y"}));
  expect_error(ErrorCode::kOperatorNotImplemented, "op relu: slope: the operand is not implemented",
               [&] { model->import({}, ops::standard_ops()); });
}

TEST(Coreml, OperandsOfTooFewAxesAreErrors) {
  const auto fails = [](const std::string& operation, const std::string& text) {
    SCOPED_TRACE(text);
    const auto model = importer_of_bytes(
        mil::model({mil::named("x", f32({})), mil::named("v", f32({4}))}, {operation}, {"y"}));
    expect_error(ErrorCode::kInvalidModel, text, [&] { model->import({}, ops::standard_ops()); });
  };
  fails(mil::operation("list_length", "n", {{"ls", mil::by_name("x")}},
                       mil::named("y", mil::tensor(mil::kInt32, {1}))),
        "ls is no list");
  std::vector<mil::Operand> all;
  for (const char* name : {"x", "initial_h", "initial_c", "weight_ih", "weight_hh"})
    all.push_back({name, mil::by_name("v")});
  fails(mil::operation("lstm", "n", all, mil::named("y", f32({1}))), "weights of shape [4]");
  const std::string window = mil::by_value(mil::ints_value({2}));
  fails(mil::operation("max_pool", "n", {{"x", mil::by_name("v")}, {"kernel_sizes", window}},
                       mil::named("y", f32({4}))),
        "operation 0, max_pool \"n\": the input has rank 1");
}

TEST(Coreml, TooFewOperandsAndTooShortListsAreErrors) {
  const auto fails = [](const std::string& operation, const std::string& text) {
    SCOPED_TRACE(text);
    const auto model =
        importer_of_bytes(mil::model({mil::named("x", f32({1, 1, 4, 4}))}, {operation}, {"y"}));
    expect_error(ErrorCode::kInvalidModel, text, [&] { model->import({}, ops::standard_ops()); });
  };
  const mil::Operand x = {"x", mil::by_name("x")};
  const std::string y = mil::named("y", f32({1, 1, 4, 4}));
  fails(mil::operation("add", "n", {x}, y), "operation 0, add \"n\": operand y is missing");
  fails(mil::operation("max_pool", "n", {x, {"kernel_sizes", mil::by_value(mil::ints_value({2}))}}, y),
        "operation 0, max_pool \"n\": kernel_sizes has 1 numbers");
  fails(mil::operation("transpose", "n", {x, {"perm", mil::by_value(mil::ints_value({0}))}}, y), "\"n\"");
}

TEST(Coreml, OutputsAreWhatTheFileSays) {
  const auto relu = [](const std::string& type) {
    const std::string node = mil::operation("relu", "r", {{"x", mil::by_name("x")}}, mil::named("y", type));
    return importer_of_bytes(mil::model({mil::named("x", f32({2}))}, {node}, {"y"}));
  };
  expect_error(ErrorCode::kInvalidModel, "output 0 is float32, the file says int32",
               [&] { relu(mil::tensor(mil::kInt32, {2}))->import({}, ops::standard_ops()); });
  expect_error(ErrorCode::kInvalidModel, "has rank 1, the file says 2", [&] {
    relu(f32({2, 1}))->import({}, ops::standard_ops());
  });
  expect_error(ErrorCode::kInvalidModel, "the file says 3 in dim 0",
               [&] { relu(f32({3}))->import({}, ops::standard_ops()); });
}

void expect_wrong_weights(const std::string& file, const std::string& text) {
  SCOPED_TRACE(text);
  const auto model = importer_of_bytes(mil::package(small_program(), file));
  expect_error(ErrorCode::kInvalidModel, text, [&] { model->import({}, ops::standard_ops()); });
}

TEST(Coreml, BlobsAreChecked) {
  const std::string good = mil::weights(kWeights);
  const auto with = [&](size_t at, uint64_t value, size_t bytes) {
    std::string file = good;
    for (size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
    return file;
  };
  expect_wrong_weights(good.substr(0, 40), "no weight file of version 2");
  expect_wrong_weights(with(4, 3, 4), "no weight file of version 2");
  expect_wrong_weights(good.substr(0, 100), "the blob is outside of the file");
  expect_wrong_weights(with(64, 0, 4), "no blob begins here");
  expect_wrong_weights(with(68, 1, 4), "a constant of fp32 lies in its file as fp16");
  expect_wrong_weights(with(68, 99, 4), "the blob's type is not known");
  expect_wrong_weights(with(72, 8, 8), "has 8 bytes");
  expect_wrong_weights(with(72, UINT64_MAX, 8), "are outside of the file");
  expect_wrong_weights(with(80, UINT64_MAX, 8), "are outside of the file");
  expect_wrong_weights(good.substr(0, good.size() - 1), "are outside of the file");
  const auto alone = importer_of_bytes(small_program());
  expect_error(ErrorCode::kInvalidModel, "the model has no file \"weights/weight.bin\"",
               [&] { alone->import({}, ops::standard_ops()); });
}

TEST(Coreml, WeightsLieInTheModel) {
  for (const char* file : {"/etc/passwd", "@model_path/../secret", "weights.bin"}) {
    const std::string value =
        mil::message(2, f32({3})) + mil::message(5, mil::message(1, file) + mil::number(2, 64));
    const std::string sum = mil::operation(
        "add", "sum", {{"x", mil::by_name("x")}, {"y", mil::by_value(value)}}, mil::named("y", f32({3})));
    const auto model = importer_of_bytes(mil::model({mil::named("x", f32({3}))}, {sum}, {"y"}));
    expect_error(ErrorCode::kInvalidModel, "which is not in the model",
                 [&] { model->import({}, ops::standard_ops()); });
  }
}

TEST(Coreml, ManifestsAreChecked) {
  const auto refuse = [](const std::string& manifest, const std::string& text) {
    expect_error(ErrorCode::kInvalidModel, text,
                 [&] { importer_of_bytes(mil::package(small_program(), mil::weights(kWeights), manifest)); });
  };
  refuse("{", "Manifest.json: ");
  refuse("{}", "it has no \"rootModelIdentifier\"");
  refuse(R"({"rootModelIdentifier":"B","itemInfoEntries":{}})", "it has no \"B\"");
  refuse(mil::manifest("../outside"), "is no path in the package");
  refuse(mil::manifest("/etc/passwd"), "is no path in the package");
  refuse(mil::manifest("com.apple.CoreML/other.mlmodel"), "which Manifest.json names");
}

TEST(Coreml, CutOffFilesAreErrors) {
  const std::string bytes = small_program();
  const std::set<ErrorCode> refusals = {ErrorCode::kInvalidModel, ErrorCode::kNotSupported};
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    try {
      importer_of_bytes(mil::package(bytes.substr(0, size), mil::weights(kWeights)))
          ->import({}, ops::standard_ops());
      ADD_FAILURE() << "imported";
    } catch (const Error& error) {
      EXPECT_EQ(refusals.count(error.code()), 1u) << error.message();
    }
  }
}

TEST(Coreml, DeepValuesAreRefused) {
  std::string value = mil::text_value("x");
  for (int i = 0; i < 200; ++i) value = mil::message(3, mil::message(3, mil::message(1, value)));
  expect_error(ErrorCode::kInvalidModel, "nested deeper than", [&] {
    importer_of_bytes(mil::model({mil::named("x", f32({2}))}, {mil::constant("c", f32({2}), value)}, {"x"}));
  });
}

/// A program with operands of all forms, of which broken copies are made.
std::string rich_program() {
  const auto node = [](const char* type, const char* name, const std::vector<mil::Operand>& operands,
                       const std::vector<int64_t>& dims) {
    return mil::operation(type, name, operands, mil::named(name, f32(dims)));
  };
  const std::vector<std::string> operations = {
      mil::constant("w", f32({3}), mil::blob_value(kFp32, {3}, 64)),
      mil::constant("to", mil::tensor(mil::kInt32, {2}), mil::ints_value({3, -1})),
      node("add", "a", {{"x", mil::by_name("x")}, {"y", mil::by_name("w")}}, {2, 3}),
      node("reshape", "b", {{"x", mil::by_name("a")}, {"shape", mil::by_name("to")}}, {3, 2}),
      node("transpose", "c", {{"x", mil::by_name("b")}, {"perm", mil::by_value(mil::ints_value({1, 0}))}},
           {2, 3}),
      node("gelu", "d", {{"x", mil::by_name("c")}, {"mode", mil::by_value(mil::text_value("EXACT"))}},
           {2, 3}),
      node("concat", "e",
           {{"values", mil::by_name("d") + mil::by_name("a")}, {"axis", mil::by_value(mil::ints_value({0}))}},
           {4, 3}),
      node("slice_by_size", "y",
           {{"x", mil::by_name("e")},
            {"begin", mil::by_value(mil::ints_value({1, 0}))},
            {"size", mil::by_value(mil::ints_value({2, -1}))}},
           {2, 3})};
  return mil::model({mil::named("x", f32({2, 3}))}, operations, {"y"});
}

TEST(Coreml, BrokenCopiesAreImportedOrRefused) {
  const std::string bytes = rich_program(), file = mil::weights(kWeights);
  const auto import_copy = [&](size_t, std::mt19937& random) {
    std::string copy = bytes, weights = file;
    for (size_t k = 0; k < 1 + random() % 3; ++k)
      copy[random() % copy.size()] ^= static_cast<char>(1 << random() % 8);
    if (random() % 4 == 0) weights[random() % weights.size()] ^= static_cast<char>(1 << random() % 8);
    ir::verify(importer_of_bytes(mil::package(copy, weights))->import({}, ops::standard_ops()));
  };
  expect_imported_or_refused(kCopiesOfPrograms, 23, import_copy, {ErrorCode::kShapeRequired});
}

}  // namespace
}  // namespace tensormill::frontend
