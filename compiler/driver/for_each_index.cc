#include "compiler/driver/for_each_index.h"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace tensormill::driver {

void for_each_index(size_t count, int threads, const std::function<void(size_t index)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::exception_ptr> errors(count);
  const auto run = [&] {
    for (size_t index = next++; index < count && !failed; index = next++) {
      try {
        work(index);
      } catch (const std::exception&) {
        errors[index] = std::current_exception();
        failed = true;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(run);
    run();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace tensormill::driver
