// Copies and fills. The client's data travels through the staging slots of the segment: a slot is
// given back when its copy has finished, and also when the copy was refused, so that the client
// never waits in vain.
#include <fmt/format.h>

#include "base/log.h"
#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;
namespace {

/// Bytes from the first to the last one of `height` rows; false on overflow.
bool extent_of(std::uint64_t pitch, std::uint64_t width, std::uint64_t height,
               std::uint64_t& extent) {
  std::uint64_t before_last_row = 0;
  return !__builtin_mul_overflow(pitch, height - 1, &before_last_row) &&
         !__builtin_add_overflow(before_last_row, width, &extent);
}

}  // namespace

/// Requires: width and height are not 0.
Result<void> Session::check_range(std::uint64_t address, std::uint64_t pitch, std::uint64_t width,
                                  std::uint64_t height) const {
  std::uint64_t extent = 0;
  if (height > 1 && pitch < width) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("pitch {} below width {}", pitch, width));
  }
  if (!extent_of(pitch, width, height, extent)) {
    return slate::fail(ErrorCode::kInvalidValue, "a copy longer than the address space");
  }
  if (memory_->owns(address, extent) || modules_.owns(address, extent) ||
      host_blocks_.owns(address, extent) || imports_.owns(address, extent)) {
    return {};
  }
  return slate::fail(ErrorCode::kInvalidValue,
                     fmt::format("{} bytes at {:#x} are not this session's", extent, address));
}

Result<void> Session::on(const Call<CommandType::kCopyToDevice>& call) {
  return staged_copy(call.body, *call.stream, true);
}

Result<void> Session::on(const Call<CommandType::kCopyToHost>& call) {
  return staged_copy(call.body, *call.stream, false);
}

Result<void> Session::staged_copy(const ipc::StagedCopy& copy, LogicalStream& target,
                                  bool to_device) {
  std::uint64_t packed = 0;
  if (__builtin_mul_overflow(copy.width, copy.height, &packed)) packed = ~std::uint64_t{0};
  const SlotUse use{copy.slot, copy.slot_offset, copy.slot_sequence, target, to_device, packed};
  return use_slot(use, [&](std::byte* host, device::Stream stream) -> Result<void> {
    if (const auto ok = check_range(copy.address, copy.pitch, copy.width, copy.height); !ok)
      return ok;
    const device::Shape shape{copy.width, copy.height};
    return to_device
               ? device_.copy_to_device(copy.address, copy.pitch, host, copy.width, shape, stream)
               : device_.copy_to_host(host, copy.width, copy.address, copy.pitch, shape, stream);
  });
}

Result<void> Session::use_slot(const SlotUse& use, const SlotCopy& copy) {
  if (use.slot >= ipc::kStagingSlots || use.offset > ipc::kStagingSlotBytes ||
      use.bytes > ipc::kStagingSlotBytes - use.offset) {
    return slate::fail(ErrorCode::kProtocol, "a copy outside its staging slot");
  }
  Result<void> done;
  if (use.bytes > 0) done = submit_slot(use, copy);
  if (done && use.bytes > 0) return {};
  if (!done) {
    log_debug("session {}: {}", spec_.id, done.error().message);
    // A copy to the host is waited for, so its own call is told. The other call has returned.
    if (use.to_device) channel_.set_async_error(done.error());
  }
  channel_.finish_staging(use.slot, use.sequence, done ? ErrorCode::kNone : done.error().code);
  return {};
}

Result<void> Session::submit_slot(const SlotUse& use, const SlotCopy& copy) {
  const auto target = streams_.begin_work(use.stream);
  if (!target) return checked(std::unexpected(target.error()));
  const auto memory = staging_.begin(use.slot);
  if (!memory) return std::unexpected(memory.error());
  const auto submitted = copy(*memory + use.offset, *target);
  if (!submitted) {
    staging_.cancel(use.slot);
    return checked(submitted);
  }
  streams_.work_submitted(use.stream);
  count_copy(use.to_device, use.bytes);
  // A slot that went to the device is waited for when the others are used up, hardly ever.
  const auto notice = use.to_device ? Completer::Notice::kCheap : Completer::Notice::kSoon;
  const auto watched = streams_.watch(
      use.stream,
      [this, slot = use.slot, sequence = use.sequence](const Result<void>& outcome) {
        // First the error, then the slot: the client must not take what is in it for data.
        if (!outcome) on_device_error(outcome.error());
        staging_.finish(slot, sequence);
      },
      notice);
  // The transfer may still run, and nothing tells its end: the slot stays taken.
  if (!watched) on_device_error(watched.error());
  return {};
}

