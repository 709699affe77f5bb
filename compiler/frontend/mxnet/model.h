/// MXNet's files as plain structs: a symbol (NAME-symbol.json) and its parameters (NAME-0000.params).
/// Thread-safety: values; views live as long as the bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/facts/facts.h"
#include "compiler/frontend/wire/archive_files.h"
#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tensormill::frontend::mxnet {

using wire::ModelFiles;

/// An output of a node.
struct Entry {
  size_t node = 0, index = 0;
};

struct Node {
  std::string op;  ///< "null": a variable
  std::string name;
  std::map<std::string, std::string, std::less<>> attributes;
  std::vector<Entry> inputs;  ///< of nodes before it
  size_t outputs = 1;         ///< how many it has

  bool is_variable() const { return op == "null"; }
};

struct Symbol {
  std::vector<Node> nodes;
  std::vector<Entry> heads;
  int64_t version = 0;  ///< 10901: MXNet 1.9.1; 0: the file does not say
};

/// Throws Error(kInvalidModel) naming the node; Error(kTooLarge) for more than 64 MiB.
Symbol read_symbol(std::string_view json);

/// Of a number that attributes and files of parameters have for a type; nothing for another one.
std::optional<DType> dtype_of(int64_t flag);

/// A dense array of a file of parameters.
struct Parameter {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string_view bytes;  ///< elements in row-major order
};
/// By the names of variables, without what says which kind of variable it is ("arg:", "aux:").
using Parameters = std::map<std::string, Parameter, std::less<>>;
/// Throws Error(kInvalidModel) naming the array and the byte; Error(kNotSupported) for sparse arrays.
Parameters read_parameters(std::string_view bytes);
/// Whether the bytes are those of such a file.
bool is_parameters(std::string_view bytes);

/// The names of a model's two files.
struct FileNames {
  std::string symbol, parameters;
};
/// The symbol among these names of files, and its parameters of the last epoch, both in one folder. Throws
/// Error(kInvalidModel) where there is none of one or there are several symbols.
FileNames file_names(const std::vector<std::string>& names);
/// The same of a folder, or of a symbol, beside which its parameters lie. Throws as above.
FileNames file_names_at(const std::string& path);
/// The file of parameters of the last epoch that belongs to a symbol called `symbol`; nothing where there is
/// none.
std::optional<std::string> parameters_of(const std::string& symbol, const std::vector<std::string>& names);
/// Whether a file of that name, which may be of a folder, is a symbol.
bool is_symbol_name(std::string_view name);

struct Model {
  Symbol symbol;
  Parameters parameters;
};
/// `files` has both by their names. Throws as the readers.
Model read_model(const FileNames& names, const ModelFiles& files);
FileFacts facts_of(const Model& model);

}  // namespace tensormill::frontend::mxnet
