// Models of TensorFlow: networks as SavedModels and frozen graphs, signatures, and broken copies of them.
#include <random>

#include "compiler/frontend/tensorflow/tfjs.h"
#include "compiler/frontend/wire/archive_files.h"
#include "compiler/frontend/wire/tfjs_weights.h"
#include "runtime/base/error.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/fixtures.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kCopiesOfGraphs = is_sweep() ? 2000 : 100;
constexpr size_t kCopiesOfJson = 1000;

/// The one result of a network of one input.
Tensor result_of(const Importer& model, const std::string& arrays) {
  const Tensors inputs = arrays_of(arrays, "in.");
  const Tensor given = inputs.at("0");
  const ir::Graph graph = model.import(at_free_extent(model, given.shape()[0]), ops::standard_ops());
  ir::verify(graph);
  return evaluated(graph, {{model.facts().inputs[0].name, given}}).begin()->second;
}

class TensorflowNets : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(TensorflowNets, GiveTheNumbersOfTensorflow) {
  const auto [file, arrays] = GetParam();
  const std::string folder = "tensorflow_nets/";
  const auto model = importer_of(folder + file);
  EXPECT_TRUE(model->unsupported().empty());
  expect_same(result_of(*model, folder + arrays), arrays_of(folder + arrays, "out.").at("0"), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Files, TensorflowNets,
                         testing::Values(std::pair("mobile.pb", "mobile.npz"),
                                         std::pair("mobile_fused.pb", "mobile.npz"),
                                         std::pair("mobile.zip", "mobile.npz"),
                                         std::pair("mobile_graph_model.zip", "mobile.npz"),
                                         std::pair("packed_graph_model.zip", "packed_graph_model.npz"),
                                         std::pair("recurrent.pb", "recurrent.npz")));

// Maps whose channels stand last are moved at the ends of the network alone.
TEST(Tensorflow, PutsNoTransposesBetweenConvolutions) {
  const auto model = importer_of("tensorflow_nets/mobile.pb");
  const ir::Graph graph = model->import(at_free_extent(*model, 1), ops::standard_ops());
  size_t transposes = 0, convolutions = 0;
  for (const ir::Node& node : graph.nodes()) {
    transposes += node.op == "transpose" ? 1 : 0;
    convolutions += node.op == "conv" ? 1 : 0;
  }
  EXPECT_EQ(convolutions, 6u);
  EXPECT_LE(transposes, 1u);
}

TEST(Tensorflow, TakesTheSignatureThatIsAskedFor) {
  const std::string folder = fixture_path("tensorflow/net");
  const auto first = open_importer(folder, Links::kRefused);
  EXPECT_EQ(first->format(), "saved-model");
  ASSERT_EQ(first->facts().inputs.size(), 1u);
  EXPECT_EQ(to_string(first->facts().inputs[0].shape), "[-1,8,8,3]");
  std::vector<std::string> names;
  for (const NamedSignature& each : first->signatures()) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"serve", "serving_default"}));
  const auto other = open_importer(folder, Links::kRefused, "serve");
  EXPECT_EQ(ir::print(other->import(at_free_extent(*other, 2), ops::standard_ops())).empty(), false);
  try {
    open_importer(folder, Links::kRefused, "train");
    FAIL() << "there is no such signature";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("it has serve, serving_default"), std::string::npos) << error.message();
  }
}

// A count that is fixed makes a loop of known rounds; an output that no tensor can be is left out.
TEST(Tensorflow, UnrollsLoopsOfFixedCounts) {
  const auto model = open_importer(fixture_path("tensorflow/module"), Links::kRefused);
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{3}};
  options.input_values.insert_or_assign("n", Tensor::from<int32_t>({}, std::vector<int32_t>{3}));
  options.outputs = {"y"};
  const ir::Graph graph = model->import(options, ops::standard_ops());
  ir::verify(graph);
  const Tensor x = Tensor::from<float>({2, 3}, std::vector<float>{1, 2, 3, -1, 0, 2});
  EXPECT_EQ(evaluated(graph, {{"x", x}}).at("y").shape(), (Shape{2, 4}));
}

TEST(Tensorflow, HasStringsAsItsResults) {
  const auto model = open_importer(fixture_path("tensorflow/module"), Links::kRefused);
  ImportOptions options;
  options.input_shapes["x"] = {int64_t{2}, int64_t{3}};
  options.input_values.insert_or_assign("n", Tensor::from<int32_t>({}, std::vector<int32_t>{3}));
  options.outputs = {"names"};
  const ir::Graph graph = model->import(options, ops::standard_ops());
  ir::verify(graph);
  const Tensor x = Tensor::from<float>({2, 3}, std::vector<float>{1, 2, 3, -1, 0, 2});
  EXPECT_EQ(texts_of(evaluated(graph, {{"x", x}}).at("names")), (std::vector<std::string>{"a", "bc"}));
}

