/// What torch writes as pickles, read by a machine of its own that knows a few opcodes and a closed list of
/// names: tensors, parameters, what they are made of, and, where they are requested, records of TorchScript.
/// Anything else is an error, and nothing is run. Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/pytorch/model.h"
#include "compiler/frontend/wire/zip.h"

namespace tensormill::frontend::pytorch {

struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kTuple,
    kList,
    kDict,
    kName,
    kStorage,
    kTensor,
    kObject
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  double real = 0;
  std::string text;  ///< of an object: the name of its class, "__torch__.net.Block"
  /// Of a dictionary: key, value, key, value ...; of an object: its state, which may be missing.
  std::vector<std::shared_ptr<PickleValue>> items;
  StoredTensor tensor;
  int depth = 0;
  bool is_held = false;  ///< by another value
};

/// Where a pickle lies, and what may be in it.
struct PickleSource {
  std::string member;
  std::string storages;      ///< the folder of what its tensors lie in, "net/data/"
  bool has_objects = false;  ///< of classes of "__torch__."
  bool is_hollow = false;    ///< its tensors have shapes alone, their storages no elements
};
/// The value of a pickle; nothing in it holds itself. Throws Error(kInvalidModel) naming the member and the
/// byte.
std::shared_ptr<const PickleValue> read_pickle(wire::ZipFile& zip, const PickleSource& source);

/// The tensors by name of a saved dictionary. Views are of the zip. Throws Error(kInvalidModel).
std::map<std::string, StoredTensor> read_saved_tensors(wire::ZipFile& zip);

/// Throws Error(kInvalidModel) where elements lie outside of the storage.
void check_stored(const StoredTensor& tensor, const std::string& name);

}  // namespace tensormill::frontend::pytorch
