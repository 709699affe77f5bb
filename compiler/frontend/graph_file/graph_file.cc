#include "compiler/frontend/graph_file/graph_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "compiler/ir/bundle.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"

namespace tensormill::frontend::graph_file {

namespace {

// "tensormill graph file 1", then the sizes of the weights, which follow, of the guards and of the text.
constexpr std::string_view kMark = "tensormill graph file 1 ";
constexpr size_t kHeaderBytes = 128;

struct Header {
  uint64_t weights = 0, guards = 0, text = 0;
};

[[noreturn]] void broken(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "graph file: " + what);
}

Header parse_header(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) broken("it ends in its header");
  Header header;
  const char* at = bytes.data() + kMark.size();
  const char* const end = bytes.data() + kHeaderBytes;
  for (uint64_t* size : {&header.weights, &header.guards, &header.text}) {
    while (at != end && *at == ' ') ++at;
    const auto parsed = std::from_chars(at, end, *size);
    if (parsed.ec != std::errc()) broken("its header names no sizes");
    at = parsed.ptr;
  }
  const uint64_t rest = bytes.size() - kHeaderBytes;
  if (header.weights > rest || header.guards > rest - header.weights ||
      header.text != rest - header.weights - header.guards)
    broken("it has " + std::to_string(rest) + " bytes behind its header, which names " +
           std::to_string(header.weights) + ", " + std::to_string(header.guards) + " and " +
           std::to_string(header.text));
  return header;
}

constexpr std::array kRelations = {"equal", "less", "less_equal"};

std::string guards_text(const ir::Graph& graph) {
  Json list = Json::array();
  if (graph.symbols() != nullptr) {
    for (const ir::Guard& guard : graph.symbols()->guards())
      list.push_back({{"relation", kRelations.at(static_cast<size_t>(guard.relation))},
                      {"holds", guard.holds},
                      {"left", guard.left.to_string()},
                      {"right", guard.right.to_string()},
                      {"origin", guard.origin}});
  }
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ir::Guard> parse_guards(std::string_view text) {
  std::vector<ir::Guard> guards;
  try {
    for (const Json& each : parse_json(std::string(text))) {
      ir::Guard guard;
      const auto relation = each.at("relation").get<std::string>();
      const auto* const found = std::find(kRelations.begin(), kRelations.end(), relation);
      if (found == kRelations.end()) broken("a guard of relation \"" + relation + "\"");
      guard.relation = static_cast<ir::Relation>(found - kRelations.begin());
      each.at("holds").get_to(guard.holds);
      guard.left = te::parse_dim(each.at("left").get<std::string>());
      guard.right = te::parse_dim(each.at("right").get<std::string>());
      each.at("origin").get_to(guard.origin);
      guards.push_back(std::move(guard));
    }
  } catch (const Json::exception& error) {
    broken(std::string("guards: ") + error.what());
  } catch (const Error& error) {
    broken("guards: " + std::string(error.message()));
  }
  return guards;
}

std::shared_ptr<const MappedFile> part(const std::shared_ptr<const MappedFile>& file, uint64_t offset,
                                       uint64_t size, const char* name) {
  return MappedFile::part_of(file, file->bytes().subspan(offset, size), name);
}

bool is_plain_text(std::string_view bytes) { return bytes.starts_with("graph \""); }

/// Writes what stands in the graph, the weights where they will stay.
void write_parts(int file, const ir::Graph& graph) {
  const FileDescriptor text = memory_file("graph text");
  const std::string guards = guards_text(graph);
  write_all(file, std::string(kHeaderBytes, ' '), "graph file");
  ir::write_bundle({&graph}, text.get(), file);
  const auto end = static_cast<uint64_t>(::lseek(file, 0, SEEK_CUR));
  const std::shared_ptr<const MappedFile> made = MappedFile::map(text.get(), "graph text");
  write_all(file, guards, "graph file");
  write_all(file, made->text(), "graph file");
  std::string header = std::string(kMark) + std::to_string(end - kHeaderBytes) + " " +
                       std::to_string(guards.size()) + " " + std::to_string(made->text().size());
  header.resize(kHeaderBytes - 1, ' ');
  header += '\n';
  if (::pwrite(file, header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()))
    throw Error(ErrorCode::kIo, "the header of the graph file could not be written");
}

}  // namespace

bool is_graph_file(std::string_view bytes) { return bytes.starts_with(kMark) || is_plain_text(bytes); }

void write(const std::string& path, const ir::Graph& graph) {
  const std::string temporary = path + ".part";
  {
    const FileDescriptor file(::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) throw Error(ErrorCode::kIo, temporary + ": cannot be written");
    try {
      write_parts(file.get(), graph);
    } catch (const Error&) {
      ::unlink(temporary.c_str());
      throw;
    }
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    ::unlink(temporary.c_str());
    throw Error(ErrorCode::kIo, path + ": cannot be written");
  }
}

GraphFile read(const std::shared_ptr<const MappedFile>& file, const ir::OpRegistry& ops) {
  const std::string_view bytes = file->text();
  if (is_plain_text(bytes)) return {ir::parse_graph(bytes, ops), {}};
  if (!bytes.starts_with(kMark)) broken("it does not begin as one");
  const Header header = parse_header(bytes);
  const uint64_t guards = kHeaderBytes + header.weights, text = guards + header.guards;
  std::vector<ir::Graph> graphs = ir::read_bundle(*part(file, text, header.text, "graph text"),
                                                  part(file, kHeaderBytes, header.weights, "weights"), ops);
  if (graphs.size() != 1) broken("it has " + std::to_string(graphs.size()) + " graphs");
  return {std::move(graphs.front()), parse_guards(bytes.substr(guards, header.guards))};
}

}  // namespace tensormill::frontend::graph_file
