/// Which files a child can name: Landlock, by the newest version of its interface that kernel and program
/// know. Thread-safety: restrict_path_names binds the calling thread and those that it makes later.
#pragma once

namespace tensormill::jobs {

/// The version of the kernel's interface; 0: it has none.
int landlock_version();
/// No path name leads to a file any more, no socket to an address, no signal to a process outside; with
/// `in_folder` the files of the current folder can be made, read and written. Returns the version that holds,
/// 0 when the kernel has none or refuses. no_new_privs must be set.
int restrict_path_names(bool in_folder);

}  // namespace tensormill::jobs
