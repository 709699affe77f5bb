/// How fast one thread reads memory: what a product of one row, which uses each weight once, is read against.
/// Thread-safety: an object belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>

namespace tensormill::bench {

/// Reads a buffer again and again, so from the level of the hierarchy in which it stays: as one stream and as
/// four side by side, with vectors of 512 bits where the CPU has them.
class ReadProbe {
public:
  /// `bytes` is rounded up to whole KiB.
  explicit ReadProbe(size_t bytes);
  /// GB/s of the better of the two, each measured for about half of `seconds`.
  double gbs(double seconds) const;

private:
  size_t floats_;
  std::shared_ptr<void> memory_;
};

}  // namespace tensormill::bench
