/// What an importer says of a model, from what its file says. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Facts without a signature; `writer`: "CNTK ".
ModelFacts model_facts(const std::string& writer, const FileFacts& file);
/// An input or output; `dtype`: nothing for one that no tensor here has.
SignatureValue signature_value(std::string_view name, std::optional<DType> dtype, DimShape shape);

/// Of a tensor whose number of dims the file does not say.
inline DimShape any_shape() { return {Dim(std::string("..."))}; }
/// Of extents, those less than 0 free.
template <typename Extents>
DimShape dim_shape(const Extents& extents) {
  DimShape shape;
  for (const int64_t extent : extents) shape.push_back(extent < 0 ? Dim(std::string()) : Dim(extent));
  return shape;
}

}  // namespace tensormill::frontend
