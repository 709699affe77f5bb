// TorchScript files whose code or objects were changed: words and numbers in place of others, bytes of
// pickles. Each is imported, or refused by an error that says what is wrong; nothing else happens.
#include "compiler/frontend/wire/zip.h"
#include "tests/importer/broken_copies.h"
#include "tests/importer/imported.h"
#include "tests/importer/stored_zip.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kChangedScripts = is_sweep() ? 250 : 20;

/// Names and numbers of code.
std::vector<std::pair<size_t, size_t>> names_of(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> names;
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_part(text[i])) continue;
    size_t end = i;
    while (end < text.size() && is_part(text[end])) ++end;
    names.emplace_back(i, end - i);
    i = end;
  }
  return names;
}

std::string with_changed_bytes(std::string bytes, std::mt19937& random) {
  for (size_t i = 0; i < 1 + random() % 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
  return bytes;
}

void import_script(const std::string& bytes, const Tensors& inputs) {
  const std::unique_ptr<Importer> model = importer_of_bytes(bytes);
  ImportOptions options;
  for (const SignatureValue& input : model->facts().inputs) {
    const auto found = inputs.find(input.name);
    if (found == inputs.end()) continue;
    for (const int64_t extent : found->second.shape()) options.input_shapes[input.name].emplace_back(extent);
  }
  ir::verify(model->import(options, ops::standard_ops()));
}

class BrokenScripts : public testing::TestWithParam<const char*> {};

TEST_P(BrokenScripts, AreImportedOrRefused) {
  const std::string name = std::string("pytorch_script/") + GetParam();
  const std::string bytes = read_file(fixture_path(name + ".pt"));
  const Tensors inputs = arrays_of(name + ".npz", "in.");
  wire::ZipFile zip(bytes);
  std::vector<std::pair<std::string, std::string>> members;
  std::vector<size_t> changed;
  for (const npz::ZipMember& member : zip.members()) {
    if (member.name.ends_with(".py") || member.name.ends_with(".pkl")) changed.push_back(members.size());
    members.emplace_back(member.name, std::string(zip.read(member.name)));
  }
  const auto import_copy = [&](size_t i, std::mt19937& random) {
    auto copy = members;
    std::string& member = copy[changed[random() % changed.size()]].second;
    const bool is_code = member.find("class ") != std::string::npos;
    const auto words = is_code ? names_of(member) : std::vector<std::pair<size_t, size_t>>();
    if (i > 0)
      member = words.empty() ? with_changed_bytes(member, random) : with_changed_words(member, words, random);
    import_script(stored_zip(copy), inputs);
  };
  expect_imported_or_refused(kChangedScripts, 29, import_copy, {ErrorCode::kShapeRequired});
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenScripts,
                         testing::Values("control_scripted", "search_frozen", "residual_frozen", "gru_traced",
                                         "writes_traced", "decoder_traced", "ops_moves", "ops_joins"));

}  // namespace
}  // namespace tensormill::frontend
