/// What TensorFlow.js' models have in common: model.json, which names the files of weights beside it, and
/// their elements. Thread-safety: values; views live as long as the files and the object that has them.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/wire/archive_files.h"
#include "runtime/base/dtype.h"
#include "runtime/base/json_fwd.h"
#include "runtime/base/shape.h"

namespace tensormill::frontend::wire {

/// The file that such a model is known by.
inline constexpr const char* kTfjsFile = "model.json";

struct TfjsWeight {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string_view bytes;  ///< elements in row-major order
};

class TfjsWeights {
public:
  /// All that `json`, which is model.json, names. Throws Error(kInvalidModel) naming where in model.json, or
  /// which file of weights; Error(kNotSupported) for elements of another type.
  TfjsWeights(const ModelFiles& files, const Json& json);
  /// In the model's order; each name stands once.
  const std::vector<TfjsWeight>& all() const { return weights_; }
  /// Null where there is none.
  const TfjsWeight* find(const std::string& name) const;

private:
  std::string_view group_bytes(const ModelFiles& files, const Json& paths);
  void add(const Json& json);

  std::vector<TfjsWeight> weights_;
  std::map<std::string, size_t> by_name_;
  std::deque<std::string> made_;  ///< what does not lie in a file as it is
  std::string_view bytes_;        ///< of the group that is read
  size_t at_ = 0;
};

/// model.json. Throws Error(kInvalidModel); Error(kTooLarge) for more than 64 MiB.
Json read_tfjs_json(std::string_view bytes);
/// A member of it, or of an object in it, which is of that kind. Throws Error(kInvalidModel).
const Json& tfjs_member(const Json& json, const char* key, bool (Json::*is_kind)() const noexcept);
/// The files of weights that it names: each a plain name. Throws Error(kInvalidModel).
std::vector<std::string> tfjs_weight_files(const Json& json);

}  // namespace tensormill::frontend::wire
