/// The core whose caches hold what a thread works on again and again. Linux.
/// Thread-safety: of one thread.
#pragma once

namespace tensormill::batching {

class HomeCore {
public:
  /// The core that the calling thread is on.
  void remember() noexcept;
  void forget() noexcept { core_ = -1; }
  /// Moves the calling thread to the remembered core. A hint: the scheduler may move it on at once, as where
  /// that core is busy and another one is not. Does nothing where the thread may not run there.
  void go() const noexcept;

private:
  int core_ = -1;  ///< none yet
};

}  // namespace tensormill::batching
