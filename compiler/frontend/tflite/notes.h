/// What metadata entry TFLITE_METADATA says of a model, and the files that are appended to the model as a
/// zip: labels, vocabularies. Thread-safety: pure functions; views live as long as the bytes.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/tflite/model.h"

namespace tensormill::frontend::tflite {

enum class FileKind : int8_t {
  kUnknown,
  kDescriptions,
  kAxisLabels,
  kValueLabels,
  kScoreCalibration,
  kVocabulary,
  kScann,
};
struct AssociatedFile {
  std::string_view name;
  FileKind kind = FileKind::kUnknown;
  std::string_view locale;
};
enum class ColorSpace : int8_t { kUnknown, kRgb, kGrayscale };

struct TensorNotes {
  std::string_view name, description;
  bool is_image = false;
  ColorSpace color = ColorSpace::kUnknown;
  uint32_t width = 0, height = 0;  ///< of an image; 0: not said
  Floats mean, std;                ///< (x - mean) / std, of each channel or of all
  std::vector<AssociatedFile> files;
};
struct ModelNotes {
  /// What the views are of, where the file has the description at a place that its numbers may not lie at.
  std::shared_ptr<const std::vector<uint8_t>> moved;
  std::string_view name, description, version, author, license;
  std::vector<TensorNotes> inputs, outputs;  ///< of the main subgraph, in its order
};

/// Nothing where the model has none. Throws Error(kInvalidModel) for one that is broken.
std::optional<ModelNotes> read_notes(const Model& model);

/// The files appended to a model, at most 64 MiB of them: name and content. Empty where none are. Throws
/// Error(kInvalidModel).
using AppendedFiles = std::vector<std::pair<std::string, std::string>>;
AppendedFiles associated_files(std::string_view bytes);
/// The lines of a file of labels, without line ends; an empty last line is none.
std::vector<std::string> label_lines(std::string_view text);

}  // namespace tensormill::frontend::tflite