void Session::count_copy(bool to_device, std::uint64_t bytes) {
  copies_.fetch_add(1, std::memory_order_relaxed);
  (to_device ? bytes_to_device_ : bytes_to_host_).fetch_add(bytes, std::memory_order_relaxed);
}

Result<void> Session::on(const Call<CommandType::kCopyInline>& call) {
  if (call.tail.empty() || call.tail.size() > ipc::kMostInlineBytes)
    return slate::fail(ErrorCode::kProtocol, "a copy inside its command of a size that none has");
  if (const auto ok = check_range(call.body.address, call.tail.size(), call.tail.size(), 1); !ok)
    return ok;
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  const std::byte* from = small_copies_->put(call.tail, streams_.share(*call.stream));
  std::shared_ptr<std::vector<std::byte>> own;
  if (from == nullptr) {
    own = std::make_shared<std::vector<std::byte>>(call.tail.begin(), call.tail.end());
    from = own->data();
  }
  const auto done = device_.copy_to_device(call.body.address, call.tail.size(), from,
                                           call.tail.size(), {call.tail.size(), 1}, *target);
  if (!done) return checked(done);
  streams_.work_submitted(*call.stream);
  count_copy(true, call.tail.size());
  if (!own) return {};
  const auto watched = streams_.watch(*call.stream, [own](const Result<void>&) {});
  if (!watched) on_device_error(watched.error());
  return {};
}

/// Straight between the program's memory and the device's: complete with the stream, like a launch.
Result<void> Session::on(const Call<CommandType::kCopyPinned>& call) {
  if (call.body.width == 0 || call.body.height == 0) return {};
  if (const auto ok =
          check_range(call.body.address, call.body.pitch, call.body.width, call.body.height);
      !ok)
    return ok;
  std::uint64_t extent = 0;
  if ((call.body.height > 1 && call.body.host_pitch < call.body.width) ||
      !extent_of(call.body.host_pitch, call.body.width, call.body.height, extent)) {
    return slate::fail(ErrorCode::kInvalidValue, "rows of host memory that overlap");
  }
  const auto host = host_blocks_.find(call.body.host, call.body.host_offset, extent);
  if (!host) return std::unexpected(host.error());
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  const device::Shape shape{call.body.width, call.body.height};
  const bool to_device = call.body.to_device != 0;
  const auto done = to_device ? device_.copy_to_device(call.body.address, call.body.pitch, *host,
                                                       call.body.host_pitch, shape, *target)
                              : device_.copy_to_host(*host, call.body.host_pitch, call.body.address,
                                                     call.body.pitch, shape, *target);
  if (!done) return checked(done);
  streams_.work_submitted(*call.stream);
  count_copy(to_device, call.body.width * call.body.height);
  return {};
}

Result<void> Session::on(const Call<CommandType::kCopyOnDevice>& call) {
  if (call.body.width == 0 || call.body.height == 0) return {};
  if (const auto ok =
          check_range(call.body.to, call.body.to_pitch, call.body.width, call.body.height);
      !ok)
    return ok;
  if (const auto ok =
          check_range(call.body.from, call.body.from_pitch, call.body.width, call.body.height);
      !ok) {
    return ok;
  }
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  const auto done = executor_.let_through(*client_, *target, [&] {
    return device_.copy_on_device(call.body.to, call.body.to_pitch, call.body.from,
                                  call.body.from_pitch, {call.body.width, call.body.height},
                                  *target);
  });
  if (!done) return checked(done);
  streams_.work_submitted(*call.stream);
  copies_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Result<void> Session::on(const Call<CommandType::kFill>& call) {
  if (call.body.width == 0 || call.body.height == 0) return {};
  if (const auto ok = check_range(call.body.to, call.body.pitch, call.body.width, call.body.height);
      !ok) {
    return ok;
  }
  const auto target = streams_.begin_work(*call.stream);
  if (!target) return checked(std::unexpected(target.error()));
  const auto done = executor_.let_through(*client_, *target, [&] {
    return device_.fill(call.body.to, call.body.pitch, static_cast<std::uint8_t>(call.body.value),
                        {call.body.width, call.body.height}, *target);
  });
  if (!done) return checked(done);
  streams_.work_submitted(*call.stream);
  return {};
}

}  // namespace slate::daemon
