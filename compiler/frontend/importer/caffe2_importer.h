/// Caffe2 networks as an Importer: the net that fills the weights and the net that computes, in a folder, a
/// tar or a zip. Thread-safety: pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/frontend/importer/importer.h"

namespace tensormill::frontend {

/// Whether the bytes are those of a net, or of an archive of both nets.
bool is_caffe2(std::string_view bytes);
/// Of these, a net alone, beside which the other one lies.
bool is_caffe2_net(std::string_view bytes);
/// A folder with both nets, or one of them with the other one beside it: predict in the name of the one is
/// init in that of the other. Throws kNotFound, kInvalidModel.
ModelSource open_caffe2(const std::string& path);
/// Throws as make_importer.
std::unique_ptr<Importer> make_caffe2_importer(ModelSource source);

}  // namespace tensormill::frontend
