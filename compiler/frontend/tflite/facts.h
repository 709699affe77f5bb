/// What a .tflite file holds, for people. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/tflite/model.h"

namespace tensormill::frontend::tflite {

/// Reads the file (aligned as for read_model), its description and the names of appended files. Throws as
/// read_model.
FileFacts read_facts(std::string_view bytes);
/// How the numbers of a model are stored, in a few words: "float32", "float16 weights",
/// "int8 weights, float activations (dynamic range)", "int8 weights and activations" …
std::string quantization_kind(const Model& model);

}  // namespace tensormill::frontend::tflite
