// What operators do to a store, with the k-th change of its disk failing, for all k: garbage collection,
// checks, imports of packages and of tuning records.
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdio>

#include "compiler/driver/compile.h"
#include "server/services/jobs/tuning_records.h"
#include "tests/server/faults.h"

namespace tensormill::server {
namespace {

/// Files with an Ed25519 key pair.
struct KeyPair {
  KeyPair() {
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"),
                                                             EVP_PKEY_free);
    const auto write = [](const std::string& path, const auto& put) {
      const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
      TM_CHECK(put(file.get()) == 1, "a key cannot be written");
    };
    write(private_path, [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    write(public_path, [&](std::FILE* file) { return PEM_write_PUBKEY(file, key.get()); });
  }
  storage::TemporaryFolder folder;
  std::string private_path = folder.path() + "/private.pem";
  std::string public_path = folder.path() + "/public.pem";
};

struct WithKeys {
  KeyPair keys;
};

/// Trusts its own signature.
class StoreFaultsTest : private WithKeys, public FaultsTest {
protected:
  StoreFaultsTest()
      : FaultsTest([this](config::Settings& settings) {
          settings.signing_key = keys.private_path;
          settings.trusted_keys = {keys.public_path};
        }) {}
};

TEST_F(StoreFaultsTest, PackageImports) {
  const auto archive = services_.packages->archive(package_, true).content;
  std::string bytes(archive->size(), '\0');
  const std::span<std::byte> whole = std::as_writable_bytes(std::span(bytes));
  for (size_t done = 0; done < bytes.size();) done += archive->read_at(done, whole.subspan(done));
  const auto remove = [&] {
    try {
      services_.packages->remove(package_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
    }
  };
  remove();
  fail_each(
      [&] {
        http::BytesBody body(bytes);
        EXPECT_EQ(services_.packages->import_package(body, {}).package.id.text(), package_);
      },
      remove);
}

TEST_F(StoreFaultsTest, TuningRecords) {
  const target::Target target = target::host_target();
  tune::Record record;
  record.target = target.canonical();
  record.task_key = std::string(64, 'a');
  record.schedule = "split s0 i0 2\n";
  record.seconds = {1};
  record.codegen = driver::code_generator();
  record.cpu = "another cpu";
  const std::string lines = tune::to_line(record) + "\n";
  std::string id;
  fail_each([&] { id = services_.tuning->import_records(lines, true).id.text(); },
            [&] {
              if (!id.empty()) services_.tuning->remove(id);
              id.clear();
            });
}

TEST_F(StoreFaultsTest, GarbageCollection) {
  // What an upload alone names is nobody's once the upload goes.
  const std::string bytes = "what nothing names";
  services::UploadInfo upload;
  const auto remove = [&] {
    try {
      services_.store->remove_upload(upload.id);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotFound) << error.what();
    }
  };
  const auto put = [&] {
    if (!upload.id.empty()) remove();
    upload = services_.store->begin_upload({});
    http::BytesBody body(bytes);
    services_.store->append_upload(upload.id, {}, body, {});
    services_.store->finish_upload(upload.id, Digest::of(bytes));
  };
  put();
  fail_each(
      [&] {
        services_.store->remove_upload(upload.id);
        services_.store->collect(false);
      },
      put);
  remove();
  services_.store->collect(false);
  EXPECT_FALSE(storage::FolderBlobStore(env_, folder_.path()).exists(Digest::of(bytes)));
}

TEST_F(StoreFaultsTest, RemovalsOfAModel) {
  const std::string bytes = digits_model() + std::string("\x12\x04name", 6);
  import("other", bytes);
  const auto remove = [&] {
    for (const std::string& reference : {std::string("other"), Digest::of(bytes).text()}) {
      try {
        services_.models->remove(reference);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kNotFound) throw;
      }
    }
  };
  fail_each(remove, [&] { import("other", bytes); });
}

TEST_F(StoreFaultsTest, ChecksOfAStore) {
  server_->stop();
  server_.reset();
  uint64_t failures = 0;
  for (uint64_t k = 1; k < kMost; ++k) {
    env_.fail_operations(k, 1, EIO);
    const uint64_t before = env_.operations();
    try {
      EXPECT_EQ(fsck().problems, std::vector<std::string>()) << "change " << k;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo) << "change " << k << ": " << error.what();
      ++failures;
    }
    const bool reached = env_.operations() - before >= k;
    env_.fail_operations(1, 0, 0);
    EXPECT_EQ(fsck().problems, std::vector<std::string>()) << "after change " << k;
    if (!reached) break;
  }
  EXPECT_GT(failures, 0U);
}

}  // namespace
}  // namespace tensormill::server
