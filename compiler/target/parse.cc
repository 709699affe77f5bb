#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "compiler/target/features.h"
#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::target {
namespace {

/// Options as written, before they are checked; "-mattr" of both forms is one list.
struct RawTarget {
  std::string kind;
  std::map<std::string, std::string> options;
};

constexpr std::array kOptions = {"mcpu",     "mattr", "mtriple", "num-cores", "l1d-bytes", "vector-width",
                                 "l2-bytes", "keys",  "device",  "model",     "libs"};
/// Accepted for the sake of tvmc's target strings; they decide nothing here.
constexpr std::array kIgnored = {"keys", "device", "model", "libs"};
/// Kinds of the field that have no code generator here.
constexpr std::array kForeignKinds = {"c",      "cuda",    "nvptx",  "opencl",    "vulkan",  "metal",  "rocm",
                                      "webgpu", "hexagon", "hybrid", "composite", "ext_dev", "stackvm"};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kInvalidTarget, message); }

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

template <typename Names>
std::string join(const Names& names, std::string_view prefix = "") {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + std::string(prefix) + std::string(name);
  return text;
}

void add_option(RawTarget& raw, const std::string& name, std::string value) {
  if (std::find(kOptions.begin(), kOptions.end(), name) == kOptions.end()) {
    refuse("target: unknown option " + in_quotes("-" + name) + ", accepted are " + join(kOptions, "-"));
  }
  if (value.empty()) refuse("target option -" + name + ": the value is empty");
  if (!raw.options.emplace(name, std::move(value)).second) refuse("target option -" + name + ": given twice");
}

RawTarget split_text(std::string_view text) {
  RawTarget raw;
  const std::vector<std::string_view> parts = words(text);
  if (parts.empty()) refuse("target: the text is empty, expected \"llvm -mcpu=...\" or \"native\"");
  raw.kind = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    if (part[0] != '-') refuse("target: expected an option that begins with -, got " + in_quotes(part));
    part.remove_prefix(part.substr(0, 2) == "--" ? 2 : 1);
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      add_option(raw, std::string(part.substr(0, equals)), std::string(part.substr(equals + 1)));
    } else if (i + 1 < parts.size() && parts[i + 1][0] != '-') {
      add_option(raw, std::string(part), std::string(parts[++i]));
    } else {
      refuse("target option -" + std::string(part) + ": needs a value");
    }
  }
  return raw;
}

RawTarget split_json(std::string_view text) {
  Json json;
  try {
    json = parse_json(text, 8);
  } catch (Error& error) {
    refuse("target: " + error.message());
  }
  if (!json.is_object()) refuse("target: expected a JSON object");
  RawTarget raw;
  for (const auto& [name, value] : json.items()) {
    if (name == "kind" || name == "tag") {
      if (!value.is_string()) refuse("target member " + in_quotes(name) + ": expected a string");
      if (name == "kind") raw.kind = value.get<std::string>();
    } else if (value.is_array()) {
      std::vector<std::string> items;
      for (const Json& item : value) {
        if (!item.is_string()) refuse("target member " + in_quotes(name) + ": expected strings");
        items.push_back(item.get<std::string>());
      }
      std::string list;
      for (const std::string& item : items) list += (list.empty() ? "" : ",") + item;
      if (!list.empty()) add_option(raw, name, list);
    } else if (value.is_string()) {
      add_option(raw, name, value.get<std::string>());
    } else if (value.is_number_integer()) {
      add_option(raw, name, value.dump());
    } else {
      refuse("target member " + in_quotes(name) + ": expected a string, an integer or a list of strings");
    }
  }
  if (raw.kind.empty()) refuse("target: the member \"kind\" is missing");
  return raw;
}

const std::string* find(const RawTarget& raw, const std::string& name) {
  const auto it = raw.options.find(name);
  return it == raw.options.end() ? nullptr : &it->second;
}

/// The integer value of an option in [low, high], or nothing when the option is absent.
std::optional<int64_t> integer_option(const RawTarget& raw, const std::string& name, int64_t low,
                                      int64_t high) {
  const std::string* text = find(raw, name);
  if (text == nullptr) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high) {
    refuse("target option -" + name + ": expected an integer from " + std::to_string(low) + " to " +
           std::to_string(high) + ", got " + in_quotes(*text));
  }
  return value;
}

/// "x86_64-pc-linux-gnu" and its like: the vendor decides nothing, so it is dropped.
std::string parse_triple(const std::string& text) {
  for (const char* arch : {"x86_64", "aarch64"}) {
    const std::string name = arch;
    for (const char* vendor : {"-", "-pc-", "-unknown-", "-none-"}) {
      if (text == name + vendor + "linux-gnu") return name + "-linux-gnu";
    }
  }
  refuse("target option -mtriple: " + in_quotes(text) +
         " is not supported, accepted are x86_64-linux-gnu and aarch64-linux-gnu");
}

void apply_attributes(const std::string& list, const std::string& arch, FeatureSet& set) {
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    const std::string name = item.empty() ? "" : item.substr(1);
    if (name.empty() || (item[0] != '+' && item[0] != '-')) {
      refuse("target option -mattr: expected +feature or -feature, got " + in_quotes(item));
    }
    if (arch == "aarch64" && name == "neon") {
      if (item[0] == '-') refuse("target option -mattr: neon cannot be switched off on aarch64");
      continue;
    }
    if (find_cpu_feature(arch, name) == nullptr) {
      std::vector<std::string_view> names;
      for (const CpuFeature& row : cpu_features()) {
        if (row.arch == arch) names.push_back(row.name);
      }
      refuse("target option -mattr: unknown feature " + in_quotes(name) + " of " + arch + ", accepted are " +
             join(names));
    }
    if (item[0] == '+') {
      enable(set, arch, name);
    } else {
      disable(set, arch, name);
    }
  }
}

