/// What malloc keeps of the memory that was freed. glibc's allocator has arenas, heaps that threads share.
/// Thread-safety: limit_arenas before any thread starts; give_back_free_memory is free to call.
#pragma once

namespace tensormill::server {

/// Each thread would have an arena of its own, and keep some MiB there of what it has freed: as many arenas
/// as threads can run at once are enough. Only a hint.
void limit_arenas();

/// Gives free pages of all arenas back to the system; what is allocated stays as it is. For a moment it runs
/// as many threads as there are arenas; where the system has none left, some free memory stays.
void give_back_free_memory();

}  // namespace tensormill::server
