#include <gtest/gtest.h>

#include "compiler/frontend/formats/detect.h"
#include "tests/readers/fixture_files.h"
#include "tests/zip_bytes.h"

namespace tensormill::frontend {
namespace {

/// A field with a length, a field with a number.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

TEST(DetectTest, FilesAreToldByContent) {
  EXPECT_EQ(detect_format(fixture("tflite/net_int8.tflite")->text()), FileFormat::kTflite);
  EXPECT_EQ(detect_format("graph \"g\" (%x: f32[2]) {\n  return %x\n}\n"), FileFormat::kGraphFile);
  EXPECT_EQ(detect_format(MappedFile::open(std::string(TM_SOURCE_DIR) + "/tests/models/digits.onnx")->text()),
            FileFormat::kOnnx);
}

TEST(DetectTest, FixturesOfEveryFormat) {
  const std::map<std::string, FileFormat> formats = {{"keras/net.keras", FileFormat::kKeras},
                                                     {"keras/net.h5", FileFormat::kKerasH5},
                                                     {"pytorch/net.pt2", FileFormat::kPt2},
                                                     {"pytorch/net_torch2_7.pt2", FileFormat::kPt2},
                                                     {"pytorch/traced.pt", FileFormat::kTorchScript},
                                                     {"pytorch/state_dict.pt", FileFormat::kStateDict},
                                                     {"pytorch/module.pt", FileFormat::kPickledModule},
                                                     {"pytorch/state_dict_old.pt", FileFormat::kStateDict},
                                                     {"caffe2_nets/squeeze.zip", FileFormat::kCaffe2},
                                                     {"cntk_nets/residual.model", FileFormat::kCntk},
                                                     {"cntk_nets/steps.model", FileFormat::kCntk},
                                                     {"tensorflow/frozen.pb", FileFormat::kFrozenGraph}};
  for (const auto& [name, format] : formats) EXPECT_EQ(detect_format(fixture(name)->text()), format) << name;
  EXPECT_EQ(detect_path(fixture_path("tensorflow/net")), FileFormat::kSavedModel);
  EXPECT_EQ(detect_path(fixture_path("tensorflow/net/saved_model.pb")), FileFormat::kSavedModel);
}

TEST(DetectTest, WhatHasAReaderIsDescribed) {
  const std::map<std::string, std::string> words = {{"pytorch/net.pt2", "schema 8."},
                                                    {"caffe2_nets/squeeze.zip", "23 operators, 16 fills"},
                                                    {"cntk_nets/mlp.model", "12 operators"},
                                                    {"tensorflow/net", "TensorFlow 2.21.0"},
                                                    {"tensorflow/frozen.pb", "producer "}};
  for (const auto& [name, text] : words) {
    const std::string path = fixture_path(name);
    const std::optional<FileFacts> facts = read_path_facts(path, detect_path(path));
    ASSERT_TRUE(facts.has_value()) << path;
    EXPECT_NE(facts->version.find(text), std::string::npos) << facts->version;
    EXPECT_FALSE(facts->ops.empty());
  }
}

TEST(DetectTest, ProtobufMessagesAreToldByTheirFields) {
  const std::string node = field(1, "x") + field(2, "Placeholder") + field(5, field(1, "dtype"));
  EXPECT_EQ(detect_format(field(1, node) + field(1, node)), FileFormat::kFrozenGraph);
  EXPECT_EQ(detect_format(field(1, 1) + field(2, field(2, field(1, node)))), FileFormat::kSavedModel);
  EXPECT_EQ(detect_format(field(1, 8) + field(2, "writer") + field(7, "graph")), FileFormat::kOnnx);
  const std::string op = field(1, "in") + field(2, "out") + field(3, "") + field(4, "Conv");
  EXPECT_EQ(detect_format(field(1, "net") + field(2, op)), FileFormat::kCaffe2);
  // A net without a name, or with an empty one.
  EXPECT_EQ(detect_format(field(2, op)), FileFormat::kCaffe2);
  EXPECT_EQ(detect_format(field(1, "") + field(2, op)), FileFormat::kCaffe2);
  // CNTK: entries whose values begin with a version and a type.
  const std::string value = field(1, 1) + field(2, 6) + field(8, "Plus3");
  const auto entry = [](const std::string& key, const std::string& held) {
    return field(2, field(1, key) + field(2, held));
  };
  EXPECT_EQ(detect_format(field(1, 2) + entry("version", field(1, 1) + field(2, 3) + field(5, 3)) +
                          entry("root", value)),
            FileFormat::kCntk);
  EXPECT_EQ(detect_format(field(1, 1) + entry("root", value)), FileFormat::kCntk);
  EXPECT_EQ(detect_format("ktnc\x01"), FileFormat::kCntk);
  // A dictionary of something else.
  EXPECT_EQ(detect_format(field(1, 2) + entry("learner", value)), FileFormat::kUnknown);
  EXPECT_EQ(detect_format(std::string("B\0C\0N\0\0\0B\0V\0", 12)), FileFormat::kCntkV1);
  // Core ML: the specification's version, a description, and a model at 502.
  EXPECT_EQ(detect_format(field(1, 7) + field(2, field(1, "")) + std::string("\xb2\x1f\x02", 3) + "ab"),
            FileFormat::kCoreMl);
}

TEST(DetectTest, JsonIsToldByItsMembers) {
  EXPECT_EQ(detect_format(R"({"format":"graph-model","modelTopology":{},"weightsManifest":[]})"),
            FileFormat::kTfjsGraph);
  EXPECT_EQ(detect_format(R"({"modelTopology":{"model_config":{}},"weightsManifest":[]})"),
            FileFormat::kTfjsLayers);
  EXPECT_EQ(detect_format(R"({"nodes":[],"arg_nodes":[0],"heads":[[0,0,0]]})"), FileFormat::kMxnet);
  EXPECT_EQ(detect_format(R"({"arg_nodes":[0],"inner":{"heads":1}})"), FileFormat::kUnknown);
}

TEST(DetectTest, FilesOfMxnetStandTogether) {
  EXPECT_EQ(detect_format(stored_zip({{"a/net-symbol.json", "{}"}, {"a/net-0000.params", ""}})),
            FileFormat::kMxnet);
  EXPECT_EQ(detect_format(stored_zip({{"a/net-symbol.json", "{}"}})), FileFormat::kUnknown);
  EXPECT_EQ(detect_format(std::string("\x12\x01", 2) + std::string(22, '\0')), FileFormat::kMxnetParameters);
}

TEST(DetectTest, MarksAtTheStart) {
  EXPECT_EQ(detect_format("\x89HDF\r\n\x1a\n and no model"), FileFormat::kHdf5);
  EXPECT_EQ(detect_format("\x89HDF\r\n\x1a\n model_config"), FileFormat::kKerasH5);
  EXPECT_EQ(detect_format("\x80\x04N."), FileFormat::kPickle);
  EXPECT_EQ(detect_format("GGUF\3"), FileFormat::kGguf);
  EXPECT_EQ(detect_format(std::string("\x02\0\0\0\0\0\0\0{\"\"}", 12)), FileFormat::kSafetensors);
  EXPECT_EQ(detect_format("# a graph\n"), FileFormat::kUnknown);
  EXPECT_EQ(detect_format("node {\n  name: \"x\"\n}"), FileFormat::kFrozenGraphText);
  EXPECT_EQ(detect_format(""), FileFormat::kUnknown);
}

TEST(DetectTest, WhatCannotBeImportedSaysWhatItIsAndWhatToDo) {
  const auto file = fixture("pytorch/module.pt");
  try {
    check_importable(file->text());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_NE(error.message().find("this is a pickled PyTorch module"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("; TensorMill does not import it yet: its program"), std::string::npos)
        << error.message();
  }
}

TEST(DetectTest, EveryRowHasAdvice) {
  for (const FormatRow& row : all_formats()) {
    EXPECT_FALSE(row.title.empty());
    EXPECT_TRUE(row.is_importable || !row.advice.empty()) << row.name;
  }
}

}  // namespace
}  // namespace tensormill::frontend
