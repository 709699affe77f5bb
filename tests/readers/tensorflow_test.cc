#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include "compiler/frontend/tensorflow/model.h"
#include "compiler/frontend/wire/checkpoint/crc32c.h"
#include "compiler/frontend/wire/checkpoint/sstable.h"
#include "runtime/base/error.h"
#include "tests/readers/fixture_files.h"

namespace tensormill::frontend::tensorflow {
namespace {

/// A folder of fixtures; one file may be another.
class Folder {
public:
  explicit Folder(std::string name) : name_(std::move(name)) {}
  void replace(const std::string& file, std::string bytes) { kept_[file] = std::move(bytes); }
  ModelFiles files() {
    return [this](const std::string& file) -> std::optional<std::string_view> {
      if (!kept_.contains(file)) {
        const std::string path = fixture_path(name_ + "/" + file);
        if (!std::filesystem::is_regular_file(path)) return std::nullopt;
        kept_[file] = read_file(path);
      }
      return kept_.at(file);
    };
  }

private:
  std::string name_;
  std::map<std::string, std::string> kept_;
};

double sum_of(const Variable& variable) {
  double sum = 0;
  const auto width = static_cast<size_t>(type_bytes(variable.dtype));
  for (size_t at = 0; at < variable.data.size(); at += width) {
    float real = 0;
    int64_t whole = 0;
    if (variable.dtype == DataType::kFloat) {
      std::memcpy(&real, variable.data.data() + at, sizeof(real));
      sum += real;
    } else {
      std::memcpy(&whole, variable.data.data() + at, width);
      sum += static_cast<double>(whole);
    }
  }
  return sum;
}

class SavedModelTest : public testing::TestWithParam<const char*> {};

TEST_P(SavedModelTest, IsReadAsTensorFlowReadsIt) {
  Folder folder(std::string("tensorflow/") + GetParam());
  const Json said = fixture_json(std::string("tensorflow/") + GetParam() + ".json");
  const ModelFiles files = folder.files();
  const SavedModel model = read_saved_model(files);
  EXPECT_EQ(model.graph.nodes.size(), said.at("nodes").get<size_t>());
  EXPECT_EQ(model.graph.functions.size(), said.at("functions").get<size_t>());
  EXPECT_EQ(model.tensorflow_version, said.at("tensorflow").get<std::string>());
  ASSERT_EQ(model.signatures.size(), said.at("signatures").size());
  for (const auto& [key, signature] : said.at("signatures").items()) {
    const Signature& own = model.signatures.at(key);
    EXPECT_EQ(own.inputs.size(), signature.at("inputs").size());
    for (const auto& [name, tensor] : signature.at("inputs").items())
      EXPECT_EQ(own.inputs.at(name).name, tensor.get<std::string>());
    for (const auto& [name, tensor] : signature.at("outputs").items())
      EXPECT_EQ(own.outputs.at(name).name, tensor.get<std::string>());
  }
  ASSERT_EQ(model.variables.size(), said.at("variables").size());
  for (const auto& [key, variable] : said.at("variables").items()) {
    const Variable& own = model.variables.at(key);
    EXPECT_EQ(own.shape, variable.at("shape").get<std::vector<int64_t>>());
    EXPECT_NEAR(sum_of(own), variable.at("sum").get<double>(), 1e-4);
  }
}

TEST_P(SavedModelTest, FunctionsAreBoundToVariablesByNumber) {
  Folder folder(std::string("tensorflow/") + GetParam());
  const ModelFiles files = folder.files();
  const SavedModel model = read_saved_model(files);
  size_t bound = 0;
  for (const auto& [function, objects] : model.bound_inputs) {
    EXPECT_TRUE(model.graph.functions.contains(function)) << function;
    for (const int64_t object : objects) {
      const SavedObject& variable = model.objects.at(static_cast<size_t>(object));
      if (!variable.is_variable) continue;
      EXPECT_TRUE(model.variables.contains(variable.checkpoint_key)) << variable.name;
      ++bound;
    }
  }
  EXPECT_GE(bound, 2u);
  const FileFacts facts = facts_of(model);
  EXPECT_FALSE(facts.inputs.empty());
  EXPECT_GT(facts.parameters, 10);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SavedModelTest, testing::Values("module", "net"),
                         [](const auto& info) { return std::string(info.param); });

TEST(GraphTest, AFrozenGraphHasItsNodes) {
  const auto file = fixture("tensorflow/frozen.pb");
  const Json said = fixture_json("tensorflow/frozen.json");
  const Graph graph = read_graph(file->text());
  ASSERT_EQ(graph.nodes.size(), said.at("nodes").size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Json& node = said.at("nodes")[i];
    EXPECT_EQ(graph.nodes[i].name, node.at("name").get<std::string>());
    EXPECT_EQ(graph.nodes[i].op, node.at("op").get<std::string>());
    std::vector<std::string> inputs(graph.nodes[i].inputs.begin(), graph.nodes[i].inputs.end());
    EXPECT_EQ(inputs, node.at("inputs").get<std::vector<std::string>>());
    std::vector<std::string> attributes;
    for (const auto& [name, value] : graph.nodes[i].attributes) attributes.emplace_back(name);
    EXPECT_EQ(attributes, node.at("attributes").get<std::vector<std::string>>());
  }
  std::vector<std::string> functions;
  for (const auto& [name, function] : graph.functions) {
    functions.emplace_back(name);
    EXPECT_FALSE(function.nodes.empty());
    EXPECT_EQ(function.results.size(), function.outputs.size());
  }
  EXPECT_EQ(functions, said.at("functions").get<std::vector<std::string>>());
  const FileFacts facts = facts_of(graph);
  std::set<std::string> inputs;
  for (const FileValue& input : facts.inputs) inputs.insert(input.name);
  EXPECT_TRUE(inputs.contains("x") && inputs.contains("n"));
  EXPECT_EQ(facts.ops.at("MatMul"), 1);
}

TEST(GraphTest, ConstantsHaveTheirTexts) {
  const auto file = fixture("tensorflow/frozen.pb");
  const Graph graph = read_graph(file->text());
  bool found = false;
  for (const Node& node : graph.nodes) {
    const auto value = node.attributes.find("value");
    if (value == node.attributes.end()) continue;
    const auto* tensor = std::get_if<std::shared_ptr<const TensorValue>>(&value->second.value);
    if (tensor != nullptr && (*tensor)->dtype == DataType::kString)
      found = (*tensor)->strings == std::vector<std::string_view>{"a", "bc"};
  }
  EXPECT_TRUE(found);
}

TEST(Crc32cTest, TheStandardsValue) {
  EXPECT_EQ(wire::crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(wire::crc32c(""), 0u);
}

TEST(VariablesTest, ChangedBytesAreNoticed) {
  Folder folder("tensorflow/module");
  std::string data = read_file(fixture_path("tensorflow/module/variables/variables.data-00000-of-00001"));
  data[5] = static_cast<char>(data[5] ^ 1);
  folder.replace("variables/variables.data-00000-of-00001", data);
  const ModelFiles files = folder.files();
  try {
    read_saved_model(files);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
    EXPECT_NE(error.message().find("checksum"), std::string::npos) << error.message();
  }
}

TEST(VariablesTest, ACutUploadIsAnError) {
  Folder folder("tensorflow/module");
  folder.replace("variables/variables.data-00000-of-00001", "");
  const ModelFiles files = folder.files();
  EXPECT_THROW(read_saved_model(files), Error);
}

template <typename Read>
int refused_of(const std::string& whole, const Read& read) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    try {
      read(broken_copy(whole, random));
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kNotSupported)
          << error.message();
      ++refused;
    }
  }
  return refused;
}

TEST(GraphTest, TwoThousandBrokenCopiesAreRefusedOrRead) {
  EXPECT_GT(refused_of(read_file(fixture_path("tensorflow/frozen.pb")),
                       [](const std::string& bytes) { facts_of(read_graph(bytes)); }),
            100);
  EXPECT_GT(refused_of(read_file(fixture_path("tensorflow/module/variables/variables.index")),
                       [](const std::string& bytes) { wire::read_sstable(bytes); }),
            500);
}

TEST(BrokenSavedModelTest, CopiesAreRefusedOrRead) {
  EXPECT_GT(refused_of(read_file(fixture_path("tensorflow/module/saved_model.pb")),
                       [](const std::string& bytes) {
                         Folder folder("tensorflow/module");
                         folder.replace("saved_model.pb", bytes);
                         const ModelFiles files = folder.files();
                         facts_of(read_saved_model(files));
                       }),
            100);
}

}  // namespace
}  // namespace tensormill::frontend::tensorflow
