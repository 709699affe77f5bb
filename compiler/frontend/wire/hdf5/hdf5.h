/// HDF5 files in memory, through libhdf5: groups, datasets and text attributes, as far as Keras writes them.
/// The library is made for files of friends: broken ones may end the process, so that strangers' are opened
/// in a confined child only. What could reach outside of the file is refused: links that are not hard,
/// external and virtual storage, filters other than deflate, shuffle and Fletcher's checksum, and plugins.
/// Thread-safety: one file at a time in a process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tensormill::frontend::wire {

/// Maps libhdf5 where it is installed, so that a process which then gives up opening files can still read
/// HDF5; the first file says what is missing.
void map_hdf5_library();

struct Hdf5Limits {
  uint64_t objects = 200'000;                     ///< groups and datasets that are looked at
  uint64_t read_bytes = uint64_t{16} << 30;       ///< of datasets that are no views, in all
  uint64_t attribute_bytes = uint64_t{64} << 20;  ///< of one attribute
};

struct Hdf5Dataset {
  DType dtype = DType::kFloat32;
  Shape shape;
  /// Row-major, little endian: a view of the file where it lies there so, else of `copy`.
  std::string_view data;
  std::shared_ptr<const std::string> copy;
};

class Hdf5File {
public:
  /// Borrows the bytes. Throws Error(kInvalidModel) for what libhdf5 does not open.
  explicit Hdf5File(std::string_view bytes, const Hdf5Limits& limits = {});
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  /// Paths are "a/b"; "" is the root. Each throws Error(kInvalidModel) naming the object.
  bool has(const std::string& path);
  bool is_group(const std::string& path);
  /// Names in a group, in the order of their bytes.
  std::vector<std::string> members(const std::string& path);
  Hdf5Dataset dataset(const std::string& path);
  /// Nothing where the object has no such attribute.
  std::optional<std::string> text(const std::string& path, const std::string& attribute);
  std::optional<std::vector<std::string>> texts(const std::string& path, const std::string& attribute);

private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensormill::frontend::wire
