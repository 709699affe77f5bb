/// The nodes of a model as they stand in its file, for who looks at why it cannot be imported: what each
/// reads and makes, and which of them cannot be imported, and why. Nothing is concluded of it: a file that is
/// broken elsewhere has one, too. Thread-safety: values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::frontend {

/// An operator, or a call of a layer.
struct FileNode {
  std::string op;
  /// As errors call it.
  std::string label;
  /// Where it is in the file, unique but for what stands there once and is called more often: what a refused
  /// place has as its pointer. "": as the label.
  std::string path = {};
  /// What the paths of all places within it begin with: of a loop's body, of the functions that it calls.
  std::vector<std::string> within = {};
  std::vector<std::string> inputs = {}, outputs = {};  ///< values; "" where one is absent
  /// Makes a constant, or only has to come before others: left out unless it is refused.
  bool is_aside = false;
};

/// "f32[1,N]", as the printer of graphs has types.
std::string shown_type(std::string_view dtype, const std::vector<std::string>& dims);

class FileGraph {
public:
  FileGraph() = default;
  explicit FileGraph(std::string_view name) : name_(name) {}

  /// As many nodes as the console shows, and as many bytes as are a part of an answer.
  static constexpr size_t kMostNodes = 10'000, kMostBytes = size_t{4} << 20;

  /// `type`: as the printer of graphs has it, "f32[1,N]"; "" where the file does not say it. What has been
  /// added before keeps what was said of it.
  void add_value(std::string_view name, const std::string& type, bool is_constant = false);
  void add_input(std::string_view name, const std::string& type);
  void add_output(std::string_view name, const std::string& type);
  void add_node(FileNode node);
  /// Counts what is about to be added, so that nothing is made that is too large; whether it fits.
  bool takes(size_t bytes);
  /// Whether nothing more is taken, as it is larger than anybody looks at: who fills it stops.
  bool is_full() const { return is_full_; }
  bool empty() const { return nodes_.empty(); }

  /// JSON of the form Graph (api/schema), where the nodes that `refused` is about say why: its pointers are
  /// paths. "" of a graph that is full or has no nodes. Text that is not UTF-8 has U+FFFD.
  std::string json(const std::vector<ErrorDetail>& refused) const;

private:
  struct Value {
    std::string type;
    bool is_constant = false;
  };

  std::string name_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<FileNode> nodes_;
  std::map<std::string, Value, std::less<>> values_;
  size_t bytes_ = 0;
  bool is_full_ = false;
};

}  // namespace tensormill::frontend