// Functions and branches out of JSON are those of the graph that it was made of.
TEST(GraphModel, HasTheFunctionsOfItsGraph) {
  const auto model = importer_of("tensorflow_nets/control_graph_model.zip");
  EXPECT_EQ(model->format(), "tfjs-graph");
  const ir::Graph graph = model->import({}, ops::standard_ops());
  const Tensors got = evaluated(graph, arrays_of("tensorflow_ops/control.npz", "in."));
  expect_outputs(got, arrays_of("tensorflow_ops/control.npz", "out."), [](const Tensor&) { return 1e-5; });
}

TEST(GraphModel, ThatIsBrokenIsReadOrRefused) {
  for (const char* name : {"control_graph_model", "packed_graph_model"}) {
    const std::string archive = read_file(fixture_path("tensorflow_nets/" + std::string(name) + ".zip"));
    wire::ArchiveFiles files(archive, wire::kTfjsFile);
    const std::string text(files.find(wire::kTfjsFile).value());
    std::mt19937 random(31);
    size_t read = 0, refused = 0;
    for (size_t i = 0; i < kCopiesOfJson; ++i) {
      SCOPED_TRACE("copy " + std::to_string(i));
      std::string copy = text;
      for (size_t k = 0; k < 1 + random() % 3; ++k)
        copy[random() % copy.size()] = "\"{}[]:,0123456789-eDTFLOA="[random() % 26];
      if (random() % 16 == 0) copy.resize(random() % copy.size());
      // Files of weights are there, cut off or lost.
      const size_t weights = random() % 8;
      try {
        tensorflow::read_tfjs_model([&](const std::string& file) -> std::optional<std::string_view> {
          if (file == wire::kTfjsFile) return copy;
          const auto found = files.find(file);
          if (weights == 0 || !found) return std::nullopt;
          return weights == 1 ? found->substr(0, found->size() / 2) : *found;
        });
        ++read;
      } catch (const Error& error) {
        const bool is_said =
            error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kNotSupported;
        EXPECT_TRUE(is_said) << error.message();
        ++refused;
      }
    }
    EXPECT_GT(read, 0u);
    EXPECT_GT(refused, 0u);
  }
}

void import_bytes(const std::string& bytes) {
  const std::unique_ptr<Importer> model = importer_of_bytes(bytes);
  ir::verify(model->import(at_free_extent(*model, 1), ops::standard_ops()));
}

// A picture without elements has none to make others of.
TEST(Tensorflow, RefusesToResizeAnEmptyPicture) {
  const std::string bytes = read_file(fixture_path("tensorflow_ops/pictures.pb"));
  const auto dims = [](char height) {
    return std::string("\x12\x02\x08\x01\x12\x02\x08") + height + "\x12\x02\x08\x05";
  };
  size_t resized = 0;
  for (size_t at = bytes.find(dims(4)); at != std::string::npos; at = bytes.find(dims(4), at + 1)) {
    std::string copy = bytes;
    copy.replace(at, dims(0).size(), dims(0));
    try {
      import_bytes(copy);
      ADD_FAILURE() << "the picture whose shape is at byte " << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
      EXPECT_THAT(error.message(), testing::HasSubstr("an axis of 0")) << at;
      ++resized;
    }
  }
  EXPECT_GE(resized, 7u);
}

class BrokenTensorflow : public testing::TestWithParam<const char*> {};

TEST_P(BrokenTensorflow, IsImportedOrRefused) {
  const std::string bytes = read_file(fixture_path(GetParam()));
  expect_imported_or_refused(kCopiesOfGraphs, 29, [&](size_t, std::mt19937& random) {
    std::string copy = bytes;
    const size_t changes = 1 + random() % 4;
    for (size_t k = 0; k < changes; ++k) {
      const size_t at = random() % copy.size();
      copy[at] = static_cast<char>(random() % 3 == 0 ? random() : copy[at] ^ (1 << random() % 8));
    }
    if (random() % 16 == 0) copy.resize(random() % copy.size());
    import_bytes(copy);
  });
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenTensorflow,
                         testing::Values("tensorflow_ops/control.pb", "tensorflow_ops/moves.pb",
                                         "tensorflow_ops/pictures.pb", "tensorflow_ops/convolutions.pb",
                                         "tensorflow_nets/mobile_fused.pb", "tensorflow_nets/recurrent.pb"));

}  // namespace
}  // namespace tensormill::frontend
