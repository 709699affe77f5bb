/// Core ML models as an Importer: an .mlmodel with an ML Program, alone or with its weights beside it, and
/// .mlpackages, which are folders, or lie in a tar or a zip. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are those of a Core ML model, or of an archive of a package.
bool is_coreml(std::string_view bytes);
/// Of these, the model's file alone, beside which weights may lie.
bool is_mlmodel_file(std::string_view bytes);
/// A package's folder, or an .mlmodel with the files of weights that it names beside it. Throws kNotFound,
/// kInvalidModel.
ModelSource open_mlpackage(const std::string& path);
/// `signature`: the function of a model of several; "": its default. Throws as make_importer.
std::unique_ptr<Importer> make_coreml_importer(ModelSource source, const std::string& signature);

}  // namespace tensormill::frontend
