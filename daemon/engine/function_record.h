// FunctionRecord: a kernel of one session as the engine has it: its code, its forms, and what is
// known of its launches. Plain data. Thread: the session's; launches read it on the executor's,
// too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/engine/bounded_copy.h"
#include "daemon/engine/form_maker.h"
#include "daemon/engine/image_store.h"
#include "device/device.h"

namespace slate::daemon {

/// A rewritten form of a kernel on the device.
struct FormFunction {
  bool looked_up = false;
  device::Function function{};               // 0: not possible
  std::optional<device::Function> dispatch;  // 0: none; nothing: not looked up
  std::uint32_t parameter_offset = 0;
  std::uint32_t static_shared_bytes = 0, max_dynamic_shared_bytes = 0;
};

/// The number of blocks of a shape that fit on an SM.
struct RoomRecord {
  device::Function function{};
  std::uint64_t threads = 0;
  std::uint32_t shared = 0;
  std::uint32_t blocks = 0;
};

/// A shape of blocks for which the worker form had no room.
struct WorkerRefusal {
  std::uint64_t threads = 0;
  std::uint32_t shared = 0;
  bool operator==(const WorkerRefusal&) const = default;
};

/// The profile row of a kernel's block shape and size of grid.
struct ProfileRecord {
  device::Dim3 block;
  std::uint32_t grid_bucket = 0;
  std::uint32_t kernel = 0;                // scheduler::KernelId
  std::uint64_t repeats_at = 0;            // as LaunchBatch::repeats_at, for a short kernel
  bool shows_forms = false;                // whether the row shows which forms there are
  double expected_ms = 0, alone_ms = 0;    // times of a repeated launch; see LaunchBatch
  bool ahead = false, shares_sms = false;  // placement of a repeated launch; see LaunchTarget
};

/// The state of a kernel's forms.
enum class FormProgress : std::uint8_t {
  kNew,      // not launched yet
  kWatched,  // launched; it is not known whether it matters
  kOrdered,  // its forms are being made
  kSettled,  // its forms are there, or never will be
};

struct FunctionRecord {
  device::Function function{};
  device::FunctionInfo info;
  std::uint32_t parameter_bytes = 0;  // bytes of the whole parameter block
  std::shared_ptr<const std::string> name;
  std::uint64_t module = 0;
  std::shared_ptr<SharedModule> shared;  // what `function` is of; null: a module of the session's
  FormProgress form_progress = FormProgress::kSettled;
  std::uint64_t launches = 0;                         // launches before its forms were ordered
  std::shared_ptr<FormMaker::Order> form_order;       // the order while kOrdered
  FormMaker::Outcome made;                            // null: nothing was made
  device::Module form_module{};                       // module of the forms; 0: none
  bool is_fenced = false;                             // whether `function` and the forms are
  std::vector<std::shared_ptr<BoundedCopy>> bounded;  // of a fenced kernel; used last first
  bool may_write_constants = true;                    // as Reach::may_write_constants()
  /// Launches that have been asked about, up to the one at which the text is read for the answer.
  std::uint32_t unread_launches = 0;
  /// The bank of the kernel's module, which its launches need filled; null: it has none.
  std::shared_ptr<OwnConstantSet> bank;
  const injector::KernelForms* forms = nullptr;  // forms of `made`; null: none
  FormFunction worker, compact_worker, slice, profile;
  bool reason_told = false;  // whether the log says why the chosen form is not possible
  std::uint64_t code = 0;    // hash of the module's text
  std::vector<RoomRecord> rooms;
  std::vector<WorkerRefusal> refusals;
  std::vector<ProfileRecord> profiles;
  std::optional<std::uint32_t> trace_name;
};

/// Bytes of a kernel's whole parameter block.
std::uint32_t parameter_bytes_of(const device::FunctionInfo& info);

}  // namespace slate::daemon
