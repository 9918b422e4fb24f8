// TimePage: what the engines of one device show one another of the time that they receive
// (scheduler/time_share.h), in shared memory. The supervisor makes it and hands it to them. Each
// engine has a slot, which is found by the engine's serial number.
//
// Writer of a slot's owner: the supervisor. Writer of the rest: the owner. Readers: all of them,
// also while a slot changes: one look may see values of two moments, which the next one corrects.
// Clients never see it. Thread: any.
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "scheduler/time_share.h"

namespace slate::daemon {

class TimePage {
 public:
  /// The most engines of one device. Each takes hundreds of MiB of its memory.
  static constexpr std::uint32_t kSlots = 64;

  /// Makes an empty page. Errors: kOutOfMemory, kIo.
  static Result<std::unique_ptr<TimePage>> make();
  /// Maps the page behind a descriptor. Errors: kProtocol for memory of another size.
  static Result<std::unique_ptr<TimePage>> from_fd(UniqueFd fd);
  TimePage(const TimePage&) = delete;
  TimePage& operator=(const TimePage&) = delete;

  int fd() const { return fd_.get(); }

  // --- Supervisor. `engine`: a serial number, not 0.
  /// Gives the engine an empty slot, unless it has one. False: all are taken.
  bool give(std::uint64_t engine);
  /// The slot becomes nobody's. The others wait for that engine no more.
  void take_back(std::uint64_t engine);
  /// The engines with a slot.
  std::vector<std::uint64_t> owners() const;
  /// What the engine shows; nullopt: it has no slot.
  std::optional<scheduler::ShownTime> shown_by(std::uint64_t engine) const;

  // --- Engine
  /// Does nothing where the engine has no slot.
  void show(std::uint64_t engine, const scheduler::ShownTime& shown);
  /// What all engines but this one show; nothing where it has no slot, as nobody sees it then.
  void read_others(std::uint64_t engine, std::vector<scheduler::ShownTime>& others) const;

 private:
  /// One cache line, as each engine writes its own.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> owner;  // serial number of the engine; 0: nobody's
    std::atomic<std::uint32_t> flags;  // kUses, kHolds
    std::atomic<std::int64_t> at_ns;
    std::atomic<double> received_ms;
    std::atomic<double> part;
  };
  static_assert(sizeof(Slot) == 64 && std::atomic<double>::is_always_lock_free);
  struct Shared {
    Slot slots[kSlots];
  };
  static_assert(sizeof(Shared) == 4096);
  static constexpr std::uint32_t kUses = 1, kHolds = 2;

  TimePage(UniqueFd fd, boost::interprocess::mapped_region region)
      : fd_(std::move(fd)),
        region_(std::move(region)),
        shared_(static_cast<Shared*>(region_.get_address())) {}
  Slot* slot_of(std::uint64_t engine) const;
  static void write(Slot& slot, const scheduler::ShownTime& shown);
  static scheduler::ShownTime read(const Slot& slot);

  const UniqueFd fd_;
  const boost::interprocess::mapped_region region_;
  Shared* const shared_;
};

}  // namespace slate::daemon
