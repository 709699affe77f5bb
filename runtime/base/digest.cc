#include "runtime/base/digest.h"

#include <openssl/evp.h>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

struct Hasher::State {
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
  void start() {
    TM_CHECK(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1,
             "sha256 is not available");
  }
};

Hasher::Hasher() : state_(std::make_unique<State>()) { state_->start(); }
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::string_view bytes) {
  TM_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1, "sha256 update failed");
}

void Hasher::update(std::span<const std::byte> bytes) {
  update(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void Hasher::update_field(std::string_view bytes) {
  update(std::to_string(bytes.size()) + ":");
  update(bytes);
}

Digest Hasher::finish() {
  std::array<uint8_t, 32> bytes{};
  unsigned int size = 0;
  TM_CHECK(EVP_DigestFinal_ex(state_->context.get(), bytes.data(), &size) == 1 && size == 32,
           "sha256 failed");
  state_->start();
  return Digest(bytes);
}

std::optional<Digest> Digest::parse(std::string_view text) {
  constexpr std::string_view kPrefix = "sha256:";
  if (text.size() != kPrefix.size() + 64 || text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  std::array<uint8_t, 32> bytes{};
  for (size_t i = 0; i < 32; ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<uint8_t>(high * 16 + low);
  }
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

std::string Digest::hex() const {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes_) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace tensormill
