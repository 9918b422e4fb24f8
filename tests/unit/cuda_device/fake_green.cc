#include "fake_green.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "base/check.h"

namespace slate::cuda {
namespace {

/// What the driver would keep in the part of a CUdevResource that is its own.
struct Secret {
  std::uint8_t split = 0;  // 0: the whole device
  std::uint8_t is_rest = 0;
  std::uint8_t count = 0;
  std::uint8_t sms[FakeGreen::kSms] = {};
};
static_assert(sizeof(Secret) <= sizeof(CUdevResource::_internal_padding));

Secret secret_of(const CUdevResource& resource) {
  Secret secret;
  std::memcpy(&secret, resource._internal_padding, sizeof(secret));
  return secret;
}

CUdevResource make_resource(std::span<const std::uint32_t> sms, std::uint32_t split, bool is_rest) {
  Secret secret{static_cast<std::uint8_t>(split), is_rest, static_cast<std::uint8_t>(sms.size())};
  std::ranges::copy(sms, secret.sms);
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  resource.sm.smCount = static_cast<unsigned int>(sms.size());
  resource.sm.minSmPartitionSize = FakeGreen::kGroup;
  resource.sm.smCoscheduledAlignment = FakeGreen::kGroup;
  std::memcpy(resource._internal_padding, &secret, sizeof(secret));
  return resource;
}

/// Groups of eight have every fourth SM, and the last four SMs are left over.
FakeGreen::Sms order() {
  FakeGreen::Sms sms;
  for (std::uint32_t i = 0; i < 32; ++i) sms.push_back(i % 8 * 4 + i / 8);
  for (std::uint32_t i = 32; i < FakeGreen::kSms; ++i) sms.push_back(i);
  return sms;
}

FakeGreen::Sms all_sms() {
  FakeGreen::Sms sms(FakeGreen::kSms);
  std::iota(sms.begin(), sms.end(), 0);
  return sms;
}

}  // namespace

FakeGreen::Sms FakeGreen::sms_of(CUstream stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? all_sms() : sms_of(found->second);
}

CUresult FakeGreen::resource(CUdevResource* resource) const {
  *resource = make_resource(all_sms(), 0, false);
  return CUDA_SUCCESS;
}

CUresult FakeGreen::split(CUdevResource* parts, unsigned int* count, CUdevResource* rest,
                          unsigned int flags, unsigned int size) {
  const bool in_pairs = (flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING) != 0;
  if (in_pairs && !cuts_pairs) return CUDA_ERROR_INVALID_VALUE;
  const std::uint32_t least = in_pairs ? kPair : kGroup;
  const std::size_t group = (size + least - 1) / least * least;
  const auto most = static_cast<unsigned int>(kSms / group);
  if (parts == nullptr) {
    *count = most;
    return CUDA_SUCCESS;
  }
  ++splits_;
  Sms sms = order();
  if (cuts_elsewhere && group > kGroup) std::ranges::reverse(sms);
  *count = std::min(*count, most);
  for (unsigned int i = 0; i < *count; ++i) {
    parts[i] = make_resource(std::span(sms).subspan(i * group, group), splits_, false);
  }
  *rest = make_resource(std::span(sms).subspan(*count * group), splits_, true);
  return CUDA_SUCCESS;
}

CUresult FakeGreen::describe(CUdevResourceDesc* description, const CUdevResource* parts,
                             unsigned int count) {
  Sms sms;
  for (const CUdevResource& part : std::span(parts, count)) {
    const Secret secret = secret_of(part);
    if (count > 1 && (!joins || (secret.is_rest != 0 && !joins_remainder) ||
                      secret.split != secret_of(parts[0]).split)) {
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    }
    sms.insert(sms.end(), secret.sms, secret.sms + secret.count);
  }
  std::ranges::sort(sms);
  SLATE_CHECK(std::ranges::adjacent_find(sms) == sms.end());
  described_.push_back(std::move(sms));
  *description = reinterpret_cast<CUdevResourceDesc>(described_.size());
  return CUDA_SUCCESS;
}

void FakeGreen::create(CUgreenCtx green, CUdevResourceDesc description) {
  greens_[green] = described_.at(reinterpret_cast<std::size_t>(description) - 1);
}

CUgreenCtx FakeGreen::green_of(CUstream stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

void FakeGreen::ran_on(CUstream stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  const Sms sms = sms_of(found->second);
  for (std::uint32_t i = 0; i < std::min<std::size_t>(sms_per_launch, sms.size()); ++i) {
    const std::uint32_t sm = sms[(launches * sms_per_launch + i) % sms.size()];
    if (!busy.contains(sm)) table_[sm] = 1;
  }
  for (const std::uint32_t sm : stolen) table_[sm] = 1;
  ++launches;
}

}  // namespace slate::cuda
