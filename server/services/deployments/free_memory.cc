#include "server/services/deployments/free_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/base/cpu_count.h"

namespace tensormill::server {

namespace {

/// Below glibc's least threshold for memory of its own mapping (128 KiB), so that pieces are an arena's.
constexpr size_t kPiece = 100 * 1024;
/// 100 MiB of an arena; more stays.
constexpr size_t kMaxPieces = 1024;
/// What all arenas have takes a while to add up.
constexpr size_t kPiecesALook = 8;

int arenas() { return std::max(usable_cores(), 2); }

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Piece = std::unique_ptr<void, Free>;

using Pieces = std::array<Piece, kMaxPieces>;

size_t arena_bytes() { return ::mallinfo2().arena; }

/// The free memory of this thread's arena in pieces whose pages hold nothing: what is free between allocated
/// blocks is taken first, the arena's end last, so pieces are taken until the arena has to grow for one.
/// Fewer when another arena grows meanwhile, or where there is no more memory.
Pieces empty_pieces(uintptr_t page) {
  Pieces pieces;
  const size_t before = arena_bytes();
  for (size_t i = 0; i < pieces.size() && (i % kPiecesALook != 0 || arena_bytes() <= before); ++i) {
    Piece& piece = pieces[i];
    piece.reset(std::malloc(kPiece));
    if (!piece) break;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(piece.get()),
                    first = (begin + page - 1) / page * page, last = (begin + kPiece) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }
  return pieces;
}

}  // namespace

void limit_arenas() { ::mallopt(M_ARENA_MAX, arenas()); }

void give_back_free_memory() {
  ::malloc_trim(0);
  // It leaves the free end of all arenas but the main one. Threads that start get the arenas in turn, as long
  // as those before them live.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::mutex one_at_a_time;
  std::vector<std::jthread> threads;
  // Its end, however this function is left, lets the threads end before they are waited for.
  std::promise<void> all_started;
  const std::shared_future<void> end = all_started.get_future().share();
  try {
    for (int i = 0; i < arenas(); ++i) {
      threads.emplace_back([end, page, &one_at_a_time] {
        Pieces pieces;
        {
          const std::lock_guard lock(one_at_a_time);
          pieces = empty_pieces(page);
        }
        end.wait();
      });
    }
  } catch (const std::system_error&) {
    // No thread is left: what is free in the arenas of the others stays.
  }
}

bool SeldomGiveBack::give_back() {
  const std::lock_guard lock(mutex_);
  if (now_() < next_) return false;
  give_back_();
  next_ = now_() + kBetween;
  return true;
}

}  // namespace tensormill::server
