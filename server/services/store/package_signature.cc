#include "server/services/store/package_signature.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/hex.h"

namespace tensormill::server {

namespace {

using Key = std::shared_ptr<evp_pkey_st>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)>;

constexpr std::string_view kMagic = "tensormill-signature-1\ned25519 ";
constexpr size_t kKeyBytes = 32;
constexpr size_t kSignature = 64;

/// What is signed: not the bare digest, so that no signature made for another purpose fits.
std::string statement(const Digest& archive) { return "tensormill package archive " + archive.text(); }

Key read_key(const std::string& path, const char* setting, bool is_private) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::kUsage, std::string(setting) + ": " + path + " " + why);
  };
  std::string pem;
  try {
    pem = read_file(path);
  } catch (const Error& error) {
    throw refuse(std::string("cannot be read: ") + error.what());
  }
  const std::unique_ptr<BIO, decltype(&::BIO_free)> memory(
      ::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &::BIO_free);
  EVP_PKEY* raw = is_private ? ::PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr)
                             : ::PEM_read_bio_PUBKEY(memory.get(), nullptr, nullptr, nullptr);
  Key key(raw, &::EVP_PKEY_free);
  if (raw == nullptr || ::EVP_PKEY_id(raw) != EVP_PKEY_ED25519)
    throw refuse(std::string("is no PEM file of an Ed25519 ") + (is_private ? "private" : "public") + " key");
  return key;
}

std::string public_hex(const Key& key) {
  std::array<unsigned char, kKeyBytes> bytes{};
  size_t size = bytes.size();
  TM_CHECK(::EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size) == 1 && size == kKeyBytes,
           "an Ed25519 key of another size");
  return hex_text(bytes);
}

}  // namespace

PackageSigner::PackageSigner(const std::string& path) {
  if (!path.empty()) key_ = read_key(path, "packages.signing_key", true);
}

std::string PackageSigner::sign(const Digest& archive) const {
  if (!key_)
    throw Error(ErrorCode::kNotSupported,
                "this store signs nothing: the setting packages.signing_key is empty");
  const std::string text = statement(archive);
  const Context context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
  std::array<unsigned char, kSignature> bytes{};
  size_t size = bytes.size();
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const bool good = ::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
                    ::EVP_DigestSign(context.get(), bytes.data(), &size, data, text.size()) == 1;
  TM_CHECK(good && size == kSignature, "an archive cannot be signed");
  std::string block = std::string(kMagic) + public_hex(key_) + "\n" + hex_text(bytes) + "\n";
  block.resize(kSignatureBytes, '\0');
  return block;
}

TrustedKeys::TrustedKeys(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) keys_.push_back(read_key(path, "packages.trusted_keys", false));
}

void TrustedKeys::trust(const PackageSigner& own) {
  if (own.key_) keys_.push_back(own.key_);
}

void TrustedKeys::check(std::string_view block, const Digest& archive) const {
  const auto refuse = [](const std::string& why) { return Error(ErrorCode::kForeignCode, why); };
  if (keys_.empty()) throw refuse("no store is trusted: the setting packages.trusted_keys is empty");
  if (block.size() != kSignatureBytes || !block.starts_with(kMagic))
    throw refuse(
        "the archive is not signed; a signed one comes from GET /v1/packages/{package}/archive?signed=1");
  const std::string_view signer = block.substr(kMagic.size(), 2 * kKeyBytes);
  std::array<unsigned char, kSignature> bytes{};
  const auto key =
      std::find_if(keys_.begin(), keys_.end(), [&](const Key& one) { return public_hex(one) == signer; });
  if (key == keys_.end()) throw refuse("the archive is signed by a key that is not trusted here");
  const std::string text = statement(archive);
  const Context context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  const bool good = hex_bytes(block.substr(kMagic.size() + 2 * kKeyBytes + 1, 2 * kSignature), bytes) &&
                    ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key->get()) == 1 &&
                    ::EVP_DigestVerify(context.get(), bytes.data(), bytes.size(), data, text.size()) == 1;
  if (!good) throw refuse("the signature is not that of these bytes");
}

}  // namespace tensormill::server
