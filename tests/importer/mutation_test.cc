// Broken copies of TFLite files and Keras models: each is imported, or refused by an error that says what is
// wrong; nothing else happens.
#include <cctype>
#include <cstring>

#include "tests/importer/broken_copies.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kCopies = is_sweep() ? 250 : 100, kKerasCopies = is_sweep() ? 250 : 20;

/// A few bytes changed behind the mark; the lengths of tables and the elements of lists among them.
std::string broken(const std::string& bytes, std::mt19937& random) {
  std::string copy = bytes;
  const size_t changes = 1 + random() % 4;
  for (size_t i = 0; i < changes; ++i) {
    const size_t at = 8 + random() % (copy.size() - 8);
    copy[at] = static_cast<char>(random() % 3 == 0 ? random() : copy[at] ^ (1 << random() % 8));
  }
  return copy;
}

void import_all(const std::string& bytes) {
  const std::unique_ptr<Importer> model = importer_of_bytes(bytes);
  ir::verify(model->import(at_free_extent(*model, 1), ops::standard_ops()));
}

/// A Keras model of the form that packages hold, in whose configuration some digits and letters are others.
std::string with_other_words(const std::string& bytes, std::mt19937& random) {
  std::string copy = bytes;
  // Behind the first line; weights are bytes whose values do not matter.
  const size_t begin = copy.find('\n') + 1, end = copy.find("\"weights\":[");
  const size_t changes = 1 + random() % 4;
  for (size_t i = 0; i < changes; ++i) {
    size_t at = begin + random() % (end - begin);
    const bool wants_digit = random() % 4 != 0;
    for (size_t k = 0; k < end - begin; ++k, at = at + 1 == end ? begin : at + 1) {
      const auto letter = static_cast<unsigned char>(copy[at]);
      if (wants_digit ? std::isdigit(letter) != 0 : std::isalpha(letter) != 0) break;
    }
    copy[at] = static_cast<char>(wants_digit ? '0' + random() % 10 : 'a' + random() % 26);
  }
  return copy;
}

class BrokenTflite : public testing::TestWithParam<const char*> {};

TEST_P(BrokenTflite, IsImportedOrRefused) {
  const std::string bytes = read_file(fixture_path(GetParam()));
  expect_imported_or_refused(kCopies, 17,
                             [&](size_t, std::mt19937& random) { import_all(broken(bytes, random)); });
}

/// Lists, among them operands, numbers and extents, that are shorter by an element: their lengths stand in
/// front of them, as whole numbers at places that four divides.
std::string with_shorter_lists(const std::string& bytes, std::mt19937& random) {
  constexpr uint32_t kLongest = 8;
  std::string copy = bytes;
  const size_t words = copy.size() / sizeof(uint32_t), begin = random() % words;
  size_t left = 1 + random() % 2;
  for (size_t i = 0; i < words && left > 0; ++i) {
    char* at = copy.data() + (begin + i) % words * sizeof(uint32_t);
    uint32_t length = 0;
    std::memcpy(&length, at, sizeof(length));
    if (length == 0 || length > kLongest || random() % 4 != 0) continue;
    --length;
    std::memcpy(at, &length, sizeof(length));
    --left;
  }
  return copy;
}

TEST_P(BrokenTflite, WithShorterListsIsImportedOrRefused) {
  const std::string bytes = read_file(fixture_path(GetParam()));
  expect_imported_or_refused(
      kCopies, 23, [&](size_t, std::mt19937& random) { import_all(with_shorter_lists(bytes, random)); });
}

INSTANTIATE_TEST_SUITE_P(
    Files, BrokenTflite,
    testing::Values("tflite_ops/elementwise.tflite", "tflite_ops/integers.tflite",
                    "tflite_ops/windows.tflite", "tflite_ops/products.tflite", "tflite_ops/moves.tflite",
                    "tflite_ops/places.tflite", "tflite_ops/steps.tflite", "tflite_ops/quantized.tflite",
                    "tflite_ops/updates.tflite", "tflite_ops/boxes.tflite", "tflite_ops/bits.tflite",
                    "tflite_ops/gathers.tflite", "tflite_ops/rows.tflite", "tflite_ops/cells.tflite",
                    "tflite_ops/state.tflite", "tflite_ops/spectra.tflite", "tflite_ops/counted.tflite",
                    "tflite_ops/sound.tflite", "tflite_ops/mediapipe.tflite", "tflite_ops/small_cells.tflite",
                    "tflite_ops/landmarks.tflite", "tflite_ops/flex.tflite"));

class BrokenKeras : public testing::TestWithParam<const char*> {};

TEST_P(BrokenKeras, IsImportedOrRefused) {
  const std::string name = std::string("keras_layers/") + GetParam() + ".keras";
  const std::string bytes(importer_of(name)->kept_source().model->text());
  expect_imported_or_refused(
      kKerasCopies, 17, [&](size_t, std::mt19937& random) { import_all(with_other_words(bytes, random)); });
}

INSTANTIATE_TEST_SUITE_P(Families, BrokenKeras,
                         testing::Values("elementwise", "convolutions", "pools", "moves", "merges",
                                         "normalizations", "recurrent", "attention", "operators", "nested"));

}  // namespace
}  // namespace tensormill::frontend
