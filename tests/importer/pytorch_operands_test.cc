// Operands of PyTorch's operators that are none, or have too few axes: programs of a node that are written
// here.
#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/importer/pytorch_program.h"

namespace tensormill::frontend {
namespace {

void refuse_node(const Json& node, const std::string& text) {
  SCOPED_TRACE(text);
  const Json row = meta_of(kFloat32, Json::array({extent(4)}), Json::array({extent(1)}));
  const auto model = program_of(row, row, Json::array({node}), Json::object());
  expect_error(ErrorCode::kInvalidModel, text, [&] { model->import({}, ops::standard_ops()); });
}

const Json kNone = {{"as_none", true}};

TEST(PytorchOperands, OfAListMayNotBeMissing) {
  const Json parts = Json::array({tensor_of("x"), kNone});
  refuse_node(fx_node("torch.ops.aten.einsum.default",
                      {{"equation", {{"as_string", "a,a->a"}}}, {"tensors", {{"as_tensors", parts}}}},
                      tensor_of("y")),
              "argument tensors is no list of tensors alone");
}

TEST(PytorchOperands, OfNormsHaveChannels) {
  const Json norm = fx_node("torch.ops.aten.instance_norm.default",
                            {{"input", tensor_of("x")},
                             {"weight", kNone},
                             {"bias", kNone},
                             {"running_mean", kNone},
                             {"running_var", kNone},
                             {"use_input_stats", {{"as_bool", true}}},
                             {"momentum", {{"as_float", 0.1}}},
                             {"eps", {{"as_float", 1e-5}}},
                             {"cudnn_enabled", {{"as_bool", false}}}},
                            tensor_of("y"));
  refuse_node(norm, "the input has rank 1");
}

TEST(PytorchOperands, OfBagsAreRows) {
  const Json bags = fx_node("torch.ops.aten.embedding_bag.default",
                            {{"weight", tensor_of("x")},
                             {"indices", tensor_of("x")},
                             {"offsets", tensor_of("x")},
                             {"mode", {{"as_int", 0}}}},
                            tensor_of("y"));
  refuse_node(bags, "weights of shape [4]");
}

TEST(PytorchOperands, OfTooFewAreNamed) {
  refuse_node(fx_node("torch.ops.aten.add.Tensor", {{"self", tensor_of("x")}}, tensor_of("y")),
              "aten.add.Tensor");
  refuse_node(fx_node("torch.ops.aten.permute.default",
                      {{"self", tensor_of("x")}, {"dims", {{"as_ints", Json::array()}}}}, tensor_of("y")),
              "aten.permute.default");
}

// A number in place of a row.
TEST(PytorchOperands, OfTooFewAxesAreNamed) {
  const Json eight = meta_of(kFloat32, Json::array({extent(8)}), Json::array({extent(1)}));
  const Json cube = meta_of(kFloat32, Json::array({extent(2), extent(2), extent(2)}),
                            Json::array({extent(4), extent(2), extent(1)}));
  const Json one = meta_of(kFloat32, Json::array(), Json::array());
  const Json nodes = Json::array(
      {fx_node("torch.ops.aten.view.default",
               {{"self", tensor_of("x")}, {"size", {{"as_ints", Json::array({2, 2, 2})}}}}, tensor_of("w")),
       fx_node("torch.ops.aten.select.int",
               {{"self", tensor_of("x")}, {"dim", {{"as_int", 0}}}, {"index", {{"as_int", 0}}}},
               tensor_of("s")),
       fx_node("torch.ops.aten.bilinear.default",
               {{"input1", tensor_of("s")}, {"input2", tensor_of("s")}, {"weight", tensor_of("w")}},
               tensor_of("y"))});
  const auto model = program_of(eight, one, nodes, Json::object(), {{"w", cube}, {"s", one}});
  expect_error(ErrorCode::kInvalidModel, "node 2, aten.bilinear.default",
               [&] { model->import({}, ops::standard_ops()); });
}

}  // namespace
}  // namespace tensormill::frontend
