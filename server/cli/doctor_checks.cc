#include "server/cli/doctor_checks.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "compiler/codegen/backend.h"
#include "compiler/codegen/version.h"
#include "compiler/target/target.h"
#include "runtime/base/cpu_count.h"
#include "runtime/base/cpu_features.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/module.h"
#include "runtime/memory/arena.h"
#include "server/cli/terminal.h"
#include "server/jobs/confine.h"
#include "server/transport/transport.h"

namespace tensormill::cli {

namespace {

namespace fs = std::filesystem;

/// The first line of a file of the kernel's; "" where it cannot be read.
std::string kernel_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The value of `key` in a file of lines "key : value" or "key: value unit".
std::string value_in(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key)
      continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

/// Bytes of a row of /proc/meminfo, which counts in units of 1024; -1 where there is none.
double meminfo_bytes(const std::string& key) {
  const std::string text = value_in("/proc/meminfo", key);
  return text.empty() ? -1 : std::strtod(text.c_str(), nullptr) * 1024;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// The folder, or the nearest one above it that is there.
fs::path nearest_folder(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

Finding check_disk(const std::string& folder) {
  constexpr double kLittle = 2.0 * 1024 * 1024 * 1024;
  const fs::path place = nearest_folder(folder);
  struct statvfs room = {};
  if (::access(place.c_str(), W_OK | X_OK) != 0) {
    return {"room", "store", Verdict::kBad, folder + " cannot be written: " + std::strerror(errno),
            "name another folder with --data, or make it this user's"};
  }
  if (!fs::is_directory(place) || ::statvfs(place.c_str(), &room) != 0 || room.f_blocks == 0) {
    return {"room", "store", Verdict::kBad, folder + " is in no folder of a disk: " + place.string(),
            "name another folder with --data"};
  }
  const double free = static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize);
  const std::string says = folder + " can be written, " + bytes_text(free) + " free";
  if (free < kLittle)
    return {"room", "store", Verdict::kMissing, says, "large models and their packages take several GiB"};
  return {"room", "store", Verdict::kGood, says, ""};
}

Finding check_memory() {
  constexpr double kLittle = 1.5 * 1024 * 1024 * 1024;
  const double free = meminfo_bytes("MemAvailable");
  const auto all = static_cast<double>(memory::machine_memory());
  const std::string says = bytes_text(all) + (free < 0 ? "" : ", " + bytes_text(free) + " free");
  if (free >= 0 && free < kLittle)
    return {"room", "memory", Verdict::kMissing, says, "a compile of a large network takes up to 1.5 GiB"};
  return {"room", "memory", Verdict::kGood, says, ""};
}

Finding check_cgroup() {
  const std::string membership = kernel_line("/proc/self/cgroup");
  const bool is_v2 = membership.starts_with("0::");
  const std::string group = is_v2 ? "/sys/fs/cgroup" + membership.substr(3) : "";
  const std::string controllers = group.empty() ? "" : kernel_line(group + "/cgroup.controllers");
  const std::string advice =
      "optional: give the service systemd's Delegate=yes, or the container "
      "with "
      "a writable hierarchy";
  if (controllers.find("memory") == std::string::npos) {
    return {"walls", "control groups", Verdict::kMissing,
            "no group of version 2 with a bound of memory; children are bounded by limits and by watching",
            advice};
  }
  if (::access((group + "/cgroup.subtree_control").c_str(), W_OK) != 0) {
    return {"walls", "control groups", Verdict::kMissing,
            "version 2 (" + controllers + "), not this process' own to divide", advice};
  }
  return {"walls", "control groups", Verdict::kGood, "version 2, " + controllers, ""};
}

Finding check_listen(const std::string& name, const std::string& address) {
  transport::TransportOptions options;
  transport::parse_listen_address(address, options);
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code =
      ::getaddrinfo(options.address.c_str(), std::to_string(options.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  if (code != 0 || found == nullptr)
    return {"network", name, Verdict::kBad, address + ": " + ::gai_strerror(code), "name another address"};
  const FileDescriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (socket.valid()) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!socket.valid() || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket.get(), 1) != 0) {
    const bool is_used = errno == EADDRINUSE;
    return {"network", name, Verdict::kBad, address + ": " + std::strerror(errno),
            is_used
                ? "`tensormill health` says whether it is a server of this program; else take another port "
                  "with --listen"
                : "take another address or a port above 1023"};
  }
  return {"network", name, Verdict::kGood, address + " is free", ""};
}

struct Tool {
  const char* name;
  std::vector<const char*> programs;  ///< any of them will do
  const char* use;
  const char* package;  ///< of Debian
};

Finding check_tool(const Tool& tool) {
  for (const char* program : tool.programs) {
    if (const std::string path = find_program(program); !path.empty())
      return {"programs", tool.name, Verdict::kGood, path + ": " + tool.use, ""};
  }
  return {"programs", tool.name, Verdict::kMissing, std::string("not found; for ") + tool.use,
          std::string("apt-get install ") + tool.package};
}

constexpr const char* kInstallWhole = "install the whole package: the module lies beside the program";

Finding check_compiler() {
  try {
    codegen::make_llvm_backend();
    return {"programs", "compiler", Verdict::kGood, codegen::llvm_version(), ""};
  } catch (const Error& error) {
    return {"programs", "compiler", Verdict::kBad, error.message(), kInstallWhole};
  }
}

/// Libraries that are loaded when a store needs them.
std::vector<Finding> check_libraries() {
  std::vector<Finding> found;
  void* postgresql = ::dlopen("libpq.so.5", RTLD_LAZY | RTLD_LOCAL);
  const bool has_postgresql = postgresql != nullptr;
  if (has_postgresql) ::dlclose(postgresql);
  found.push_back({"programs", "libpq", has_postgresql ? Verdict::kGood : Verdict::kMissing,
                   std::string(has_postgresql ? "found" : "not found") + "; for catalogs in PostgreSQL",
                   has_postgresql ? "" : "apt-get install libpq5"});
  try {
    load_module("tensormill-s3", "tensormill_make_http_transport");
    found.push_back({"programs", "module for S3", Verdict::kGood, "found; for blobs in S3", ""});
  } catch (const Error& error) {
    found.push_back({"programs", "module for S3", Verdict::kMissing, error.message(), kInstallWhole});
  }
  return found;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "good";
    case Verdict::kMissing:
      return "missing";
    case Verdict::kBad:
      return "bad";
  }
  return "";
}

std::vector<Finding> check_processor() {
  const target::Target host = target::host_target();
  std::vector<std::string> features;
  for (const CpuFeature& row : cpu_features()) {
    if (row.arch == host_cpu_arch() && host_has_cpu_feature(row.name)) features.emplace_back(row.name);
  }
  const std::string model = value_in("/proc/cpuinfo", "model name");
  std::vector<Finding> found;
  found.push_back({"processor", "model", host_cpu_arch().empty() ? Verdict::kBad : Verdict::kGood,
                   (model.empty() ? "unnamed" : model) + ", " + std::string(host_cpu_arch()),
                   host_cpu_arch().empty() ? "code is made for x86_64 and aarch64" : ""});
  found.push_back({"processor", "cores", Verdict::kGood,
                   std::to_string(usable_cores()) + " for this process; " +
                       bytes_text(static_cast<double>(host.facts.l1d_bytes)) + " L1 and " +
                       bytes_text(static_cast<double>(host.facts.l2_bytes)) + " L2 each",
                   ""});
  if (host.is_x86()) {
    const int level = x86_level([](const char* name) { return host_has_cpu_feature(name); });
    found.push_back({"processor", "level", level >= 3 ? Verdict::kGood : Verdict::kMissing,
                     "x86-64-v" + std::to_string(level),
                     level >= 3 ? "" : "models run, several times as slow as on a CPU with AVX2"});
  }
  found.push_back({"processor", "features", Verdict::kGood, joined(features), ""});
  found.push_back({"processor", "target", Verdict::kGood, host.canonical(), ""});
  for (const std::string& warning : host.warnings)
    found.push_back({"processor", "warning", Verdict::kMissing, warning, ""});
  return found;
}

std::vector<Finding> check_room(const config::Settings& settings) {
  return {check_memory(), check_disk(settings.data)};
}

std::vector<Finding> check_walls() {
  const jobs::Confinement expected = jobs::expected_confinement({});
  std::vector<Finding> found;
  found.push_back({"walls", "seccomp", expected.seccomp ? Verdict::kGood : Verdict::kMissing,
                   expected.seccomp ? "children have a filter of system calls" : "the kernel has no filters",
                   expected.seccomp ? "" : "a kernel with CONFIG_SECCOMP_FILTER"});
  const bool has_landlock = expected.landlock > 0;
  found.push_back(
      {"walls", "Landlock", has_landlock ? Verdict::kGood : Verdict::kMissing,
       has_landlock ? "version " + std::to_string(expected.landlock) + ": children open no files"
                    : "the kernel has none: children could open files",
       has_landlock ? "" : "Linux 5.13 or newer, with landlock among the lsm= of its command line"});
  const uint32_t user = jobs::usable_child_user(65534);
  found.push_back({"walls", "user", Verdict::kGood,
                   user != 0 ? "children become user " + std::to_string(user)
                             : "children stay user " + std::to_string(::getuid()),
                   ""});
  found.push_back(check_cgroup());
  return found;
}

std::vector<Finding> check_ports(const config::Settings& settings) {
  std::vector<Finding> found = {check_listen("listen", settings.listen)};
  if (!settings.ops_listen.empty()) found.push_back(check_listen("ops_listen", settings.ops_listen));
  return found;
}

std::vector<Finding> check_tools() {
  std::vector<Finding> found;
  found.push_back(check_compiler());
  for (const Tool& tool : std::vector<Tool>{
           {"emulator of 64-bit ARM",
            {"qemu-aarch64", "qemu-aarch64-static"},
            "trying packages for 64-bit ARM on this machine",
            "qemu-user"},
           {"C++ compiler", {"c++", "g++", "clang++"}, "programs that embed the runtime", "g++"},
           {"C compiler", {"cc", "gcc", "clang"}, "programs that embed the runtime", "gcc"},
           {"pkg-config", {"pkg-config", "pkgconf"}, "programs that embed the runtime", "pkg-config"},
           {"Python", {"python3"}, "the Python package", "python3 python3-venv"},
           {"curl", {"curl"}, "the commands in the documents", "curl"}}) {
    found.push_back(check_tool(tool));
  }
  for (Finding& finding : check_libraries()) found.push_back(std::move(finding));
  constexpr const char* kEnergy = "/sys/class/powercap/intel-rapl:0/energy_uj";
  const bool reads_energy = ::access(kEnergy, R_OK) == 0;
  found.push_back({"programs", "energy counter", reads_energy ? Verdict::kGood : Verdict::kMissing,
                   reads_energy ? std::string(kEnergy) : "not readable; for the energy of a run in reports",
                   reads_energy ? "" : "root, or a machine that shows its RAPL counters"});
  return found;
}

}  // namespace tensormill::cli
