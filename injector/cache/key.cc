#include "base/digest.h"
#include "injector/cache/cache.h"

namespace slate::cache {
namespace {

void add_framed(Digest& digest, std::span<const std::byte> part) {
  const std::uint64_t bytes = part.size();
  digest.add(std::as_bytes(std::span(&bytes, 1)));
  digest.add(part);
}

}  // namespace

struct KeyBuilder::State {
  Digest digest;
};

KeyBuilder::KeyBuilder() : state_(std::make_unique<State>()) {}

KeyBuilder::KeyBuilder(KeyBuilder&& other) noexcept = default;

KeyBuilder::~KeyBuilder() = default;

KeyBuilder& KeyBuilder::add(std::string_view label, std::string_view part) {
  return add(label, std::as_bytes(std::span(part)));
}

KeyBuilder& KeyBuilder::add(std::string_view label, std::span<const std::byte> part) {
  add_framed(state_->digest, std::as_bytes(std::span(label)));
  add_framed(state_->digest, part);
  return *this;
}

std::array<std::uint8_t, 32> KeyBuilder::finish() {
  return state_->digest.finish();
}

}  // namespace slate::cache
