// stream PACKAGE FRAMES: a stream of frames on two threads, each with an executor of its own; both share the
// weights.
//
// A frame is drawn where the executor reads it, and its result written where the program wants it: no copy is
// made. A runtime of one thread has none beside its caller's: here the threads are the program's own.
#include <tensormill.hpp>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace {

/// A camera's picture: a bar that moves.
void draw(tensormill::Buffer<float>& frame, int number) {
  for (std::size_t i = 0; i < frame.size(); ++i)
    frame[i] = (static_cast<int>(i) + number) % 28 < 4 ? 1.0f : 0.0f;
}

struct Result {
  int frame = -1;
  std::size_t best = 0;
};

void serve(const tensormill::Package& package, std::atomic<int>& next, int frames,
           std::vector<Result>& results) {
  const tensormill::Runtime runtime(1);
  tensormill::Executor executor(runtime, package);
  tensormill::Shape shape = package.inputs()[0].shape;
  std::size_t size = 1;
  for (std::int64_t& extent : shape) {
    if (extent < 0) extent = 1;
    size *= static_cast<std::size_t>(extent);
  }
  tensormill::Buffer<float> frame(size);
  if (!executor.lend_input(0, frame.data(), shape)) throw std::runtime_error("the input is copied");
  for (int number = next++; number < frames; number = next++) {
    draw(frame, number);
    executor.run();
    const tensormill::View<const float> scores = executor.output<float>(0);
    std::size_t best = 0;
    for (std::size_t i = 1; i < scores.size(); ++i)
      if (scores[i] > scores[best]) best = i;
    results[static_cast<std::size_t>(number)] = {number, best};
  }
}

int stream(const char* path, int frames) {
  const tensormill::Package package(path);
  std::vector<Result> results(static_cast<std::size_t>(frames));
  std::atomic<int> next{0};
  std::vector<std::string> failures(2);
  std::vector<std::thread> threads;
  for (std::string& failure : failures) {
    threads.emplace_back([&package, &next, &results, &failure, frames] {
      try {
        serve(package, next, frames, results);
      } catch (const std::exception& error) {
        failure = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures)
    if (!failure.empty()) throw std::runtime_error(failure);
  for (const Result& result : results) std::cout << result.frame << " " << result.best << "\n";
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const int frames = count == 3 ? std::atoi(words[2]) : 0;
  if (frames < 1) {
    std::cerr << "usage: stream PACKAGE FRAMES\n";
    return 2;
  }
  try {
    return stream(words[1], frames);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 3;
  }
}
