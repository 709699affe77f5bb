// Keras' layers in their forms, an output of its own in a model a family, against what Keras makes of them
// (tests/fixtures/keras_layers); models that must be refused.
#include <array>
#include <functional>

#include "runtime/base/json.h"
#include "tests/expect_error.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"

namespace tensormill::frontend {
namespace {

class KerasLayers : public testing::TestWithParam<const char*> {};

TEST_P(KerasLayers, GiveTheNumbersOfKeras) {
  constexpr double kTolerance = 2e-5;
  const std::string file = GetParam(), family = file.substr(0, file.rfind('.'));
  const auto model = importer_of("keras_layers/" + file);
  const Tensors inputs = arrays_of("keras_layers/" + family + ".npz", "in.");
  const ir::Graph graph = model->import(at_shapes_of(inputs), ops::standard_ops());
  ir::verify(graph);
  const Tensors got = evaluated(graph, inputs), want = arrays_of("keras_layers/" + family + ".npz", "out.");
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    SCOPED_TRACE(file + "/" + name);
    ASSERT_EQ(got.count(name), 1u);
    if (tensor.dtype() == kString) {
      expect_same(got.at(name), tensor, 0);
      continue;
    }
    expect_close(got.at(name), tensor, kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, KerasLayers,
                         testing::Values("elementwise.keras", "convolutions.keras", "pools.keras",
                                         "moves.keras", "merges.keras", "normalizations.keras",
                                         "recurrent.keras", "attention.keras", "operators.keras",
                                         "nested.keras", "nested.h5", "corners.keras", "masks.keras",
                                         "text.keras"));

/// A model without weights, in the form that packages hold: layers as they stand in a list, called one after
/// another.
std::unique_ptr<Importer> sequential_of(const std::string& layers) {
  const std::string text =
      R"({"config":{"class_name":"Sequential","config":{"name":"m","layers":[{"class_name":"InputLayer",)"
      R"("config":{"name":"x","batch_shape":[null,4]}},)" +
      layers + R"(]}},"keras_version":"3.15.1","numbers_weights":true,"weights":[]})";
  return importer_of_bytes("tensormill keras model 1 " + std::to_string(text.size()) + "\n" + text);
}

ImportOptions batch_of(int64_t batch) {
  ImportOptions options;
  options.input_shapes["x"] = {batch, int64_t{4}};
  return options;
}

std::string refusal_of(const std::string& layers) {
  try {
    sequential_of(layers)->import(batch_of(2), ops::standard_ops());
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOperatorNotImplemented) << error.message();
    return error.message();
  }
  return "imported";
}

/// A model of the fixtures with other layers, in the form that packages hold.
std::unique_ptr<Importer> changed_model(const std::string& fixture,
                                        const std::function<void(Json& layer)>& change) {
  const auto model = importer_of(fixture);
  const std::string_view kept = model->kept_source().model->text();
  const size_t line = kept.find('\n'), mark = kept.rfind(' ', line) + 1;
  const auto padded = [](size_t size) { return (size + 63) / 64 * 64; };
  const size_t size = std::stoul(std::string(kept.substr(mark, line - mark)));
  Json json = parse_json(kept.substr(line + 1, size));
  for (Json& layer : json.at("config").at("config").at("layers")) change(layer);
  const std::string text = json.dump();
  std::string bytes = std::string(kept.substr(0, mark)) + std::to_string(text.size()) + "\n" + text;
  bytes.resize(padded(bytes.size()), ' ');
  return importer_of_bytes(bytes + std::string(kept.substr(padded(line + 1 + size))));
}

bool is_attention(const Json& layer) { return layer.at("class_name") == "MultiHeadAttention"; }

// In any order, and counted from behind.
TEST(KerasAttention, GoesAlongTheAxesThatItIsTold) {
  const std::string family = "keras_layers/attention_axes";
  const Tensors inputs = arrays_of(family + ".npz", "in."), want = arrays_of(family + ".npz", "out.");
  for (const bool from_behind : {false, true}) {
    const auto model = changed_model(family + ".keras", [&](Json& layer) {
      if (!is_attention(layer) || !from_behind) return;
      const size_t rank = layer.at("build_config").at("shapes_dict").at("query_shape").size();
      for (Json& axis : layer.at("config").at("attention_axes"))
        axis = axis.get<int64_t>() - static_cast<int64_t>(rank);
    });
    const Tensors got = evaluated(model->import(at_shapes_of(inputs), ops::standard_ops()), inputs);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, tensor] : want) {
      SCOPED_TRACE(name);
      // No output has the name of an input.
      expect_close(got.at(inputs.contains(name) ? name + ":0" : name), tensor, 2e-5);
    }
  }
}

