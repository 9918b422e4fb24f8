#include "daemon/engine/commands/launch_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace slate::daemon {

using ipc::CommandType;

void LaunchCommands::release_ended() {
  std::erase_if(holds_, [this](const Hold& hold) {
    const auto stream = context_.streams.find(hold.stream);
    if (stream && (*stream)->active_lanes.load() > 0) return false;
    context_.held.release(hold.stream, hold.position);
    return true;
  });
}

Result<void> LaunchCommands::on(const Call<CommandType::kLaunch>& call) {
  bare_turn_.store(context_.streams.position(), std::memory_order_release);
  const auto done = launch(call);
  bare_turn_.store(0, std::memory_order_release);
  return done;
}

Result<void> LaunchCommands::launch(const Call<CommandType::kLaunch>& call) {
  if (call.body.parameter_bytes != call.tail.size()) {
    return fail(ErrorCode::kProtocol, "a launch without its parameters");
  }
  auto function = code_.modules().find_function(call.body.function);
  if (!function) return std::unexpected(function.error());
  const device::Function own = (*function)->function;
  if (context_.fence.is_on()) {
    bare_turn_.store(0, std::memory_order_release);
    function = fenced(call, **function);
    if (!function) return context_.checked(std::unexpected(function.error()));
  }
  FunctionRecord& kernel = **function;
  if (call.body.parameter_bytes != kernel.parameter_bytes) {
    return fail(ErrorCode::kInvalidValue,
                fmt::format("{} takes {} bytes of parameters, got {}", *kernel.name,
                            kernel.parameter_bytes, call.body.parameter_bytes));
  }
  const device::Dim3 grid{call.body.grid[0], call.body.grid[1], call.body.grid[2]};
  const device::Dim3 block{call.body.block[0], call.body.block[1], call.body.block[2]};
  // The shortest way out; the other limits are the device's to check.
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    return fail(ErrorCode::kInvalidConfiguration, "a grid or block without threads");
  }
  if ((call.body.flags & ~ipc::kLaunchFlags) != 0)
    return fail(ErrorCode::kProtocol, "a launch with flags that there are not");
  if (const auto room = memory_.need_local(kernel.info.local_bytes); !room)
    return context_.checked(room);
  if (kernel.form_progress != FormProgress::kSettled) code_.modules().attend(kernel);
  const auto host = mapped_.ranges().with(sharing_.imports().with(host_.blocks().ranges()));
  if (kernel.is_fenced) {
    const auto is_idle = [this] { return context_.streams.unfinished(nullptr).empty(); };
    const auto done = context_.fence.bring_up_to_date(memory_.manager(), host, is_idle);
    if (!done) return context_.checked(done);
    if (const auto move = context_.fence.take_move()) {
      const auto ordered = context_.retirement.after_present_work(
          [&fence = context_.fence, move] { fence.move_was_seen(*move); });
      if (!ordered) return context_.checked(ordered);
    }
  }
  const auto code = code_for(call, kernel);
  if (!code) return context_.checked(std::unexpected(code.error()));
  // Behind what is filled in front of the launch.
  context_.fence.constants().note_launch(
      call.tail, [&] { return code_.modules().may_write_constants(kernel); });
  const device::LaunchSpec spec{
      .function = code->function,
      .grid = grid,
      .block = block,
      .dynamic_shared_bytes = call.body.dynamic_shared_bytes,
      .parameters = code->parameters,
      .arena = memory_.manager().arena(),
      .cooperative = (call.body.flags & ipc::kLaunchCooperative) != 0,
      .overlaps = (call.body.flags & ipc::kLaunchOverlaps) != 0,
      .cluster = {call.body.cluster[0], call.body.cluster[1], call.body.cluster[2]},
      .variables_of = kernel.is_fenced ? own : device::Function{},
      .host = host,
      .fence_table = context_.fence.table(),
      .fence_record = context_.fence.record(),
  };
  if (!kernel.is_fenced) call.stream->expect_unfenced();
  const auto done =
      context_.checked(context_.executor.launch(context_.client, kernel, spec, *call.stream));
  // What is known of its time from earlier programs is known here by now.
  if (kernel.form_progress == FormProgress::kWatched) code_.modules().order_forms(kernel);
  if (done && call.stream->active_lanes.load() > 0) {
    const Hold& hold = holds_.emplace_back(call.body.stream, context_.streams.position());
    context_.held.hold(hold.stream, hold.position);
  }
  return done;
}

injector::LaunchValues LaunchCommands::values_of(const Call<CommandType::kLaunch>& call,
                                                 device::AddressRange extent) {
  injector::LaunchValues launch{.parameters = call.tail,
                                .shared_bytes = call.body.dynamic_shared_bytes,
                                .low = extent.base,
                                .bytes = extent.bytes};
  std::ranges::copy(call.body.grid, launch.grid);
  std::ranges::copy(call.body.block, launch.block);
  return launch;
}

/// What a kernel runs as natively: behind the fence a bounded copy where the launch keeps to one's
/// bounds.
Result<LaunchCommands::Code> LaunchCommands::code_for(const Call<CommandType::kLaunch>& call,
                                                      FunctionRecord& kernel) {
  const Code plain{.function = kernel.function, .parameters = call.tail};
  if (!kernel.is_fenced) {
    const auto filled = fill_bank(kernel, *call.stream);
    return filled ? Result<Code>(plain) : std::unexpected(filled.error());
  }
  const injector::LaunchValues launch = values_of(call, context_.fence.main_extent());
  const auto copy = bounded_copy_for(call, kernel, launch);
  if (!copy) return std::unexpected(copy.error());
  context_.fence.count_launch(*copy != nullptr);
  if (*copy == nullptr) return plain;
  return Code{.function = (*copy)->function(), .parameters = (*copy)->parameters(launch)};
}

