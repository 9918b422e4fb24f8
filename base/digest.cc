// libcrypto.a by its plain SHA256_* calls: 35 KB, and its licence is slate's. EVP would bring 3.8
// MB and its configuration files into every program that libslate is in. The plain calls are marked
// as deprecated since 3.0; the macro is OpenSSL's way of saying that one knows.
#define OPENSSL_API_COMPAT 0x10101000L
#include "base/digest.h"

#include <openssl/sha.h>

namespace slate {

struct Digest::State {
  SHA256_CTX context;
};

Digest::Digest() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}

Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

DigestBytes Digest::finish() {
  DigestBytes bytes;
  static_assert(bytes.size() == SHA256_DIGEST_LENGTH);
  SHA256_Final(bytes.data(), &state_->context);
  return bytes;
}

DigestBytes digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.finish();
}

}  // namespace slate
