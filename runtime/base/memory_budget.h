/// A bound on bytes that many users share, and what each of them has of it. Thread-safety: a budget may be
/// used by many threads; a share belongs to one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace tensormill {

class MemoryBudget {
public:
  /// `name` is what errors call it: the setting. `bytes` 0: no bound; what is taken is added up all the same.
  MemoryBudget(std::string name, uint64_t bytes) : name_(std::move(name)), bytes_(bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  const std::string& name() const { return name_; }
  uint64_t bytes() const { return bytes_; }
  /// Taken now.
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  /// How often something did not fit.
  uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }

private:
  friend class MemoryShare;
  const std::string name_;
  const uint64_t bytes_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> refusals_{0};
};

/// What one user has of a budget. All of it goes back at the end.
class MemoryShare {
public:
  explicit MemoryShare(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}
  ~MemoryShare() { give(taken_); }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

  /// Before the memory is allocated. Throws Error(kUnavailable) when `more` bytes do not fit beside what
  /// others have now, Error(kTooLarge) when they would not fit if this share were the only one.
  void take(uint64_t more);
  /// As take(), and takes nothing: for what is announced and comes piece by piece.
  void check(uint64_t more);
  /// Memory that is there already and cannot be refused: it counts against those who come later.
  void add(uint64_t more);
  void give(uint64_t less);
  uint64_t taken() const { return taken_; }

private:
  [[noreturn]] void refuse(uint64_t more, uint64_t used);

  const std::shared_ptr<MemoryBudget> budget_;
  uint64_t taken_ = 0;
};

/// Takes bytes for a time, such as those of a picture between its decoding and its tensor. `share` may be
/// null: then nothing is taken. Throws as MemoryShare::take.
class MemoryLoan {
public:
  MemoryLoan(MemoryShare* share, uint64_t bytes) : share_(share), bytes_(bytes) {
    if (share_ != nullptr) share_->take(bytes_);
  }
  ~MemoryLoan() {
    if (share_ != nullptr) share_->give(bytes_);
  }
  MemoryLoan(const MemoryLoan&) = delete;
  MemoryLoan& operator=(const MemoryLoan&) = delete;

private:
  MemoryShare* const share_;
  const uint64_t bytes_;
};

/// The memory that this process may use: the machine's, or less where a control group bounds it.
uint64_t memory_of_this_machine();

}  // namespace tensormill
