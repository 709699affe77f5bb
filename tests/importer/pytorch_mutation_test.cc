// Exported programs whose text was changed: numbers, names and words in place of others. Each is imported, or
// refused by an error that says what is wrong; nothing else happens.
#include "compiler/frontend/wire/zip.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kChangedPrograms = is_sweep() ? 170 : 20;

class BrokenPytorch : public testing::TestWithParam<const char*> {};

TEST_P(BrokenPytorch, IsImportedOrRefused) {
  const std::string bytes = read_file(fixture_path(GetParam()));
  wire::ZipFile zip(bytes);
  std::vector<std::pair<std::string, std::string>> members;
  size_t program = 0;
  for (const npz::ZipMember& member : zip.members()) {
    if (member.name.ends_with("models/model.json")) program = members.size();
    members.emplace_back(member.name, std::string(zip.read(member.name)));
  }
  const std::string text = members[program].second;
  const auto words = words_of(text);
  expect_imported_or_refused(kChangedPrograms, 23, [&](size_t i, std::mt19937& random) {
    members[program].second = i == 0 ? text : with_changed_words(text, words, random);
    const std::unique_ptr<Importer> model = importer_of_bytes(stored_zip(members));
    ir::verify(model->import(at_free_extent(*model, 3), ops::standard_ops()));
  });
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenPytorch,
                         testing::Values("pytorch_ops/unary1.pt2", "pytorch_ops/binary1.pt2",
                                         "pytorch_ops/moves.pt2", "pytorch_ops/joins.pt2",
                                         "pytorch_ops/places.pt2", "pytorch_ops/pools.pt2",
                                         "pytorch_ops/resizes1.pt2", "pytorch_ops/products1.pt2",
                                         "pytorch_ops/attention.pt2", "pytorch_ops/creation.pt2",
                                         "pytorch_nets/pieces.pt2", "pytorch_nets/decoder.pt2"));

}  // namespace
}  // namespace tensormill::frontend