// Keras takes the first axis behind the batch for the steps of a causal mask.
TEST(KerasAttention, LooksAheadInNoOtherAxisThanThatOfItsSteps) {
  const Tensors inputs = arrays_of("keras_layers/attention_axes.npz", "in.");
  const auto along = [](const Json& axes) {
    return changed_model("keras_layers/attention_axes.keras", [=](Json& layer) {
      if (!is_attention(layer) || layer.at("config").at("attention_axes") != Json::array({3, 1})) return;
      layer.at("config").at("attention_axes") = axes;
      layer.at("inbound_nodes").at(0).at("kwargs")["use_causal_mask"] = true;
    });
  };
  const ir::Graph graph = along(Json::array({1}))->import(at_shapes_of(inputs), ops::standard_ops());
  const Tensor before = evaluated(graph, inputs).at("apart");
  // The second step of both pictures of each example.
  Tensors changed = inputs;
  Tensor volume = inputs.at("volume").clone();
  const int64_t steps = volume.shape()[1], each = volume.num_elements() / volume.shape()[0] / steps;
  ASSERT_EQ(steps, 2);
  const auto is_first = [&](int64_t i) { return i / each % steps == 0; };
  for (int64_t i = 0; i < volume.num_elements(); ++i)
    if (!is_first(i)) volume.set_element(i, volume.element_as_double(i) + 3);
  changed.insert_or_assign("volume", volume);
  const Tensor after = evaluated(graph, changed).at("apart");
  double most = 0;
  for (int64_t i = 0; i < after.num_elements(); ++i) {
    const double apart = std::fabs(after.element_as_double(i) - before.element_as_double(i));
    if (is_first(i)) {
      ASSERT_EQ(apart, 0) << "element " << i;
    }
    most = std::max(most, apart);
  }
  EXPECT_GT(most, 1e-3);
  // Of two axes of steps such a mask has too few axes, for Keras as well.
  expect_error(ErrorCode::kOperatorNotImplemented, "a mask of shape", [&] {
    along(Json::array({3, 1}))->import(at_shapes_of(inputs), ops::standard_ops());
  });
}

TEST(KerasNetwork, OfRecurrentLayersIsTheSameInBothForms) {
  const Json said = parse_json(read_file(fixture_path("keras/recurrent.json")));
  for (const char* suffix : {"keras", "h5"}) {
    SCOPED_TRACE(suffix);
    const auto model = importer_of(std::string("keras/recurrent.") + suffix);
    const Tensors inputs{
        {"steps", Tensor::from<float>({1, 4, 3}, said.at("inputs").at(0).get<std::vector<float>>())}};
    const ir::Graph graph = model->import(at_shapes_of(inputs), ops::standard_ops());
    expect_close(evaluated(graph, inputs).at("gru"),
                 Tensor::from<float>({1, 2}, said.at("outputs").get<std::vector<float>>()), 2e-5);
  }
}

TEST(KerasNetwork, HasItsBatchAsADim) {
  const auto model = importer_of("keras/net.keras");
  const ir::Graph graph = model->import(with_symbols(model->facts(), {}), ops::standard_ops());
  EXPECT_EQ(ir::to_string(graph.value(graph.outputs()[0]).type), "f32[batch,5]");
  expect_error(ErrorCode::kShapeRequired, "dim 0 is free", [&] { model->import({}, ops::standard_ops()); });
}

TEST(KerasNetwork, HasNoTransposeBetweenConvolutions) {
  const auto model = importer_of("keras/net.keras");
  ImportOptions options;
  for (const char* name : {"one", "other"})
    options.input_shapes[name] = {int64_t{1}, int64_t{8}, int64_t{8}, int64_t{3}};
  const ir::Graph graph = model->import(options, ops::standard_ops());
  size_t maps = 0;
  for (const ir::Node& node : graph.nodes())
    maps += node.op == "transpose" && !graph.value(node.inputs[0]).constant ? 1 : 0;
  // Of the two pictures, whose channels stand last.
  EXPECT_EQ(maps, 2u) << ir::print(graph);
}

TEST(KerasNetwork, ThatAPackageHoldsIsImportedWithoutHdf5) {
  for (const char* name :
       {"keras/net.h5", "keras/recurrent.keras", "keras_layers/nested.keras", "keras_layers/text.keras"}) {
    SCOPED_TRACE(name);
    const auto model = importer_of(name);
    const auto kept = importer_of_bytes(std::string(model->kept_source().model->text()));
    EXPECT_EQ(kept->kept_source().model->text(), model->kept_source().model->text());
    EXPECT_EQ(ir::hash(kept->import(with_symbols(kept->facts(), {}), ops::standard_ops())),
              ir::hash(model->import(with_symbols(model->facts(), {}), ops::standard_ops())));
  }
}

