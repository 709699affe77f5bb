/// A file system in memory whose syncs a test stands in.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "storage/env/memory_env.h"

namespace tensormill::storage {

/// Memory that calls the test while a file is synced.
class SlowEnv final : public MemoryEnv {
public:
  std::unique_ptr<EnvFile> open(const std::string& path, OpenMode mode) override {
    return std::make_unique<File>(*this, MemoryEnv::open(path, mode));
  }
  std::function<void()> on_sync;

private:
  class File final : public EnvFile {
  public:
    File(SlowEnv& env, std::unique_ptr<EnvFile> inner) : env_(env), inner_(std::move(inner)) {}
    size_t read(uint64_t offset, std::span<std::byte> target) override {
      return inner_->read(offset, target);
    }
    void write(uint64_t offset, std::string_view bytes) override { inner_->write(offset, bytes); }
    void truncate(uint64_t size) override { inner_->truncate(size); }
    void sync() override {
      if (env_.on_sync) env_.on_sync();
      inner_->sync();
    }
    uint64_t size() override { return inner_->size(); }

  private:
    SlowEnv& env_;
    std::unique_ptr<EnvFile> inner_;
  };
};

}  // namespace tensormill::storage
