#include "server/cli/children/child_commands.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "compiler/codegen/backend.h"
#include "compiler/frontend/wire/hdf5/hdf5.h"
#include "compiler/tune/booster.h"
#include "server/measure/measure_child.h"
#include "server/measure/tune_child.h"

namespace tensormill::cli {

namespace {

/// As many bytes of the file as there are from `offset` on, `most` at most.
std::string part_of_file(int file, off_t offset, size_t most) {
  std::string part(most, '\0');
  const ssize_t count = ::pread(file, part.data(), part.size(), offset);
  part.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return part;
}

/// HDF5 itself, or a zip whose list of members, which stands at its end, names such a file.
bool may_have_hdf5(int file) {
  constexpr std::string_view kHdf5Mark = "\x89HDF\r\n\x1a\n", kZipMark = "PK\x03\x04";
  constexpr off_t kListBytes = off_t{1} << 16;
  const std::string begin = part_of_file(file, 0, kHdf5Mark.size());
  if (begin == kHdf5Mark) return true;
  struct stat status {};
  if (!begin.starts_with(kZipMark) || ::fstat(file, &status) != 0) return false;
  const off_t from = std::max<off_t>(status.st_size - kListBytes, 0);
  return part_of_file(file, from, static_cast<size_t>(kListBytes)).find(".h5") != std::string::npos;
}

}  // namespace

void prepare_child(std::string_view command) {
  constexpr std::string_view kMakeCode[] = {"child-compile", "child-bundle", "child-measure", "child-tune"};
  if (std::find(std::begin(kMakeCode), std::end(kMakeCode), command) != std::end(kMakeCode))
    codegen::make_llvm_backend();
  if (command == "child-tune") tune::load_booster();
  if (command == "child-import" && may_have_hdf5(jobs::kFirstInheritedFd)) frontend::wire::map_hdf5_library();
}

jobs::ChildBody find_child(std::string_view command) {
  if (command == "child-import") return child_import;
  if (command == "child-compile") return child_compile;
  if (command == "child-run") return child_run;
  if (command == "child-evaluate") return child_evaluate;
  if (command == "child-reference") return child_reference;
  if (command == "child-bundle") return child_bundle;
  if (command == "child-execute") return child_execute;
  if (command == "child-measure") return measure::child_measure;
  if (command == "child-tune") return measure::child_tune;
  return nullptr;
}

}  // namespace tensormill::cli
