#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/frontend/tflite/facts.h"
#include "compiler/frontend/tflite/model.h"
#include "compiler/frontend/tflite/notes.h"
#include "runtime/base/error.h"
#include "tests/readers/fixture_files.h"

namespace tensormill::frontend::tflite {
namespace {

const char* const kFixtures[] = {"net_float32", "net_float16", "net_dynamic",  "net_int8",
                                 "net_int16",   "lstm",        "control_flow", "options"};

/// Names without underscores: TensorFlow's reader and the schema set them differently.
std::string joined(std::string name) {
  std::erase(name, '_');
  return name;
}

template <typename T>
Json field_json(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<int64_t>(value);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return std::string(value);
  } else if constexpr (std::is_same_v<T, Bools>) {
    Json list = Json::array();
    for (const uint8_t each : value) list.push_back(each != 0);
    return list;
  } else if constexpr (requires { value.begin(); }) {
    return Json(std::vector(value.begin(), value.end()));
  } else {
    return value;
  }
}

struct Printed {
  std::string table;
  std::map<std::string, Json> fields;
};

Printed print(const Options& options) {
  Printed printed;
#define TFL_FIELD(type, field) printed.fields[joined(#field)] = field_json(from->field);
#define TFL_OPTIONS(name, union_number, number, ...)    \
  if (const auto* from = std::get_if<name>(&options)) { \
    printed.table = #name;                              \
    __VA_ARGS__                                         \
  }
#include "compiler/frontend/tflite/options.def"
#undef TFL_OPTIONS
#undef TFL_FIELD
  return printed;
}

/// Bytes are lists of numbers in TensorFlow's words.
bool same_field(const Json& own, const Json& expected) {
  if (!own.is_string() || !expected.is_array()) return own == expected;
  const auto text = own.get<std::string>();
  return std::equal(text.begin(), text.end(), expected.begin(), expected.end(),
                    [](char one, const Json& other) { return static_cast<unsigned char>(one) == other; });
}

void expect_options(const Options& options, const Json& expected) {
  const Printed own = print(options);
  if (expected.is_null()) {
    EXPECT_EQ(own.table, "");
    return;
  }
  const Json& fields = expected.at("fields");
  // A table without fields is not read.
  if (own.table.empty()) {
    EXPECT_TRUE(fields.empty()) << expected;
    return;
  }
  EXPECT_EQ(own.table, expected.at("table").get<std::string>());
  // Subgraphs are left at the first one, the only one that there is; lists of them are left out.
  std::set<std::string> said;
  for (const auto& [name, value] : fields.items()) said.insert(joined(name));
  for (const auto& [name, value] : own.fields) {
    EXPECT_TRUE(said.contains(name) || name.find("subgraph") != std::string::npos ||
                name == "calledcomputations" || value == Json::array())
        << own.table << " " << name;
  }
  for (const auto& [name, value] : fields.items()) {
    const auto found = own.fields.find(joined(name));
    ASSERT_NE(found, own.fields.end()) << expected.at("table") << " " << name;
    EXPECT_TRUE(same_field(found->second, value))
        << expected.at("table") << " " << name << ": " << found->second;
  }
}

template <typename T>
std::vector<T> all(std::span<const T> list) {
  return {list.begin(), list.end()};
}

void expect_tensor(const Tensor& tensor, const Json& expected) {
  EXPECT_EQ(tensor.name, expected.at("name").get<std::string>());
  EXPECT_EQ(static_cast<int>(tensor.type), expected.at("type").get<int>());
  EXPECT_EQ(all(tensor.shape), expected.at("shape").get<std::vector<int32_t>>());
  EXPECT_EQ(all(tensor.signature), expected.at("signature").get<std::vector<int32_t>>());
  EXPECT_EQ(tensor.is_variable, expected.at("is_variable").get<bool>());
  EXPECT_EQ(tensor.data.size(), expected.at("bytes").get<size_t>());
  EXPECT_EQ(tensor.quantization.is_quantized(), expected.contains("scale"));
  if (!expected.contains("scale")) return;
  EXPECT_EQ(all(tensor.quantization.scale), expected.at("scale").get<std::vector<float>>());
  EXPECT_EQ(all(tensor.quantization.zero_point), expected.at("zero_point").get<std::vector<int64_t>>());
  EXPECT_EQ(tensor.quantization.dimension, expected.at("dimension").get<int32_t>());
}

void expect_subgraph(const Subgraph& graph, const Json& expected) {
  EXPECT_EQ(all(graph.inputs), expected.at("inputs").get<std::vector<int32_t>>());
  EXPECT_EQ(all(graph.outputs), expected.at("outputs").get<std::vector<int32_t>>());
  ASSERT_EQ(graph.tensors.size(), expected.at("tensors").size());
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    expect_tensor(graph.tensors[i], expected.at("tensors")[i]);
  ASSERT_EQ(graph.operators.size(), expected.at("operators").size());
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const Json& node = expected.at("operators")[i];
    EXPECT_EQ(graph.operators[i].code, node.at("code").get<uint32_t>());
    EXPECT_EQ(all(graph.operators[i].inputs), node.at("inputs").get<std::vector<int32_t>>());
    EXPECT_EQ(all(graph.operators[i].outputs), node.at("outputs").get<std::vector<int32_t>>());
    expect_options(graph.operators[i].options, node.at("options"));
  }
}

