/// A Keras model as one piece of bytes that is read without HDF5: what a package holds of it, and what a
/// model is made whose weights lie in files beside its configuration. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "compiler/frontend/keras/model.h"

namespace tensormill::frontend::keras {

/// Whether the bytes begin as such a form does.
bool is_kept_form(std::string_view bytes);
/// The same model has the same bytes.
std::string kept_form(const Model& model);
/// The views of the model show the bytes. Throws Error(kInvalidModel).
Model read_kept_form(std::string_view bytes);

}  // namespace tensormill::frontend::keras
