#include "server/services/free_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace tensormill::server {

namespace {

constexpr size_t kPage = 4096;
/// Below glibc's least threshold for memory of its own mapping (128 KiB), so that pieces are an arena's.
constexpr size_t kPiece = 100 * 1024;
/// Together more than an arena keeps free at its end, which is twice the size of a request's tensor.
constexpr size_t kPieces = 64;

int arenas() { return std::max(static_cast<int>(std::thread::hardware_concurrency()), 2); }

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Piece = std::unique_ptr<void, Free>;

/// Free memory of this thread's arena in pieces whose pages hold nothing.
std::vector<Piece> empty_pieces() {
  std::vector<Piece> pieces;
  pieces.reserve(kPieces);
  for (size_t i = 0; i < kPieces; ++i) {
    Piece piece(std::malloc(kPiece));
    if (!piece) break;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(piece.get()),
                    first = (begin + kPage - 1) / kPage * kPage, last = (begin + kPiece) / kPage * kPage;
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

void limit_arenas() { ::mallopt(M_ARENA_MAX, arenas()); }

void give_back_free_memory() {
  ::malloc_trim(0);
  // It leaves the free end of all arenas but the main one. Threads that start get the arenas in turn, as long
  // as those before them live.
  std::promise<void> all_started;
  const std::shared_future<void> end = all_started.get_future().share();
  std::vector<std::thread> threads;
  try {
    for (int i = 0; i < arenas(); ++i) {
      threads.emplace_back([end] {
        const std::vector<Piece> pieces = empty_pieces();
        end.wait();
      });
    }
  } catch (const std::system_error&) {
    // No thread is left: what is free in the arenas of the others stays.
  }
  all_started.set_value();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tensormill::server
