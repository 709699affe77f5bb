#include "server/services/deployments/free_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tensormill::server {
namespace {

constexpr size_t kMiB = 1024 * 1024;

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoll(line.substr(6));
  }
  return -1;
}

std::unique_ptr<char[]> written(size_t bytes) {
  std::unique_ptr<char[]> memory(new char[bytes]);
  std::memset(memory.get(), 1, bytes);
  return memory;
}

/// Written blocks of 100 KiB of this thread's arena.
std::vector<std::unique_ptr<char[]>> blocks(size_t count) {
  std::vector<std::unique_ptr<char[]>> made;
  for (size_t i = 0; i < count; ++i) made.push_back(written(kMiB / 10));
  return made;
}

TEST(FreeMemory, TheEndsOfAllArenasGoBack) {
  limit_arenas();
  // Once a block of this size was freed, arenas keep twice as much.
  written(4 * kMiB).reset();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] { blocks(40); });
  }
  for (std::thread& thread : threads) thread.join();
  const std::unique_ptr<char[]> kept = written(kMiB);
  give_back_free_memory();
  const int64_t least = resident_kib();
  ASSERT_GT(least, 0);
  std::thread user([] { blocks(40); });
  user.join();
  EXPECT_GT(resident_kib(), least + 2048) << "nothing is kept, so nothing is tested";
  give_back_free_memory();
  EXPECT_LT(resident_kib(), least + 512);
  for (size_t i = 0; i < kMiB; ++i) ASSERT_EQ(kept[i], 1);
}

TEST(FreeMemory, AnEndGoesBackThoughMuchIsFreeBeforeIt) {
  limit_arenas();
  written(4 * kMiB).reset();
  give_back_free_memory();
  const int64_t least = resident_kib();
  ASSERT_GT(least, 0);
  std::vector<std::unique_ptr<char[]>> kept;
  std::thread user([&kept] {
    const auto before = blocks(150);
    kept = blocks(1);
    blocks(40);
  });
  user.join();
  EXPECT_GT(resident_kib(), least + 2048) << "nothing is kept, so nothing is tested";
  give_back_free_memory();
  EXPECT_LT(resident_kib(), least + 1024);
  for (size_t i = 0; i < kMiB / 10; ++i) ASSERT_EQ(kept.front()[i], 1);
}

TEST(FreeMemory, GoesBackOnceASecondAtMost) {
  using std::chrono::milliseconds;
  SeldomGiveBack::Clock::time_point now{};
  int times = 0;
  SeldomGiveBack seldom([&now] { return now; },
                        [&now, &times] {
                          now += milliseconds(5);
                          ++times;
                        });
  const auto begin = now;
  for (; now < begin + std::chrono::seconds(10); now += milliseconds(3)) seldom.give_back();
  EXPECT_EQ(times, 10);  // of 5 ms each: the tenth begins within 9 × 1.008 s
  now += std::chrono::seconds(1);
  EXPECT_TRUE(seldom.give_back());
  EXPECT_FALSE(seldom.give_back());
}

}  // namespace
}  // namespace tensormill::server
