/// libhdf5, loaded when it is first needed: a process that reads no HDF5 file neither maps it nor what it
/// brings along. Thread-safety: pure functions; the library is used by one thread at a time.
#pragma once

#include <hdf5.h>

namespace tensormill::frontend::wire {

/// The functions of libhdf5.def, by their own names.
struct LibHdf5 {
#define TM_HDF5(name) decltype(&::name) name = nullptr;
#include "compiler/frontend/wire/hdf5/libhdf5.def"
#undef TM_HDF5
  hid_t file_access = -1;  ///< H5P_FILE_ACCESS
};

/// Loads the library at the first call, and tells it to print no errors and to load no plugins. Throws
/// Error(kNotSupported) naming the package where it is not installed or lacks a function.
const LibHdf5& h5();

}  // namespace tensormill::frontend::wire
