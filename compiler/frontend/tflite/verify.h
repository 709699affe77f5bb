/// FlatBuffers' verifier, table by table, so that an error names the table that is broken.
/// Thread-safety: pure functions.
#pragma once

#include <tflite_schema_generated.h>

#include <string_view>

namespace tensormill::frontend::tflite {

/// The root of a verified file. Throws Error(kInvalidModel) naming the table and the byte where it begins.
const tflite_file::Model& verified_root(std::string_view bytes);
/// " at byte 120" of what lies in the file, "" of what does not.
std::string place_of(std::string_view bytes, const void* at);

}  // namespace tensormill::frontend::tflite
