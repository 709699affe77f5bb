// Exported programs whose text was changed: numbers, names and words in place of others. Each is imported, or
// refused by an error that says what is wrong; nothing else happens.
#include <cstring>
#include <random>
#include <set>

#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"
#include "tests/importer/imported.h"
#include "tests/scope.h"

namespace tensormill::frontend {
namespace {

const size_t kChangedPrograms = is_sweep() ? 170 : 20;

uint32_t zip_crc(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

void put_bytes(std::string& to, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

/// A zip of stored members.
std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string zip, directory;
  for (const auto& [name, data] : members) {
    std::string common;
    for (const uint64_t field : {20, 0, 0, 0, 0x21}) put_bytes(common, field, 2);
    put_bytes(common, zip_crc(data), 4);
    put_bytes(common, data.size(), 4);
    put_bytes(common, data.size(), 4);
    put_bytes(common, name.size(), 2);
    put_bytes(common, 0, 2);
    directory += std::string("PK\x01\x02", 4) + std::string("\x14\x00", 2) + common;
    for (const uint64_t field : {0, 0, 0}) put_bytes(directory, field, 2);
    put_bytes(directory, 0, 4);
    put_bytes(directory, zip.size(), 4);
    directory += name;
    zip += std::string("PK\x03\x04", 4) + common + name + data;
  }
  const size_t start = zip.size();
  zip += directory + std::string("PK\x05\x06", 4);
  for (const uint64_t field : {uint64_t{0}, uint64_t{0}, uint64_t{members.size()}, uint64_t{members.size()}})
    put_bytes(zip, field, 2);
  put_bytes(zip, directory.size(), 4);
  put_bytes(zip, start, 4);
  put_bytes(zip, 0, 2);
  return zip;
}

/// Where the words of a text stand: what is between two quotes, and numbers.
std::vector<std::pair<size_t, size_t>> words_of(const std::string& text) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (text[i] != '"' && !is_number) continue;
    size_t end = i + 1;
    if (is_number) {
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      words.emplace_back(i, end - i);
    } else {
      while (end < text.size() && text[end] != '"') ++end;
      words.emplace_back(i + 1, end - i - 1);
    }
    i = end;
  }
  return words;
}

/// A few words in place of others of the same text, or numbers that are none of it.
std::string with_changed_words(const std::string& text, const std::vector<std::pair<size_t, size_t>>& words,
                               std::mt19937& random) {
  static const std::vector<std::string> kNumbers = {"0", "1", "-1", "7", "1000000007", "9223372036854775807"};
  std::string copy = text;
  const size_t changes = 1 + random() % 3;
  for (size_t i = 0; i < changes; ++i) {
    const auto [at, size] = words[random() % words.size()];
    const auto [other, length] = words[random() % words.size()];
    const bool is_number = std::isdigit(static_cast<unsigned char>(text[at])) != 0;
    std::string word = text.substr(other, length);
    if (is_number) word = kNumbers[random() % kNumbers.size()];
    if (at + size > copy.size()) continue;
    copy.replace(at, size, word);
  }
  return copy;
}

void import_program(const std::string& bytes) {
  const std::shared_ptr<void> memory = allocate_aligned(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  ModelSource source;
  source.model =
      MappedFile::part_of(memory, {static_cast<const std::byte*>(memory.get()), bytes.size()}, "model");
  const std::unique_ptr<Importer> model = make_importer(std::move(source));
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
