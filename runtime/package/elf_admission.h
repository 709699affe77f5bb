/// What machine code must look like before it is loaded: an ELF64 shared object that needs nothing, runs
/// nothing when it is loaded, and has no page that is both writable and executable.
/// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace tensormill::package {

struct AdmittedElf {
  std::string machine;                      ///< "x86_64" or "aarch64"
  std::map<std::string, uint64_t> symbols;  ///< defined functions and their virtual addresses
};

/// Throws Error(kInvalidPackage) saying what is not admitted: needed libraries, constructors, destructors,
/// IFUNCs, text relocations, undefined symbols, thread-local storage, writable and executable or executable
/// stack segments, relocations other than relative ones, anything outside the file.
AdmittedElf admit_elf(std::span<const std::byte> file);

/// The machine that this program runs on, in the same words.
std::string host_machine();

}  // namespace tensormill::package
