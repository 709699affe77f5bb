/// Which dims of a model stay free, and the options that import it at extents of them.
/// Thread-safety: values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/frontend/onnx/import.h"
#include "runtime/base/shape_buckets.h"

namespace tensormill::frontend::onnx {

/// Which dim of which input is free, under which name.
class Signature {
public:
  /// Throws Error(kInvalidArgument) for a bucket of no dim.
  Signature(const ModelFacts& facts, const ImportOptions& options, const ShapeBuckets& buckets);

  std::vector<std::string> free_dims;
  std::map<std::string, DimShape> shapes;      ///< of inputs with free dims
  std::map<std::string, std::string> assumed;  ///< free dims that nobody requested, and an input of each

private:
  void learn_names(const SignatureValue& input, const ImportOptions& options);
  std::string free_name(const SignatureValue& input, const DimShape* given, size_t d,
                        const ShapeBuckets& buckets);
  std::string made_name(const std::string& input, size_t d) const;
  void add_input(const SignatureValue& input, const ImportOptions& options, const ShapeBuckets& buckets);

  std::map<std::string, std::string> renamed_;
  std::set<std::string> fixed_;
  std::set<std::string> own_names_;  ///< the model's
};

/// `options` with the free dims bound to `dims`.
ImportOptions bound(const ImportOptions& options, const Signature& signature,
                    const std::vector<int64_t>& dims);

}  // namespace tensormill::frontend::onnx
