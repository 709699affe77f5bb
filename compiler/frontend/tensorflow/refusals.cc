#include "compiler/frontend/tensorflow/refusals.h"

#include <algorithm>

#include "compiler/build/missing.h"

namespace tensormill::frontend::tensorflow {

namespace {

constexpr std::string_view kPicture =
    "strings hold no pictures' files here: export a signature that takes decoded pictures; the server "
    "decodes those that are posted to it";
constexpr std::string_view kSound =
    "strings hold no files of sound here: export a signature that takes the samples";
constexpr std::string_view kRecord =
    "it parses records: export a signature whose inputs are the features themselves, by tf.saved_model.save "
    "of a function that takes tensors";
constexpr std::string_view kDataSet =
    "it reads a data set: freeze the graph from behind it, or export a function that takes tensors";
constexpr std::string_view kPython =
    "it calls Python in the process that made it: export a function of TensorFlow's operators alone";
constexpr std::string_view kRandom =
    "it draws random numbers, which is not implemented: export the model for inference";
constexpr std::string_view kTokens =
    "it is an operator of tensorflow_text: tokenize before, and export a signature that takes the tokens' "
    "numbers";
constexpr std::string_view kStableHlo =
    "it is a program of StableHLO, as JAX exports it: export by jax2tf.convert with "
    "native_serialization=False, or load the weights in Keras with KERAS_BACKEND=tensorflow and export there";
constexpr std::string_view kTensorRt =
    "it is an engine of TensorRT for one GPU: give the SavedModel from before its conversion";
constexpr std::string_view kTpu = "it is compiled for a TPU: export the model for a CPU";
constexpr std::string_view kXla =
    "it is an operator of XLA: export the model from before it was compiled, with jit_compile=False";
constexpr std::string_view kOneDnn =
    "it is made for one processor by TensorFlow's own optimizer: export the model from before";
constexpr std::string_view kQuantized =
    "its quantized integers are not implemented: export the model with real numbers, or quantize it by "
    "TensorFlow Lite's converter";
constexpr std::string_view kCudnn =
    "it is a layer of cuDNN, which runs on one kind of GPU alone: build the model with "
    "tf.keras.layers.LSTM or GRU and its weights, and save that";
constexpr std::string_view kTrees =
    "it evaluates decision trees that an estimator keeps: convert these to ONNX, or export a model of "
    "TensorFlow's operators alone";
constexpr std::string_view kCompressedRows =
    "sparse matrices of compressed rows are not implemented: export the model with "
    "tf.sparse.sparse_dense_matmul";
constexpr std::string_view kPictureMade =
    "files of pictures are not made here: export a signature whose output is the picture's elements";
constexpr std::string_view kCluster =
    "it belongs to a program of several devices: export the model from one of them";
constexpr std::string_view kTraining = "it is a step of training: export the model for inference";
constexpr std::string_view kWrites = "it writes files: export a function without it";
constexpr std::string_view kKept =
    "it keeps tensors beside the graph: export a function whose inputs and results are these tensors";
constexpr std::string_view kOldLists =
    "it is of an earlier form of lists of tensors: build the model with a TensorFlow whose lists are of "
    "TensorArrayV3, load its weights and save that";
constexpr std::string_view kDebugger = "TensorFlow's debugger put it in: export the model without it";
constexpr build::RefusedRow kRefused[] = {
#define TF_REFUSED(op, why) {op, why},
#include "compiler/frontend/tensorflow/refused_ops.def"
#undef TF_REFUSED
};

struct RefusedFamily {
  std::string_view begin, end, why;
};
constexpr RefusedFamily kRefusedFamilies[] = {
#define TF_REFUSED_FAMILY(begin, end, why) {begin, end, why},
#include "compiler/frontend/tensorflow/refused_families.def"
#undef TF_REFUSED_FAMILY
};

}  // namespace

std::string reason_of(std::string_view op) {
  const auto* family = std::find_if(
      std::begin(kRefusedFamilies), std::end(kRefusedFamilies),
      [&](const RefusedFamily& each) { return op.starts_with(each.begin) && op.ends_with(each.end); });
  const std::string own = build::reason_of(kRefused, op);
  return own.empty() && family != std::end(kRefusedFamilies) ? std::string(family->why) : own;
}

}  // namespace tensormill::frontend::tensorflow