/// The row that -mcpu and -mtriple name together; `arch` is empty when there is no -mtriple.
const CpuRow& find_named_cpu(const std::string& name, const std::string& arch) {
  for (const char* candidate : {"x86_64", "aarch64"}) {
    if (!arch.empty() && arch != candidate) continue;
    if (const CpuRow* row = find_cpu(candidate, name)) return *row;
  }
  std::vector<std::string_view> names;
  for (const CpuRow& row : all_cpus()) {
    if (arch.empty() || row.arch == arch) names.push_back(row.name);
  }
  refuse("target option -mcpu: unknown cpu " + in_quotes(name) + (arch.empty() ? "" : " of " + arch) +
         ", accepted are native, " + join(names));
}

void check_kind(const std::string& kind) {
  if (kind == "llvm") return;
  if (std::find(kForeignKinds.begin(), kForeignKinds.end(), kind) != kForeignKinds.end()) {
    throw Error(ErrorCode::kNotSupported,
                "target kind " + in_quotes(kind) + " is not supported, accepted is llvm");
  }
  refuse("target: unknown kind " + in_quotes(kind) + ", accepted are llvm and native");
}

/// Sets target.features to the difference between `set` and what the CPU's row has.
void set_features(Target& target, const CpuRow& cpu, const FeatureSet& set) {
  const FeatureSet own = features_of(cpu);
  target.features.clear();
  for (const std::string& name : set) {
    if (own.find(name) == own.end()) target.features.push_back("+" + name);
  }
  for (const std::string& name : own) {
    if (set.find(name) == set.end()) target.features.push_back("-" + name);
  }
  std::sort(target.features.begin(), target.features.end());
}

/// A target's kind and options, of JSON where the text is an object.
RawTarget read_options(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  const bool json = start != std::string_view::npos && text[start] == '{';
  RawTarget raw = json ? split_json(text) : split_text(text);
  if (raw.kind == "native") {
    raw.kind = "llvm";
    add_option(raw, "mcpu", "native");
  }
  return raw;
}

/// The CPU that -mcpu and -mtriple name, with its own features.
struct NamedCpu {
  Target target;
  const CpuRow* row = nullptr;
  FeatureSet features;
};

NamedCpu host_cpu(const Target& host) {
  const CpuRow* row = find_cpu(arch_of(host.triple), host.cpu);
  TM_CHECK(row != nullptr, "host cpu " + host.cpu);
  return {host, row, enabled_features(host)};
}

NamedCpu listed_cpu(const std::string* name, const std::string& arch) {
  const std::string fallback = arch == "aarch64" ? "generic" : "x86-64";
  const CpuRow& row = find_named_cpu(name == nullptr ? fallback : *name, arch);
  Target target;
  target.triple = std::string(row.arch) + "-linux-gnu";
  target.cpu = row.name;
  target.facts.l1d_bytes = int64_t{row.l1d_kib} * 1024;
  target.facts.l2_bytes = int64_t{row.l2_kib} * 1024;
  return {target, &row, features_of(row)};
}

NamedCpu named_cpu(const RawTarget& raw, const Target& host) {
  const std::string* mtriple = find(raw, "mtriple");
  const std::string triple = mtriple == nullptr ? "" : parse_triple(*mtriple);
  const std::string* mcpu = find(raw, "mcpu");
  if (mcpu == nullptr || *mcpu != "native") return listed_cpu(mcpu, triple.empty() ? "" : arch_of(triple));
  if (mtriple != nullptr && triple != host.triple)
    refuse("target option -mcpu: native is " + host.triple + ", which is not -mtriple=" + triple);
  return host_cpu(host);
}

/// Options that give numbers in place of the CPU's own.
void set_facts(const RawTarget& raw, CpuFacts& facts) {
  facts.num_cores = static_cast<int>(integer_option(raw, "num-cores", 1, 1024).value_or(facts.num_cores));
  facts.l1d_bytes = integer_option(raw, "l1d-bytes", 1024, int64_t{1} << 30).value_or(facts.l1d_bytes);
  facts.l2_bytes = integer_option(raw, "l2-bytes", 1024, int64_t{1} << 32).value_or(facts.l2_bytes);
  const auto width = integer_option(raw, "vector-width", 128, 512);
  if (!width) return;
  if (*width != 128 && *width != 256 && *width != 512)
    refuse("target option -vector-width: accepted are 128, 256 and 512, got " + std::to_string(*width));
  if (*width > facts.vector_bits)
    refuse("target option -vector-width: " + std::to_string(*width) + " is more than the cpu's " +
           std::to_string(facts.vector_bits));
  facts.vector_bits = static_cast<int>(*width);
}

}  // namespace

Target parse_target(std::string_view text, const Target& host) {
  const RawTarget raw = read_options(text);
  check_kind(raw.kind);
  auto [target, cpu, features] = named_cpu(raw, host);
  const std::string arch = arch_of(target.triple);
  if (const std::string* list = find(raw, "mattr")) apply_attributes(*list, arch, features);
  set_features(target, *cpu, features);
  derive_vector_facts(arch, features, target.facts);
  set_facts(raw, target.facts);
  derive_rates(*cpu, target.facts);
  for (const char* name : kIgnored) {
    if (find(raw, name) != nullptr)
      target.warnings.push_back(std::string("target option -") + name + " is ignored");
  }
  return target;
}

}  // namespace tensormill::target
