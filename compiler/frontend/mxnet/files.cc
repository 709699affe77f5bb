// Which files a model is.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "compiler/frontend/mxnet/model.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::mxnet {

namespace {

constexpr std::string_view kSymbolEnd = "symbol.json", kJsonEnd = ".json", kParametersEnd = ".params";

/// "net" of "net-symbol.json" and of "net.json"; "" of "symbol.json".
std::string_view stem_of(std::string_view symbol) {
  std::string_view stem = symbol;
  for (const std::string_view end : {kSymbolEnd, kJsonEnd}) {
    if (!stem.ends_with(end)) continue;
    stem.remove_suffix(end.size());
    break;
  }
  if (stem.ends_with('-')) stem.remove_suffix(1);
  return stem;
}

/// 7 of "net-0007.params"; -1 of "net.params"; nothing of a file of another model.
std::optional<int64_t> epoch_of(std::string_view name, std::string_view stem) {
  if (!name.ends_with(kParametersEnd) || !name.starts_with(stem)) return std::nullopt;
  name.remove_prefix(stem.size());
  name.remove_suffix(std::min(kParametersEnd.size(), name.size()));
  if (name.empty()) return -1;
  if (name.starts_with('-')) name.remove_prefix(1);
  int64_t epoch = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), epoch);
  if (code != std::errc() || end != name.data() + name.size() || epoch < 0) return std::nullopt;
  return epoch;
}

std::string_view base_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

FileNames names_beside(const std::string& symbol, const std::vector<std::string>& names) {
  const std::optional<std::string> parameters = parameters_of(symbol, names);
  if (!parameters)
    throw Error(
        ErrorCode::kInvalidModel,
        "beside \"" + symbol.substr(0, 200) +
            "\" there is no file of its parameters, NAME-0000.params: give the folder, or a tar or zip "
            "of both files");
  return {std::string(base_of(symbol)), std::string(base_of(*parameters))};
}

}  // namespace

bool is_symbol_name(std::string_view name) { return base_of(name).ends_with(kSymbolEnd); }

std::optional<std::string> parameters_of(const std::string& symbol, const std::vector<std::string>& names) {
  const std::string_view stem = stem_of(symbol);
  std::optional<std::string> last;
  int64_t last_epoch = -2;
  for (const std::string& name : names) {
    const std::optional<int64_t> epoch = epoch_of(name, stem);
    if (!epoch || *epoch <= last_epoch) continue;
    last = name;
    last_epoch = *epoch;
  }
  return last;
}

FileNames file_names(const std::vector<std::string>& names) {
  std::vector<std::string> symbols;
  for (const std::string& name : names)
    if (is_symbol_name(name)) symbols.push_back(name);
  if (symbols.size() != 1)
    throw Error(ErrorCode::kInvalidModel,
                symbols.empty() ? "there is no file NAME-symbol.json"
                                : "there are several files NAME-symbol.json, of which one is a model");
  return names_beside(symbols[0], names);
}

FileNames file_names_at(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path folder = is_folder ? fs::path(path) : fs::absolute(path).parent_path();
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_regular_file(ignored)) names.push_back(entry.path().filename().string());
  return is_folder ? file_names(names) : names_beside(fs::path(path).filename().string(), names);
}

Model read_model(const FileNames& names, const ModelFiles& files) {
  const std::optional<std::string_view> symbol = files(names.symbol), parameters = files(names.parameters);
  if (!symbol || !parameters)
    throw Error(ErrorCode::kInvalidModel,
                "there is no file \"" + (symbol ? names.parameters : names.symbol).substr(0, 200) + "\"");
  return {read_symbol(*symbol), read_parameters(*parameters)};
}

}  // namespace tensormill::frontend::mxnet