// What formulas of several steps would lose near 0 and far below it.
TEST(KerasActivations, KeepTheirDigits) {
  struct Activation {
    const char* name;
    double (*exact)(double);
  };
  constexpr std::array kActivations = {
      Activation{"celu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      Activation{"squareplus",
                 [](double x) { return std::max(x, 0.0) + 2 / (std::fabs(x) + std::hypot(x, 2)); }},
      Activation{"log_sigmoid",
                 [](double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::fabs(x))); }}};
  const std::vector<float> values = {-3e3F, -1e-7F, 30, 1e20F};
  for (const Activation& activation : kActivations) {
    const auto model = sequential_of(R"({"class_name":"Activation","config":{"name":"y","activation":")" +
                                     std::string(activation.name) + R"("}})");
    const ir::Graph graph = model->import(batch_of(1), ops::standard_ops());
    const Tensor got = evaluated(graph, {{"x", Tensor::from<float>({1, 4}, values)}}).begin()->second;
    for (int64_t i = 0; i < 4; ++i) {
      const double want = activation.exact(static_cast<double>(values[static_cast<size_t>(i)]));
      EXPECT_NEAR(got.element_as_double(i), want, 1e-6 * std::fabs(want)) << activation.name << " of " << i;
    }
  }
}

TEST(KerasNetwork, TellsAllLayersThatAreMissing) {
  const std::string layer = R"({"class_name":"MelSpectrogram","config":{"name":"a"}})";
  const auto model =
      sequential_of(layer + R"(,{"class_name":"MelSpectrogram","config":{"name":"b"}},)" +
                    R"({"class_name":"Lambda","config":{"name":"c"}},)" +
                    R"({"class_name":"Own","registered_name":"my>Own","config":{"name":"d"}})");
  const std::vector<ErrorDetail> missing = model->unsupported();
  ASSERT_EQ(missing.size(), 3u);
  EXPECT_EQ(missing[0].pointer, "c");
  EXPECT_NE(missing[0].detail.find("layer Lambda: its program is Python"), std::string::npos);
  EXPECT_EQ(missing[1].pointer, "d");
  EXPECT_EQ(missing[2].pointer, "a");
  EXPECT_EQ(missing[2].detail, "layer MelSpectrogram, 2 layers");
  expect_error(ErrorCode::kOperatorNotImplemented, "3 layers are not supported",
               [&] { model->import(batch_of(1), ops::standard_ops()); });
}

TEST(KerasNetwork, RefusesWhatNobodyReads) {
  EXPECT_EQ(refusal_of(R"({"class_name":"ReLU","config":{"name":"r","max_value":6.0,"trainable":true}})"),
            "imported");
  EXPECT_NE(
      refusal_of(R"({"class_name":"ReLU","config":{"name":"r","new_option":3}})").find("option new_option"),
      std::string::npos);
  // What is off changes nothing.
  EXPECT_EQ(refusal_of(R"({"class_name":"ReLU","config":{"name":"r","new_option":null}})"), "imported");
  EXPECT_NE(refusal_of(R"({"class_name":"Activation","config":{"name":"a","activation":"unheard_of"}})")
                .find("activation unheard_of"),
            std::string::npos);
  EXPECT_NE(refusal_of(R"({"class_name":"Activation","config":{"name":"a","activation":)"
                       R"({"class_name":"function","config":"mine","registered_name":"mine"}}})")
                .find("it is a Python function"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(R"({"class_name":"ReLU","config":{"name":"r","dtype":{"class_name":"QuantizedDTypePolicy",)"
                 R"("config":{"name":"int8_from_float32"}}}})")
          .find("int8_from_float32"),
      std::string::npos);
}

TEST(KerasOperands, OfTooFewAxesOrTooShortListsAreNamed) {
  const auto fails = [](const std::string& layer, const std::string& config, const std::string& text) {
    SCOPED_TRACE(text);
    const auto model =
        sequential_of(R"({"class_name":")" + layer + R"(","config":{"name":"the_layer")" + config + "}}");
    expect_error(ErrorCode::kInvalidModel, "layer \"the_layer\" (" + layer + "): " + text,
                 [&] { model->import(batch_of(2), ops::standard_ops()); });
  };
  fails("Subtract", "", "it has 1 inputs, expected 2");
  fails("ZeroPadding2D", R"(,"padding":[1,1])", "");
  fails("Permute", R"(,"dims":[])", "option dims is no permutation");
}

}  // namespace
}  // namespace tensormill::frontend
