/// SHA-256 digests: the identity of every immutable thing.
/// Thread-safety: Digest is a value; a Hasher belongs to one thread at a time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tensormill {

class Digest {
public:
  Digest() = default;
  explicit Digest(const std::array<uint8_t, 32>& bytes) : bytes_(bytes) {}
  /// Parses "sha256:<64 lower-case hex>" (the prefix is required); nothing when malformed.
  static std::optional<Digest> parse(std::string_view text);
  static Digest of(std::string_view bytes);
  static Digest of(std::span<const std::byte> bytes);
  /// "sha256:<64 hex>"
  std::string text() const { return "sha256:" + hex(); }
  std::string hex() const;
  const std::array<uint8_t, 32>& bytes() const { return bytes_; }
  auto operator<=>(const Digest&) const = default;

private:
  std::array<uint8_t, 32> bytes_{};
};

class Hasher {
public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  void update(std::string_view bytes);
  void update(std::span<const std::byte> bytes);
  /// Appends the length and then the bytes, so that sequences of fields hash without ambiguity.
  void update_field(std::string_view bytes);
  /// Ends the hash; the object is fresh afterwards.
  Digest finish();

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tensormill
