/// Formats of models, recognised by what is in a file or folder, never by a suffix, and what a file of one
/// that cannot be imported is refused with. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "runtime/base/error.h"

namespace tensormill::frontend {

enum class FileFormat : uint8_t {
#define TM_MODEL_FORMAT(enumerator, name, title, is_importable, advice) enumerator,
#include "compiler/frontend/formats/formats.def"
#undef TM_MODEL_FORMAT
};

/// Whether it is one of TensorFlow.js', a model.json with files beside it.
inline bool is_tfjs(FileFormat format) {
  return format == FileFormat::kTfjsGraph || format == FileFormat::kTfjsLayers;
}

/// One row of formats.def.
struct FormatRow {
  FileFormat format;
  std::string_view name, title;
  bool is_importable;
  std::string_view advice;
};
const FormatRow& format_row(FileFormat format);
const std::vector<FormatRow>& all_formats();
/// The names of those that can be imported.
std::vector<std::string> importable_formats();

/// The format of a file's bytes; kUnknown for what is none of the table's, or is cut off too early to tell.
/// Looks at a bounded part of it, and runs nothing.
FileFormat detect_format(std::string_view bytes);
/// The same of a file or a folder. Throws as MappedFile::open.
FileFormat detect_path(const std::string& path);

/// What is in a file whose format has a reader; nothing for the others. Throws what the reader throws, with
/// the format's words in front.
std::optional<FileFacts> read_file_facts(std::string_view bytes, FileFormat format);
/// The same of a file or a folder. Keras' files are read by libhdf5, which may end the process where one is
/// broken.
std::optional<FileFacts> read_path_facts(const std::string& path, FileFormat format);

/// Error(kNotSupported) for a format that is known and cannot be imported: "this is a Core ML model;
/// TensorMill does not import it yet: ...".
Error not_importable(FileFormat format);
/// Throws not_importable for bytes that are of such a format; does nothing for ONNX models, for archives of
/// one, and for what is not known, of which the ONNX reader says more.
void check_importable(std::string_view bytes);

}  // namespace tensormill::frontend
