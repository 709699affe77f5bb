/// MXNet models as an Importer: NAME-symbol.json and NAME-0000.params, in a folder, a tar or a zip.
/// Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are those of a symbol, or of an archive of a symbol and its parameters.
bool is_mxnet(std::string_view bytes);
/// Of these, the symbol alone, beside which its parameters lie.
bool is_mxnet_symbol(std::string_view bytes);
/// A model's folder, or its symbol, with its parameters of the last epoch. Throws kNotFound, kInvalidModel.
ModelSource open_mxnet_model(const std::string& path);
/// Throws as make_importer.
std::unique_ptr<Importer> make_mxnet_importer(ModelSource source);

}  // namespace tensormill::frontend
