#include "runtime/base/digest.h"

#if defined(TENSORMILL_OPENSSL)
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#endif

#include "runtime/base/error.h"
#include "runtime/base/hex.h"
#include "runtime/base/sha256.h"

namespace tensormill {

#if defined(TENSORMILL_OPENSSL)
/// The system's library: it uses the CPU's SHA instructions. Of its two interfaces the older one, which needs
/// no other part of the library: a program that links it statically grows by some kilobytes, not by
/// megabytes.
struct Hasher::State {
  SHA256_CTX context;
  State() { start(); }
  void start() { TM_CHECK(SHA256_Init(&context) == 1, "sha256 is not available"); }
  void update(std::string_view bytes) {
    TM_CHECK(SHA256_Update(&context, bytes.data(), bytes.size()) == 1, "sha256 update failed");
  }
  std::array<uint8_t, 32> finish() {
    std::array<uint8_t, 32> bytes{};
    TM_CHECK(SHA256_Final(bytes.data(), &context) == 1, "sha256 failed");
    start();
    return bytes;
  }
};
#else
struct Hasher::State : Sha256 {};
#endif

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::string_view bytes) { state_->update(bytes); }

void Hasher::update(std::span<const std::byte> bytes) {
  update(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void Hasher::update_field(std::string_view bytes) {
  update(std::to_string(bytes.size()) + ":");
  update(bytes);
}

Digest Hasher::finish() { return Digest(state_->finish()); }

std::optional<Digest> Digest::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  if (text.size() != kPrefix.size() + 64 || text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  std::array<uint8_t, 32> bytes{};
  if (!hex_bytes(text, bytes)) return std::nullopt;
  return Digest(bytes);
}

Digest Digest::of(std::string_view bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Digest Digest::of(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

std::string Digest::hex() const { return hex_text(bytes_); }

}  // namespace tensormill
