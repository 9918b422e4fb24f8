// Values as flat bytes, for the cache and for the answers of readers (daemon/reader). One list of
// a type's members serves both ways: `fields(archive, value)` calls `archive(value.a, value.b)`.
// The bytes may be a stranger's: what is read is checked, and nothing recurses. Numbers have the
// machine's order of bytes. Not thread-safe.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace slate::daemon {

template <typename T>
concept PlainNumber = (std::integral<T> || std::floating_point<T> ||
                       std::is_enum_v<T>)&&!std::same_as<T, bool>;

/// Appends values to bytes.
class FieldWriter {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size) {
    const auto* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  void put(bool value) { put(static_cast<std::uint8_t>(value ? 1 : 0)); }
  template <PlainNumber T>
  void put(const T& value) {
    append(&value, sizeof(value));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    append(text.data(), text.size());
  }
  void put(const std::vector<std::byte>& bytes) {
    put(static_cast<std::uint64_t>(bytes.size()));
    append(bytes.data(), bytes.size());
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void put(const T& value) {
    fields(*this, const_cast<T&>(value));  // one list of members serves both ways
  }

  std::vector<std::byte> bytes_;
};

/// Takes values from bytes. After the first that is not there all others stay as they are.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  /// kInvalidValue unless all the bytes were taken, and each value was there.
  Result<void> finish() const {
    if (is_good_ && left_.empty()) return {};
    return fail(ErrorCode::kInvalidValue, "a message of other fields");
  }

 private:
  bool take(void* to, std::size_t size) {
    is_good_ = is_good_ && size <= left_.size();
    if (!is_good_) return false;
    if (size != 0) std::memcpy(to, left_.data(), size);
    left_ = left_.subspan(size);
    return true;
  }
  /// A number of elements, each of which takes at least a byte of what is left.
  std::size_t take_count() {
    std::uint64_t count = 0;
    if (!take(&count, sizeof(count))) return 0;
    is_good_ = count <= left_.size();
    return is_good_ ? static_cast<std::size_t>(count) : 0;
  }
  void get(bool& value) {
    std::uint8_t byte = 0;
    if (!take(&byte, 1)) return;
    is_good_ = byte <= 1;
    value = byte == 1;
  }
  template <PlainNumber T>
  void get(T& value) {
    take(&value, sizeof(value));
  }
  void get(std::string& text) {
    text.resize(take_count());
    take(text.data(), text.size());
  }
  void get(std::vector<std::byte>& bytes) {
    bytes.resize(take_count());
    take(bytes.data(), bytes.size());
  }
  /// One element at a time: a false count takes no more memory than there are bytes.
  template <typename T>
  void get(std::vector<T>& values) {
    values.clear();
    const std::size_t count = take_count();
    for (std::size_t i = 0; i < count && is_good_; ++i) get(values.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void get(T& value) { fields(*this, value); }

  std::span<const std::byte> left_;
  bool is_good_ = true;
};

}  // namespace slate::daemon
