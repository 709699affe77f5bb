#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "compiler/frontend/keras/model.h"
#include "compiler/frontend/keras/names.h"
#include "runtime/base/error.h"
#include "tests/readers/fixture_files.h"

namespace tensormill::frontend::keras {
namespace {

double sum_of(const Weight& weight) {
  double sum = 0;
  for (size_t at = 0; at + 4 <= weight.data.size(); at += 4) {
    float element = 0;
    std::memcpy(&element, weight.data.data() + at, sizeof(element));
    sum += element;
  }
  return sum;
}

/// All weights of a layer, those of a model in it too.
std::vector<Weight> weights_of(const Layer& layer) {
  std::vector<Weight> all = layer.weights;
  if (layer.network) {
    for (const Layer& inner : layer.network->layers) {
      const std::vector<Weight> more = weights_of(inner);
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  return all;
}

/// Float32 weights of `said`, in any order: state of random generators is integers, which have no sums to
/// compare.
void expect_weights(const Layer& layer, const Json& said) {
  std::multimap<Shape, double> own;
  for (const Weight& weight : weights_of(layer))
    if (weight.dtype == DType::kFloat32) own.emplace(weight.shape, sum_of(weight));
  EXPECT_EQ(own.size(), said.size()) << layer.name;
  for (const Json& weight : said) {
    const auto shape = weight.at("shape").get<std::vector<int64_t>>();
    const auto sum = weight.at("sum").get<double>();
    bool found = false;
    for (auto [it, end] = own.equal_range(Shape(shape.begin(), shape.end())); it != end && !found; ++it)
      found = std::abs(it->second - sum) < 1e-4;
    EXPECT_TRUE(found) << layer.name << " " << weight;
  }
}

void expect_model(const Model& model, const Json& said) {
  EXPECT_EQ(model.keras_version, said.at("version").get<std::string>());
  for (const Json& layer : said.at("layers")) {
    const Layer* own = model.network.find(layer.at("name").get<std::string>());
    ASSERT_NE(own, nullptr) << layer.at("name");
    EXPECT_EQ(own->class_name, layer.at("class").get<std::string>());
    expect_weights(*own, layer.at("weights"));
  }
}

class KerasFixtureTest : public testing::TestWithParam<const char*> {};

TEST_P(KerasFixtureTest, ArchiveAndHdf5HaveTheLayersAndWeightsThatKerasSays) {
  const std::string name = std::string("keras/") + GetParam();
  Json said = fixture_json(name + ".json");
  const auto archive = fixture(name + ".keras");
  expect_model(read_archive(archive->text()), said);
  // An .h5 file of a Sequential model lists its input as a layer, which the model does not.
  const auto file = fixture(name + ".h5");
  const Model model = read_hdf5(file->text());
  for (const Json& layer : said.at("layers")) {
    const Layer* own = model.network.find(layer.at("name").get<std::string>());
    ASSERT_NE(own, nullptr) << layer.at("name");
    expect_weights(*own, layer.at("weights"));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, KerasFixtureTest, testing::Values("net", "recurrent", "sequential"),
                         [](const auto& info) { return std::string(info.param); });

TEST(KerasTest, CallsNameTheirInputs) {
  for (const bool is_archive : {true, false}) {
    const auto file = fixture(is_archive ? "keras/net.keras" : "keras/net.h5");
    const Model model = is_archive ? read_archive(file->text()) : read_hdf5(file->text());
    const Layer* shared = model.network.find("shared");
    ASSERT_NE(shared, nullptr);
    ASSERT_GE(shared->calls.size(), 2u);
    EXPECT_EQ(shared->calls[0].inputs, (std::vector<TensorRef>{{"one", 0, 0}}));
    EXPECT_EQ(shared->calls[1].inputs, (std::vector<TensorRef>{{"other", 0, 0}}));
    const Layer* sum = model.network.find("sum");
    EXPECT_EQ(sum->calls.at(0).inputs, (std::vector<TensorRef>{{"shared", 0, 0}, {"shared", 1, 0}}));
    ASSERT_NE(model.network.find("block")->network, nullptr);
    EXPECT_EQ(model.network.inputs, (std::vector<TensorRef>{{"one", 0, 0}, {"other", 0, 0}}));
    EXPECT_EQ(model.network.outputs, (std::vector<TensorRef>{{"classes", 0, 0}}));
    EXPECT_TRUE(refused_layers(model.network).empty());
  }
}

TEST(KerasTest, LambdaAndCustomClassesAreRefusedByName) {
  const auto file = fixture("keras/lambda.keras");
  const std::vector<ErrorDetail> refused = refused_layers(read_archive(file->text()).network);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].pointer, "doubled");
  const Network custom = read_network(parse_json(
      R"({"class_name":"Sequential","config":{"name":"m","layers":[{"class_name":"Mine","module":"my.code",)"
      R"("registered_name":"my>Mine","config":{"name":"own"}}]}})"));
  ASSERT_EQ(refused_layers(custom).size(), 1u);
  EXPECT_EQ(refused_layers(custom)[0].pointer, "own");
}

TEST(KerasTest, FactsHaveInputsLayersAndParameters) {
  const auto file = fixture("keras/net.keras");
  const FileFacts facts = facts_of(read_archive(file->text()), "keras");
  ASSERT_EQ(facts.inputs.size(), 2u);
  EXPECT_EQ(facts.inputs[0].shape, (std::vector<std::string>{"?", "8", "8", "3"}));
  EXPECT_EQ(facts.ops.at("SeparableConv2D"), 1);
  // Convolution 3·3·3·4 + 4; depthwise 3·3·4, pointwise 16 + 4; normalization 16; dense 8·5 + 5.
  EXPECT_EQ(facts.parameters, 112 + 36 + 20 + 16 + 45);
}

TEST(KerasTest, NamesOfGroups) {
  EXPECT_EQ(snake_case("MaxPooling2D"), "max_pooling2d");
  EXPECT_EQ(snake_case("Conv2D"), "conv2d");
  EXPECT_EQ(snake_case("ReLU"), "re_lu");
  EXPECT_EQ(snake_case("LSTM"), "lstm");
  EXPECT_EQ(snake_case("GRUCell"), "gru_cell");
  EXPECT_EQ(snake_case("BatchNormalization"), "batch_normalization");
  EXPECT_TRUE(natural_less("vars/2", "vars/10"));
  EXPECT_FALSE(natural_less("vars/10", "vars/2"));
}

TEST(KerasTest, BrokenConfigurationsNameTheLayer) {
  const auto message_of = [](const char* layers) {
    try {
      read_network(parse_json(
          std::string(R"({"class_name":"Functional","config":{"name":"m","input_layers":[["x",0,0]],)") +
          R"("output_layers":[["x",0,0]],"layers":)" + layers + "}}"));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
      return error.message();
    }
    return std::string("accepted");
  };
  const std::string input =
      R"({"class_name":"InputLayer","name":"x","config":{"name":"x"},"inbound_nodes":[]})";
  EXPECT_EQ(message_of(("[" + input + "]").c_str()), "accepted");
  EXPECT_NE(message_of("[]").find("\"x\", which is no layer"), std::string::npos);
  EXPECT_NE(message_of(("[" + input + "," + input + "]").c_str()).find("\"x\" stands twice"),
            std::string::npos);
  EXPECT_NE(message_of(("[" + input +
                        R"(,{"class_name":"Dense","name":"d","config":{},"inbound_nodes":[[["y",0,0,{}]]]}])")
                           .c_str())
                .find("layer \"d\" takes a tensor of \"y\""),
            std::string::npos);
}

TEST(KerasTest, TwoThousandBrokenConfigurationsAreRefusedOrRead) {
  const auto file = fixture("keras/net.keras");
  const std::string whole(wire_member(file->text(), "config.json"));
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    try {
      read_network(parse_json(broken_copy(whole, random)));
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kInvalidJson ||
                  error.code() == ErrorCode::kTooLarge)
          << error.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

/// libhdf5 may end the process on a broken file, and may search without end in one whose lists run in a
/// circle; the child that reads a stranger's file has a limit of CPU time. Here a child reads many, and
/// another goes on behind one that ended it.
TEST(KerasTest, BrokenFilesEndInAChildWithinItsLimits) {
  const std::string whole(fixture("keras/sequential.h5")->text());
  constexpr int kFiles = 300;
  int at = 0, ended = 0;
  while (at < kFiles) {
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit limit{1, 2};
      ::setrlimit(RLIMIT_CPU, &limit);
      // What ends libhdf5 ends the child by its signal, with a sanitizer's handler around it too.
      for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(number, SIG_DFL);
      for (int i = at; i < kFiles; ++i) {
        std::mt19937_64 random(static_cast<uint64_t>(i));
        const std::string bytes = broken_copy(whole, random);
        if (::write(pipe_ends[1], "x", 1) != 1) ::_exit(2);
        try {
          read_hdf5(bytes);
        } catch (const Error& error) {
          if (error.message().empty()) ::_exit(3);
        }
      }
      ::_exit(0);
    }
    ::close(pipe_ends[1]);
    char mark = 0;
    int begun = 0;
    while (::read(pipe_ends[0], &mark, 1) == 1) ++begun;
    ::close(pipe_ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
    ASSERT_GT(begun, 0);
    ++ended;
    at += begun;
  }
  EXPECT_LT(ended, kFiles / 20) << "files that end the process";
}

}  // namespace
}  // namespace tensormill::frontend::keras
