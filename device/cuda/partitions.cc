#include "device/cuda/partitions.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/log.h"

namespace slate::cuda {
namespace {

constexpr unsigned int kPair = 2;  // SMs that the driver does not part

/// Whether asking again may be answered differently.
bool may_pass(const Error& error) {
  return is_sticky(error.code) || error.code == ErrorCode::kOutOfResources ||
         error.code == ErrorCode::kOutOfMemory;
}

}  // namespace

Partitions::~Partitions() {
  for (CUgreenCtx green : greens_) destroy_green(green);
}

Result<Partitions::Units> Partitions::units() {
  MutexLock lock(mutex_);
  if (auto found = ensure_units(); !found) return std::unexpected(found.error());
  return units_;
}

Result<void> Partitions::ensure_units() {
  if (!units_.empty()) return {};
  if (refusal_) return std::unexpected(*refusal_);
  auto found = find_units();
  if (found) {
    units_ = std::move(*found);
    return {};
  }
  if (may_pass(found.error())) return std::unexpected(found.error());
  refusal_ =
      Error{ErrorCode::kNotSupported, "this GPU cannot be partitioned: " + found.error().message};
  return std::unexpected(*refusal_);
}

Result<Partitions::Units> Partitions::find_units() {
  const auto groups = smallest_groups();
  if (!groups) return std::unexpected(groups.error());
  if (auto far_apart = spread(*groups)) {
    cut_ = std::move(*far_apart);
    auto units = look_at_units();
    if (units || may_pass(units.error())) return units;
  }
  cut_ = *groups;
  return look_at_units();
}

/// Which SMs the units have.
Result<Partitions::Units> Partitions::look_at_units() {
  auto probe = SmProbe::make(context_);
  if (!probe) return std::unexpected(probe.error());
  Units units;
  std::set<std::uint32_t> seen;
  for (std::uint32_t unit = 0; unit < cut_.ends.size(); ++unit) {
    const auto parts = parts_of(unit, 1);
    const auto green = make_green(parts);
    if (!green) return std::unexpected(green.error());
    std::uint32_t count = 0;
    for (const CUdevResource& part : parts) count += part.sm.smCount;
    auto sms = sms_of(*probe, *green, count);
    destroy_green(*green);
    if (!sms) return std::unexpected(sms.error());
    seen.insert(sms->begin(), sms->end());
    units.push_back(std::move(*sms));
  }
  std::size_t total = 0;
  for (const auto& unit : units) total += unit.size();
  if (seen.size() != total || total != whole_.sm.smCount) {
    return fail(ErrorCode::kNotSupported,
                fmt::format("the driver's groups have {} SMs, {} of them different; the GPU has {}",
                            total, seen.size(), whole_.sm.smCount));
  }
  return units;
}

/// Each a unit.
Result<Partitions::Cut> Partitions::smallest_groups() {
  const Driver& driver = context_.driver();
  for (const auto& present :
       {check_present(driver.cuDeviceGetDevResource),
        check_present(driver.cuDevSmResourceSplitByCount),
        check_present(driver.cuDevResourceGenerateDesc), check_present(driver.cuGreenCtxCreate),
        check_present(driver.cuGreenCtxDestroy), check_present(driver.cuGreenCtxStreamCreate)}) {
    if (!present) return std::unexpected(present.error());
  }
  const auto done = context_.call(driver.cuDeviceGetDevResource, context_.device(), &whole_,
                                  CU_DEV_RESOURCE_TYPE_SM);
  if (!done) return std::unexpected(done.error());
  // The driver rounds up to what it can do; drivers before CUDA 13 do not tell what that is.
  return split(std::max(whole_.sm.minSmPartitionSize, 1U), 0);
}

/// Units as large as the smallest groups, each of pairs of SMs from all over the device: the driver
/// numbers neighbours one after the other.
Result<Partitions::Cut> Partitions::spread(const Cut& groups) {
  const std::size_t each = groups.parts.empty() ? 0 : groups.parts.front().sm.smCount / kPair;
  const auto pairs = split(kPair, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
  if (!pairs) return pairs;
  const std::size_t count = pairs->parts.size();
  if (each < 2 || count < 2 * each || pairs->parts.front().sm.smCount != kPair)
    return fail(ErrorCode::kNotSupported, "units of single pairs");
  std::size_t stride = (count + each - 1) / each;
  while (std::gcd(stride, count) != 1) ++stride;
  Cut cut{.parts = {}, .ends = {}, .has_remainder = pairs->has_remainder};
  for (std::size_t i = 0; i < count; ++i) {
    cut.parts.push_back(pairs->parts[i * stride % count]);
    if ((i + 1) % each == 0) cut.ends.push_back(i + 1);
  }
  cut.ends.back() = count;
  return cut;
}

/// Groups of so many SMs, or the next size that the driver can do, and what is left over.
Result<Partitions::Cut> Partitions::split(unsigned int size, unsigned int flags) {
  const auto& split = context_.driver().cuDevSmResourceSplitByCount;
  unsigned int groups = 0;
  auto done = context_.call(split, nullptr, &groups, &whole_, nullptr, flags, size);
  if (!done) return std::unexpected(done.error());
  Cut cut;
  cut.parts.assign(groups, CUdevResource{});
  CUdevResource rest{};
  done = context_.call(split, cut.parts.data(), &groups, &whole_, &rest, flags, size);
  if (!done) return std::unexpected(done.error());
  cut.parts.resize(groups);
  cut.has_remainder = rest.type == CU_DEV_RESOURCE_TYPE_SM && rest.sm.smCount > 0;
  if (cut.has_remainder) cut.parts.push_back(rest);
  for (std::size_t end = 1; end <= cut.parts.size(); ++end) cut.ends.push_back(end);
  return cut;
}

std::span<CUdevResource> Partitions::parts_of(std::uint32_t first, std::uint32_t count) {
  const std::size_t begin = first == 0 ? 0 : cut_.ends[first - 1];
  return std::span(cut_.parts).subspan(begin, cut_.ends[first + count - 1] - begin);
}

Result<CUgreenCtx> Partitions::make_green(std::span<CUdevResource> parts) {
  const Driver& driver = context_.driver();
  CUdevResourceDesc description = nullptr;
  auto done = context_.call(driver.cuDevResourceGenerateDesc, &description, parts.data(),
                            static_cast<unsigned int>(parts.size()));
  CUgreenCtx green = nullptr;
  if (done) {
    done = context_.call(driver.cuGreenCtxCreate, &green, description, context_.device(),
                         CU_GREEN_CTX_DEFAULT_STREAM);
  }
  if (!done) return std::unexpected(done.error());
  return green;
}

Result<CUgreenCtx> Partitions::create(std::uint32_t first_unit, std::uint32_t unit_count) {
  MutexLock lock(mutex_);
  if (auto found = ensure_units(); !found) return std::unexpected(found.error());
  if (unit_count == 0 || first_unit >= units_.size() || unit_count > units_.size() - first_unit) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("a partition of {} units from unit {} on: there are {} units",
                            unit_count, first_unit, units_.size()));
  }
  auto green = join(first_unit, unit_count);
  if (green) greens_.insert(*green);
  return green;
}

