// FakeGreen: the SMs of a FakeDriver, how it cuts them into groups, and its green contexts. Its
// groups are not neighbours, as on real GPUs, and only it knows who is in them: others have to look
// where blocks run. Part of FakeDriver.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/cuda/driver.h"

namespace slate::cuda {

class FakeGreen {
 public:
  using Sms = std::vector<std::uint32_t>;

  static constexpr std::uint32_t kSms = 36;  // four groups of eight, and four SMs left over
  static constexpr std::uint32_t kGroup = 8;
  static constexpr std::uint32_t kPair = 2;
  static constexpr CUdeviceptr kTable = 0x5000;  // the only variable of any module
  static constexpr std::uint32_t kTableWords = 64;

  // --- The test's side ---
  bool joins = true;                    // whether a descriptor may have several parts
  bool joins_remainder = true;          // and what is left over among them
  bool cuts_elsewhere = false;          // larger groups do not begin where smaller ones do
  bool cuts_pairs = false;              // SMs need not be of one GPC
  std::uint32_t sms_per_launch = kSms;  // how many of its SMs one launch reaches
  std::set<std::uint32_t> busy;         // SMs without room
  std::set<std::uint32_t> stolen;       // SMs that run blocks of every green context
  std::uint32_t launches = 0;           // on streams of green contexts

  /// In rising order; those of a stream that is of no green context are all.
  Sms sms_of(CUgreenCtx green) const { return greens_.at(green); }
  Sms sms_of(CUstream stream) const;
  std::size_t greens() const { return greens_.size(); }
  std::size_t streams() const { return streams_.size(); }

  // --- The driver's side ---
  CUresult resource(CUdevResource* resource) const;
  CUresult split(CUdevResource* parts, unsigned int* count, CUdevResource* rest, unsigned int flags,
                 unsigned int size);
  CUresult describe(CUdevResourceDesc* description, const CUdevResource* parts, unsigned int count);
  void create(CUgreenCtx green, CUdevResourceDesc description);
  void destroy(CUgreenCtx green) { greens_.erase(green); }
  void create_stream(CUstream stream, CUgreenCtx green) { streams_[stream] = green; }
  void destroy_stream(CUstream stream) { streams_.erase(stream); }
  CUgreenCtx green_of(CUstream stream) const;
  void ran_on(CUstream stream);  // a launch
  void clear_table() { table_.assign(kTableWords, 0); }
  const std::vector<std::uint32_t>& table() const { return table_; }

 private:
  std::vector<std::uint32_t> table_ = std::vector<std::uint32_t>(kTableWords);
  std::uint32_t splits_ = 0;
  std::vector<Sms> described_;
  std::map<CUgreenCtx, Sms> greens_;
  std::map<CUstream, CUgreenCtx> streams_;
};

}  // namespace slate::cuda