/// Makes the constants that the kernel reads from its bank the program's for the next launch on
/// `stream`.
Result<void> LaunchCommands::fill_bank(const FunctionRecord& kernel, LogicalStream& stream) const {
  OwnConstantSet* const bank = kernel.bank.get();
  if (bank == nullptr || bank->is_current(stream)) return {};
  return fill(*bank, stream,
              bank->filled_on == nullptr && context_.streams.others_are_idle(stream));
}

/// Null: none serves the launch.
Result<BoundedCopy*> LaunchCommands::bounded_copy_for(const Call<CommandType::kLaunch>& call,
                                                      FunctionRecord& kernel,
                                                      const injector::LaunchValues& launch) {
  const auto serving = [&] {
    return std::ranges::find_if(kernel.bounded,
                                [&](const auto& each) { return each->serves(launch); });
  };
  auto found = serving();
  if (found == kernel.bounded.end()) {
    code_.modules().attend_unserved(call.body.function, kernel, launch);
    found = serving();
    if (found == kernel.bounded.end()) return nullptr;
  }
  std::rotate(kernel.bounded.begin(), found, found + 1);
  BoundedCopy& copy = *kernel.bounded.front();
  if (OwnConstantSet* const constants = copy.constants()) {
    const auto are_current = bring_up_to_date(*constants, *call.stream);
    if (!are_current) return std::unexpected(are_current.error());
    if (!*are_current) return nullptr;
  }
  return &copy;
}

/// Whether the constants are the program's for the next launch on `stream`. If need be they are
/// filled in front of it, unless another stream's work may still write the program's or read these.
Result<bool> LaunchCommands::bring_up_to_date(OwnConstantSet& constants,
                                              LogicalStream& stream) const {
  if (constants.filled_on != nullptr) return constants.is_current(stream);
  if (!context_.streams.others_are_idle(stream)) return false;
  if (const auto filled = fill(constants, stream, true); !filled)
    return std::unexpected(filled.error());
  return true;
}

/// Fills the constants behind all that was given to `stream`. `lasts`: whether they count as
/// current until something is written. Beside other streams' work they do not, as it may still
/// write the program's.
Result<void> LaunchCommands::fill(OwnConstantSet& constants, LogicalStream& stream,
                                  bool lasts) const {
  StreamTable& streams = context_.streams;
  const auto target = streams.begin_work(stream);
  if (!target) return std::unexpected(target.error());
  for (const auto& [program, own] : constants.pairs) {
    const auto fill = [&] {
      return context_.device.copy(Place::on_device(own), Place::on_device(program.base),
                                  {program.bytes}, *target);
    };
    const auto done = context_.executor.let_through(context_.client, *target, std::cref(fill));
    if (!done) return std::unexpected(done.error());
  }
  streams.piece_submitted(stream);
  if (!lasts) return {};
  constants.filled_on = stream.shared_from_this();
  constants.filled_at = stream.submitted.load();
  return {};
}

/// The kernel behind the fence; itself if it cannot be fenced and may run all the same. Blocks of a
/// cooperative launch meet in memory of the driver's, and clusters reach each other's: both are
/// without a fence.
Result<FunctionRecord*> LaunchCommands::fenced(const Call<CommandType::kLaunch>& call,
                                               FunctionRecord& kernel) {
  const auto* const cluster = call.body.cluster;
  const bool can_be = (call.body.flags & ipc::kLaunchCooperative) == 0 &&
                      std::uint64_t{cluster[0]} * cluster[1] * cluster[2] <= 1 &&
                      !kernel.info.has_clusters;
  const auto launch = [this, &call] {
    return values_of(call, context_.fence.likely_extent(memory_.manager()));
  };
  const auto fenced = can_be ? code_.modules().fenced(call.body.function, kernel, launch)
                             : Result<FunctionRecord*>(nullptr);
  if (!fenced || *fenced != nullptr) return fenced;
  if (context_.fence.lets_unfenced_run()) return &kernel;
  const std::string why = can_be ? code_.modules().why_unfenced(call.body.function)
                                 : "it is launched in clusters, or cooperatively";
  return fail(ErrorCode::kNotSupported,
              fmt::format("{} may not run beside other users' programs, as it has no fence: {}",
                          *kernel.name, why));
}

Result<void> LaunchCommands::on(const Call<CommandType::kClusterQuery>& call) {
  const auto function = code_.modules().find_function(call.body.function);
  if (!function) return std::unexpected(function.error());
  device::LaunchSpec spec;
  spec.function = (*function)->function;
  spec.grid = {call.body.grid[0], call.body.grid[1], call.body.grid[2]};
  spec.block = {call.body.block[0], call.body.block[1], call.body.block[2]};
  spec.cluster = {call.body.cluster[0], call.body.cluster[1], call.body.cluster[2]};
  spec.dynamic_shared_bytes = call.body.dynamic_shared_bytes;
  const auto value = call.body.largest != 0 ? context_.device.max_cluster_size(spec)
                                            : context_.device.max_active_clusters(spec);
  if (!value) return context_.checked(std::unexpected(value.error()));
  call.reply.set(ipc::ClusterReply{*value, 0});
  return {};
}

}  // namespace slate::daemon
