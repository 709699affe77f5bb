/// What a Caffe2 model says, as plain structs: the net that fills its weights and the net that computes.
/// Texts are views. Thread-safety: values; views live as long as the files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/wire/archive_files.h"
#include "runtime/base/dtype.h"

namespace tensormill::frontend::caffe2 {

inline constexpr const char* kPredictNet = "predict_net.pb";
inline constexpr const char* kInitNet = "init_net.pb";
/// {"NAME": [type, [dims...]]}, with ONNX's numbers of types: what the inputs are. It may be missing.
inline constexpr const char* kValueInfo = "value_info.json";

/// One or several of its fields are set.
struct Argument {
  std::string_view name;
  std::optional<double> real;
  std::optional<int64_t> integer;
  std::optional<std::string_view> text;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
};
struct Operator {
  std::string_view type, name;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Argument> arguments;
  const Argument* find(std::string_view argument) const;
};
struct Net {
  std::string_view name;
  std::vector<Operator> operators;
  std::vector<std::string_view> inputs, outputs;  ///< external ones
};

/// An input of the model.
struct Input {
  std::string name;
  DType dtype = DType::kFloat32;
  /// -1: free; nothing: neither the model nor value_info.json says how many dims there are.
  std::optional<std::vector<int64_t>> dims = std::nullopt;
};

struct Model {
  Net init, predict;
  std::vector<Input> inputs;  ///< what neither net makes, and what it fills with a place holder
  std::set<std::string_view> place_holders;
};

/// What the files of both nets are called in a folder.
struct NetNames {
  std::string predict = kPredictNet, init = kInitNet;
};
/// By the name of one of them: predict in that of the one is init in that of the other.
NetNames net_names(const std::string& given);

/// Reads a NetDef. Throws Error(kInvalidModel) with the byte.
Net read_net(std::string_view bytes);

using wire::ModelFiles;
/// The model of these files. Throws Error(kInvalidModel), naming the file.
Model read_model(const ModelFiles& files);

/// What value_info.json says, by name. Throws Error(kInvalidModel).
std::map<std::string, Input> read_value_info(std::string_view json);

/// The names of the model's results, each once: of a net that names none, what its last operator makes.
std::vector<std::string> output_names(const Model& model);

/// Whether operators of that type make a constant of their arguments.
bool is_fill(std::string_view type);
/// How many elements a fill makes; nothing where its argument shape is none.
std::optional<int64_t> filled_elements(const Operator& fill);
/// Equal elements that stand in the graph as they are; more of them are made by it.
inline constexpr int64_t kMostEqual = int64_t{1} << 16;
/// The type of what a fill makes; nothing for one that is not known.
std::optional<DType> filled_dtype(const Operator& fill);
/// Of a number of TensorProto.DataType of Caffe2.
std::optional<DType> dtype_of(int64_t number);

FileFacts facts_of(const Model& model);

}  // namespace tensormill::frontend::caffe2
