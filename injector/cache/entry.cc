#include "injector/cache/entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>

#include "base/digest.h"
#include "base/unique_fd.h"
#include "base/whole_bytes.h"

namespace slate::cache {
namespace {

constexpr std::string_view kTemporaryPrefix = "new-";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr char kMagic[8] = {'s', 'l', 'a', 't', 'e', 'o', 'b', 'j'};
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kTouchSeconds = 3600;

/// The first bytes of the file. The machine that writes it reads it: its own byte order will do.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t reserved;
  Key key;
  std::uint64_t value_bytes;
  DigestBytes digest;  // of the value
};
static_assert(sizeof(Header) == kHeaderBytes);

Header header_of(const Key& key, std::span<const std::byte> value) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.key = key;
  header.value_bytes = value.size();
  header.digest = digest_of(value);
  return header;
}

bool fits(const Header& header, const Key& key, std::uint64_t file_bytes) {
  return std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 && header.version == kVersion &&
         header.reserved == 0 && header.key == key &&
         header.value_bytes == file_bytes - sizeof(Header);
}

void touch(int file, const struct stat& facts) {
  if (std::time(nullptr) - facts.st_mtim.tv_sec < kTouchSeconds) return;
  ::futimens(file, nullptr);  // the entry of a cache that one may only read stays old
}

Result<void> write_temporary(int file, const Key& key, std::span<const std::byte> value) {
  const Header header = header_of(key, value);
  if (!write_all(file, std::as_bytes(std::span(&header, 1))) || !write_all(file, value))
    return fail_errno("compile cache: write");
  return {};
}

}  // namespace

std::string entry_name(const Key& key) {
  std::string name;
  for (const std::uint8_t byte : key) {
    name += kHexDigits[byte >> 4];
    name += kHexDigits[byte & 15];
  }
  return name;
}

bool is_entry_name(std::string_view name) {
  return name.size() == 2 * Key{}.size() &&
         name.find_first_not_of(kHexDigits) == std::string_view::npos;
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryPrefix);
}

ReadEntry read_entry(int directory, const Key& key) {
  const std::string name = entry_name(key);
  // NONBLOCK: a FIFO of that name must not hold us up.
  const UniqueFd file(
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return {errno == ELOOP ? Found::kDamaged : Found::kAbsent, {}};
  struct stat facts {};
  Header header;
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_size < static_cast<off_t>(sizeof(header)) ||
      !read_all(file.get(), std::as_writable_bytes(std::span(&header, 1))) ||
      !fits(header, key, static_cast<std::uint64_t>(facts.st_size))) {
    return {Found::kDamaged, {}};
  }
  ReadEntry entry{Found::kGood, std::vector<std::byte>(header.value_bytes)};
  if (!read_all(file.get(), entry.value) || digest_of(entry.value) != header.digest) {
    return {Found::kDamaged, {}};
  }
  touch(file.get(), facts);
  return entry;
}

Result<void> write_entry(int directory, const Key& key, std::span<const std::byte> value) {
  std::random_device random;
  const std::string temporary =
      fmt::format("{}{}-{:08x}{:08x}", kTemporaryPrefix, ::getpid(), random(), random());
  UniqueFd file(::openat(directory, temporary.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail_errno("compile cache: open");
  Result<void> done = write_temporary(file.get(), key, value);
  if (done && ::close(file.release()) != 0) done = fail_errno("compile cache: close");
  if (done && ::renameat(directory, temporary.c_str(), directory, entry_name(key).c_str()) != 0) {
    done = fail_errno("compile cache: rename");
  }
  if (!done) ::unlinkat(directory, temporary.c_str(), 0);
  return done;
}

}  // namespace slate::cache
