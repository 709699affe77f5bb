/// How long the phases of a compilation take. Thread-safety: belongs to one thread.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compile.h"

namespace tensormill::driver {

/// Adds its phase at the end of its life.
class PhaseTimer {
public:
  PhaseTimer(std::vector<PhaseTime>& times, std::string phase)
      : times_(times), phase_(std::move(phase)), start_(std::chrono::steady_clock::now()) {}
  ~PhaseTimer() {
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start_;
    times_.push_back({phase_, elapsed.count()});
  }

private:
  std::vector<PhaseTime>& times_;
  std::string phase_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tensormill::driver
