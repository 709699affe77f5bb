/// Signed package archives: what lets machine code go from one store to another. A signed archive is the
/// plain one with a block behind it, which tar ignores: the signer's public key and its Ed25519 signature
/// (RFC 8032) of the digest of all bytes before the block. Nothing of an archive is read before its signature
/// is good. Thread-safety: immutable.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"

struct evp_pkey_st;

namespace tensormill::server {

/// As long as a tar's block.
inline constexpr size_t kSignatureBytes = 512;

class PackageSigner {
public:
  /// `path`: a PEM file with an Ed25519 private key; "" for none. Throws Error(kUsage).
  explicit PackageSigner(const std::string& path);
  /// The block for an archive of this digest. Throws Error(kNotSupported) without a key.
  std::string sign(const Digest& archive) const;
  /// Whether it has a key.
  bool can_sign() const { return key_ != nullptr; }

private:
  friend class TrustedKeys;
  std::shared_ptr<evp_pkey_st> key_;
};

class TrustedKeys {
public:
  /// PEM files with an Ed25519 public key each. Throws Error(kUsage).
  explicit TrustedKeys(const std::vector<std::string>& paths);
  /// What this store signs itself it trusts as well. Before other calls.
  void trust(const PackageSigner& own);
  /// Throws Error(kForeignCode) unless `block` is the signature of this digest by one of the keys.
  void check(std::string_view block, const Digest& archive) const;

private:
  std::vector<std::shared_ptr<evp_pkey_st>> keys_;
};

}  // namespace tensormill::server