/// A green context of the units, by whichever way this driver knows.
Result<CUgreenCtx> Partitions::join(std::uint32_t first, std::uint32_t count) {
  const auto parts = parts_of(first, count);
  auto joined = make_green(parts);
  if (joined || count == 1 || may_pass(joined.error())) return joined;
  if (auto carved = carve(first, count)) return carved;
  const bool with_remainder = cut_.has_remainder && first + count == units_.size();
  if (!with_remainder) return joined;
  log_warning(
      "the driver does not join the GPU's last {} SMs to others: a partition lacks them ({})",
      parts.back().sm.smCount, joined.error().message);
  return make_green(parts.first(parts.size() - 1));
}

/// At either end of the device the same SMs can also be one group of another split, or what such a
/// split leaves over. Which SMs that takes is the driver's choice, so it is looked at.
Result<CUgreenCtx> Partitions::carve(std::uint32_t first, std::uint32_t count) {
  const bool is_whole = count == units_.size();
  const bool at_start = first == 0;
  if (!at_start && first + count != units_.size()) {
    return fail(ErrorCode::kNotSupported, "units in the middle of the device");
  }
  const std::vector<std::uint32_t> wanted = sms_of_units(first, count);
  CUdevResource group = whole_;
  CUdevResource rest{};
  if (!is_whole) {
    const auto size =
        static_cast<unsigned int>(at_start ? wanted.size() : sms_of_units(0, first).size());
    unsigned int groups = 1;
    if (auto split = context_.call(context_.driver().cuDevSmResourceSplitByCount, &group, &groups,
                                   &whole_, &rest, 0, size);
        !split) {
      return std::unexpected(split.error());
    }
  }
  auto probe = SmProbe::make(context_);
  if (!probe) return std::unexpected(probe.error());
  auto green = make_green({at_start ? &group : &rest, 1});
  if (!green) return green;
  const auto sms = sms_of(*probe, *green, static_cast<std::uint32_t>(wanted.size()));
  if (sms && *sms == wanted) return green;
  destroy_green(*green);
  return fail(ErrorCode::kNotSupported, "the driver cuts a group of this size from other SMs");
}

std::vector<std::uint32_t> Partitions::sms_of_units(std::uint32_t first,
                                                    std::uint32_t count) const {
  std::vector<std::uint32_t> sms;
  for (const auto& unit : std::span(units_).subspan(first, count)) {
    sms.insert(sms.end(), unit.begin(), unit.end());
  }
  std::ranges::sort(sms);
  return sms;
}

Result<std::vector<std::uint32_t>> Partitions::sms_of(SmProbe& probe, CUgreenCtx green,
                                                      std::uint32_t count) {
  const auto stream = make_stream(green, context_.highest_priority());
  if (!stream) return std::unexpected(stream.error());
  auto sms = probe.find(*stream, count);
  std::ignore = context_.call(context_.driver().cuStreamDestroy, *stream);
  return sms;
}

void Partitions::destroy(CUgreenCtx green) {
  MutexLock lock(mutex_);
  if (greens_.erase(green) != 0) destroy_green(green);
}

void Partitions::destroy_green(CUgreenCtx green) {
  std::ignore = context_.call(context_.driver().cuGreenCtxDestroy, green);
}

Result<CUstream> Partitions::create_stream(CUgreenCtx green, int priority) {
  MutexLock lock(mutex_);
  if (!greens_.contains(green)) return fail(ErrorCode::kInvalidHandle, "cuda: no such partition");
  return make_stream(green, context_.clamp_priority(priority));
}

Result<CUstream> Partitions::make_stream(CUgreenCtx green, int priority) {
  CUstream stream = nullptr;
  if (auto made = context_.call(context_.driver().cuGreenCtxStreamCreate, &stream, green,
                                CU_STREAM_NON_BLOCKING, priority);
      !made) {
    return std::unexpected(made.error());
  }
  return stream;
}

}  // namespace slate::cuda
