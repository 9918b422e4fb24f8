// Launches: checked here, started by the executor when the scheduler's policy says so.
#include <fmt/format.h>

#include "daemon/engine/session.h"

namespace slate::daemon {

using ipc::CommandType;

Result<void> Session::on(const Call<CommandType::kLaunch>& call) {
  if (call.body.parameter_bytes != call.tail.size()) {
    return slate::fail(ErrorCode::kProtocol, "a launch without its parameters");
  }
  const auto function = modules_.find_function(call.body.function);
  if (!function) return std::unexpected(function.error());
  FunctionRecord& kernel = **function;
  if (call.body.parameter_bytes != kernel.parameter_bytes) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("{} takes {} bytes of parameters, got {}", *kernel.name,
                                   kernel.parameter_bytes, call.body.parameter_bytes));
  }
  const device::Dim3 grid{call.body.grid[0], call.body.grid[1], call.body.grid[2]};
  const device::Dim3 block{call.body.block[0], call.body.block[1], call.body.block[2]};
  // The shortest way out; the other limits are the device's to check.
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    return slate::fail(ErrorCode::kInvalidConfiguration, "a grid or block without threads");
  }
  if ((call.body.flags & ~ipc::kLaunchCooperative) != 0)
    return slate::fail(ErrorCode::kProtocol, "a launch with flags that there are not");
  if (kernel.form_progress != FormProgress::kSettled) modules_.attend(kernel);
  const device::LaunchSpec spec{
      .function = kernel.function,
      .grid = grid,
      .block = block,
      .dynamic_shared_bytes = call.body.dynamic_shared_bytes,
      .parameters = call.tail,
      .arena = memory_->arena(),
      .cooperative = (call.body.flags & ipc::kLaunchCooperative) != 0,
      .cluster = {call.body.cluster[0], call.body.cluster[1], call.body.cluster[2]},
      .host = imports_.with(host_blocks_.ranges()),
  };
  const auto done = checked(executor_.launch(*client_, kernel, spec, *call.stream));
  // What is known of its time from earlier programs is known here by now.
  if (kernel.form_progress == FormProgress::kWatched) modules_.order_forms(kernel);
  if (done && call.stream->active_lanes.load() > 0) {
    const Hold& hold = in_lanes_.emplace_back(call.body.stream, streams_.position());
    held_.hold(hold.stream, hold.position);
  }
  return done;
}

Result<void> Session::on(const Call<CommandType::kClusterQuery>& call) {
  const auto function = modules_.find_function(call.body.function);
  if (!function) return std::unexpected(function.error());
  device::LaunchSpec spec;
  spec.function = (*function)->function;
  spec.grid = {call.body.grid[0], call.body.grid[1], call.body.grid[2]};
  spec.block = {call.body.block[0], call.body.block[1], call.body.block[2]};
  spec.cluster = {call.body.cluster[0], call.body.cluster[1], call.body.cluster[2]};
  spec.dynamic_shared_bytes = call.body.dynamic_shared_bytes;
  const auto value =
      call.body.largest != 0 ? device_.max_cluster_size(spec) : device_.max_active_clusters(spec);
  if (!value) return checked(std::unexpected(value.error()));
  call.reply.set(ipc::ClusterReply{*value, 0});
  return {};
}

}  // namespace slate::daemon
