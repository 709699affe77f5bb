#include "compiler/ir/bundle.h"

#include <array>
#include <charconv>

#include "runtime/base/error.h"

namespace tensormill::ir {

namespace {

constexpr std::string_view kHeader = "tensormill graph bundle 2\n";
constexpr int64_t kAlign = 64;

/// "constant <digest> <dtype> <elements> <offset>\n"
struct Entry {
  Digest digest;
  DType dtype = DType::kFloat32;
  int64_t elements = 0;
  int64_t offset = 0;
};

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) throw Error(ErrorCode::kInvalidModel, "graph bundle: a line is cut off");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

int64_t parse_count(std::string_view word) {
  int64_t value = -1;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || value < 0) {
    throw Error(ErrorCode::kInvalidModel, "graph bundle: \"" + std::string(word) + "\" is no count");
  }
  return value;
}

Entry parse_entry(std::string_view line) {
  next_word(line);
  Entry entry;
  const std::optional<Digest> digest = Digest::parse(next_word(line));
  const std::optional<DType> dtype = dtype_from_name(next_word(line));
  if (!digest || !dtype) throw Error(ErrorCode::kInvalidModel, "graph bundle: malformed constant");
  entry.digest = *digest;
  entry.dtype = *dtype;
  entry.elements = parse_count(next_word(line));
  entry.offset = parse_count(next_word(line));
  return entry;
}

Tensor constant_at(const Entry& entry, const std::shared_ptr<const MappedFile>& constants) {
  const std::span<const std::byte> bytes = constants->bytes();
  const int64_t size = num_bytes({entry.elements}, entry.dtype);
  const int64_t available = static_cast<int64_t>(bytes.size());
  if (entry.offset % kAlign != 0 || entry.offset > available || size > available - entry.offset) {
    throw Error(ErrorCode::kInvalidModel, "graph bundle: constant at " + std::to_string(entry.offset) +
                                              " with " + std::to_string(size) + " bytes is outside of " +
                                              std::to_string(available));
  }
  // Tensors have no const data pointer; mapped constants are only read.
  auto* data = const_cast<std::byte*>(bytes.data()) + entry.offset;
  return Tensor(entry.dtype, {entry.elements}, std::const_pointer_cast<MappedFile>(constants), data);
}

}  // namespace

namespace {

/// Constants that are not in the file yet.
void write_constants(const Graph& graph, int text_fd, int constants_fd,
                     std::map<std::pair<const void*, size_t>, bool>& seen, std::map<Digest, bool>& written,
                     int64_t& at) {
  static constexpr std::array<char, kAlign> kZeros{};
  for (const Value& value : graph.values()) {
    if (!value.constant || value.constant->num_bytes() == 0) continue;
    // Graphs of one model share its mapped weights.
    if (!seen.emplace(std::pair(value.constant->data(), value.constant->num_bytes()), true).second) continue;
    const std::string_view bytes(static_cast<const char*>(value.constant->data()),
                                 value.constant->num_bytes());
    const Digest digest = Digest::of(bytes);
    if (!written.emplace(digest, true).second) continue;
    write_all(text_fd,
              "constant " + digest.text() + " " + std::string(dtype_name(value.type.dtype)) + " " +
                  std::to_string(value.constant->num_elements()) + " " + std::to_string(at) + "\n",
              "graph bundle");
    write_all(constants_fd, bytes, "graph bundle constants");
    const int64_t size = static_cast<int64_t>(bytes.size());
    // At least one block of zeros follows, so that vector loads at the end stay inside the file.
    const int64_t padding = kAlign + (kAlign - size % kAlign) % kAlign;
    write_all(constants_fd, std::string_view(kZeros.data(), kAlign), "graph bundle constants");
    write_all(constants_fd, std::string_view(kZeros.data(), static_cast<size_t>(padding - kAlign)),
              "graph bundle constants");
    at += size + padding;
  }
}

}  // namespace

void write_bundle(const std::vector<const Graph*>& graphs, int text_fd, int constants_fd) {
  write_all(text_fd, kHeader, "graph bundle");
  std::map<std::pair<const void*, size_t>, bool> seen;
  std::map<Digest, bool> written;
  int64_t at = 0;
  for (const Graph* graph : graphs) write_constants(*graph, text_fd, constants_fd, seen, written, at);
  for (const Graph* graph : graphs) {
    const std::string text = print(*graph);
    write_all(text_fd, "graph " + std::to_string(text.size()) + "\n" + text, "graph bundle");
  }
}

std::vector<Graph> read_bundle(const MappedFile& text, const std::shared_ptr<const MappedFile>& constants,
                               const OpRegistry& ops) {
  std::string_view rest = text.text();
  if (rest.substr(0, kHeader.size()) != kHeader)
    throw Error(ErrorCode::kInvalidModel, "graph bundle: unknown header");
  rest.remove_prefix(kHeader.size());
  std::map<Digest, Tensor> tensors;
  while (rest.substr(0, 9) == "constant ") {
    const Entry entry = parse_entry(next_line(rest));
    tensors.emplace(entry.digest, constant_at(entry, constants));
  }
  try {
    std::vector<Graph> graphs;
    while (!rest.empty()) {
      std::string_view line = next_line(rest);
      if (next_word(line) != "graph") throw Error(ErrorCode::kInvalidModel, "graph bundle: no graph");
      const int64_t size = parse_count(next_word(line));
      if (size > static_cast<int64_t>(rest.size()))
        throw Error(ErrorCode::kInvalidModel, "graph bundle: a graph is cut off");
      graphs.push_back(parse_graph(rest.substr(0, static_cast<size_t>(size)), ops, tensors));
      rest.remove_prefix(static_cast<size_t>(size));
    }
    if (graphs.empty()) throw Error(ErrorCode::kInvalidModel, "graph bundle: no graph");
    return graphs;
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidModel, error.message());
  }
}

}  // namespace tensormill::ir