class TfliteFixtureTest : public testing::TestWithParam<const char*> {};

TEST_P(TfliteFixtureTest, IsReadAsTensorFlowReadsIt) {
  const auto file = fixture(std::string("tflite/") + GetParam() + ".tflite");
  const Json expected = fixture_json(std::string("tflite/") + GetParam() + ".json");
  const Model model = read_model(file->text());
  ASSERT_EQ(model.codes.size(), expected.at("codes").size());
  for (size_t i = 0; i < model.codes.size(); ++i) {
    EXPECT_EQ(model.codes[i].builtin, expected.at("codes")[i].at("code").get<int32_t>());
    EXPECT_EQ(model.codes[i].version, expected.at("codes")[i].at("version").get<int32_t>());
    EXPECT_EQ(model.codes[i].custom, expected.at("codes")[i].at("custom").get<std::string>());
  }
  ASSERT_EQ(model.subgraphs.size(), expected.at("subgraphs").size());
  for (size_t i = 0; i < model.subgraphs.size(); ++i)
    expect_subgraph(model.subgraphs[i], expected.at("subgraphs")[i]);
  ASSERT_EQ(model.signatures.size(), expected.at("signatures").size());
  for (size_t i = 0; i < model.signatures.size(); ++i) {
    const Json& signature = expected.at("signatures")[i];
    EXPECT_EQ(model.signatures[i].key, signature.at("key").get<std::string>());
    for (const NamedTensor& input : model.signatures[i].inputs)
      EXPECT_EQ(input.tensor, signature.at("inputs").at(std::string(input.name)).get<uint32_t>());
    EXPECT_EQ(model.signatures[i].outputs.size(), signature.at("outputs").size());
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TfliteFixtureTest, testing::ValuesIn(kFixtures),
                         [](const auto& info) { return std::string(info.param); });

TEST(TfliteTest, EveryTableOfOptionsStandsInTheFixture) {
  const auto file = fixture("tflite/options.tflite");
  const Model model = read_model(file->text());
  std::set<std::string> seen;
  for (const Operator& node : model.subgraphs.front().operators) seen.insert(print(node.options).table);
#define TFL_OPTIONS(name, union_number, number, ...) EXPECT_TRUE(seen.contains(#name)) << #name;
#include "compiler/frontend/tflite/options.def"
#undef TFL_OPTIONS
}

TEST(TfliteTest, FactsNameTheKindOfNumbers) {
  const std::map<std::string, std::string> kinds = {{"net_float32", "float32"},
                                                    {"net_float16", "float32, float16 constants"},
                                                    {"net_int8", "int8 weights and activations"},
                                                    {"net_int16", "int8 weights, int16 activations"}};
  for (const auto& [name, kind] : kinds) {
    const auto file = fixture("tflite/" + name + ".tflite");
    EXPECT_EQ(quantization_kind(read_model(file->text())), kind) << name;
  }
}

TEST(TfliteTest, FactsHaveTheSignaturesNamesAndFreeDims) {
  const auto file = fixture("tflite/net_int8.tflite");
  const FileFacts facts = read_facts(file->text());
  EXPECT_EQ(facts.version, "schema 3, 1 subgraph");
  ASSERT_EQ(facts.inputs.size(), 1u);
  EXPECT_EQ(facts.inputs[0].name, "image");
  EXPECT_EQ(facts.inputs[0].type, "int8");
  EXPECT_EQ(facts.inputs[0].shape, (std::vector<std::string>{"?", "8", "8", "3"}));
  EXPECT_TRUE(facts.inputs[0].note.starts_with("scale 0.0039")) << facts.inputs[0].note;
  EXPECT_EQ(facts.ops.at("CONV_2D"), 2);
  EXPECT_EQ(facts.ops.at("ADD"), 1);
  EXPECT_GT(facts.parameters, 300);
}

TEST(TfliteTest, BrokenFilesNameTheTableAndTheByte) {
  const std::string whole(fixture("tflite/net_float32.tflite")->text());
  const auto message_of = [](const std::string& bytes) {
    try {
      read_model(mapped(bytes)->text());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_NE(message_of(whole.substr(0, whole.size() / 2)).find(" at byte "), std::string::npos);
  EXPECT_NE(message_of("nothing of the kind").find("TFL3"), std::string::npos);
}

TEST(TfliteTest, TwoThousandBrokenCopiesAreRefusedOrRead) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (const char* name : {"tflite/net_int8.tflite", "tflite/control_flow.tflite", "tflite/lstm.tflite",
                           "tflite/options.tflite"}) {
    const std::string whole(fixture(name)->text());
    for (int i = 0; i < 500; ++i) {
      try {
        read_facts(mapped(broken_copy(whole, random))->text());
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kNotSupported)
            << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 500);
}

Tensor sparse_tensor(Ints shape, std::string_view data, Sparsity sparsity) {
  Tensor tensor;
  tensor.type = TensorType::kInt8;
  tensor.shape = shape;
  tensor.data = data;
  tensor.sparsity = std::move(sparsity);
  return tensor;
}

TEST(TfliteSparseTest, RowsInCompressedForm) {
  const std::vector<int32_t> shape = {2, 3}, order = {0, 1};
  Sparsity sparsity;
  sparsity.traversal_order = order;
  sparsity.dims = {{false, 2, {}, {}}, {true, 0, {0, 2, 3}, {0, 2, 1}}};
  EXPECT_EQ(densify(sparse_tensor(shape, "abc", sparsity), 100), std::string("a\0b\0c\0", 6));
}

TEST(TfliteSparseTest, BlocksRefineTheirDims) {
  // A matrix of 4 by 4 in blocks of 2 by 2, of which the first row has the second, the second row the first.
  const std::vector<int32_t> shape = {4, 4}, order = {0, 1, 2, 3}, blocks = {0, 1};
  Sparsity sparsity;
  sparsity.traversal_order = order;
  sparsity.block_map = blocks;
  sparsity.dims = {{false, 2, {}, {}}, {true, 0, {0, 1, 2}, {1, 0}}, {false, 2, {}, {}}, {false, 2, {}, {}}};
  const std::string dense = densify(sparse_tensor(shape, "abcdefgh", sparsity), 100);
  EXPECT_EQ(dense, std::string("\0\0ab"
                               "\0\0cd"
                               "ef\0\0"
                               "gh\0\0",
                               16));
}

TEST(TfliteSparseTest, WhatWouldBeTooLargeIsRefused) {
  const std::vector<int32_t> shape = {1 << 20, 1 << 20}, order = {0, 1};
  Sparsity sparsity;
  sparsity.traversal_order = order;
  EXPECT_THROW(densify(sparse_tensor(shape, "", sparsity), 1 << 20), Error);
}

TEST(TfliteDataTest, NibblesAreSignedAndLowFirst) {
  EXPECT_EQ(unpack_bits(TensorType::kInt4, "\x1f\x08", 3), "\xff\x01\xf8");
  EXPECT_EQ(unpack_bits(TensorType::kUInt4, "\x1f", 2), "\x0f\x01");
  EXPECT_EQ(unpack_bits(TensorType::kInt2, "\xe4", 4), std::string("\0\1\xfe\xff", 4));
}

TEST(TfliteDataTest, StringsLieBehindTheirOffsets) {
  const std::string data("\2\0\0\0\x10\0\0\0\x13\0\0\0\x14\0\0\0abcd", 20);
  EXPECT_EQ(read_strings(data, 10), (std::vector<std::string_view>{"abc", "d"}));
  EXPECT_THROW(read_strings(data, 1), Error);
  EXPECT_THROW(read_strings(data.substr(0, 18), 10), Error);
  EXPECT_THROW(read_strings("", 10), Error);
}

TEST(TfliteNotesTest, LinesOfLabels) {
  EXPECT_EQ(label_lines("cat\r\ndog\n"), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(label_lines("a\n\nb"), (std::vector<std::string>{"a", "", "b"}));
}

}  // namespace
}  // namespace tensormill::frontend::tflite
