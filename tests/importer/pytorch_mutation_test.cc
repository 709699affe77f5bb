// Exported programs whose text was changed: numbers, names and words in place of others. Each is imported, or
// refused by an error that says what is wrong; nothing else happens.
#include <cstring>
#include <random>
#include <set>

#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kChangedPrograms = is_sweep() ? 170 : 20;

void import_program(const std::string& bytes) {
  const std::unique_ptr<Importer> model = importer_of_bytes(bytes);
  ImportOptions options;
  for (const SignatureValue& input : model->facts().inputs) {
    DimShape& shape = options.input_shapes[input.name] = input.shape;
    for (Dim& dim : shape) {
      const auto* extent = std::get_if<int64_t>(&dim);
      if (extent == nullptr || *extent < 0) dim = int64_t{3};
    }
  }
  ir::verify(model->import(options, ops::standard_ops()));
}

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
  std::mt19937 random(23);
  const std::set<ErrorCode> refusals = {ErrorCode::kInvalidModel, ErrorCode::kNotSupported,
                                        ErrorCode::kOperatorNotImplemented, ErrorCode::kTooLarge,
                                        ErrorCode::kMemoryBudget};
  size_t imported = 0, refused = 0;
  for (size_t i = 0; i < kChangedPrograms; ++i) {
    SCOPED_TRACE("copy " + std::to_string(i));
    members[program].second = i == 0 ? text : with_changed_words(text, words, random);
    try {
      import_program(stored_zip(members));
      ++imported;
    } catch (const Error& error) {
      EXPECT_EQ(refusals.count(error.code()), 1u) << error.message();
      ++refused;
    }
  }
  EXPECT_GT(imported, 0u);
  EXPECT_GT(refused, 0u);
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
