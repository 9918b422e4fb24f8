// Launches: checked here, started by the executor when the scheduler's policy says so.
#include <fmt/format.h>

#include "daemon/engine/session.h"

namespace slate::daemon {

Result<void> Session::launch(const ipc::Command& command, Reply&) {
  std::span<const std::byte> parameters;
  const auto request = command.as<ipc::Launch>(&parameters);
  if (!request) return std::unexpected(request.error());
  if (request->parameter_bytes != parameters.size()) {
    return slate::fail(ErrorCode::kProtocol, "a launch without its parameters");
  }
  const auto function = modules_.find_function(request->function);
  if (!function) return std::unexpected(function.error());
  FunctionRecord& kernel = **function;
  if (request->parameter_bytes != kernel.parameter_bytes) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("{} takes {} bytes of parameters, got {}", *kernel.name,
                                   kernel.parameter_bytes, request->parameter_bytes));
  }
  const device::Dim3 grid{request->grid[0], request->grid[1], request->grid[2]};
  const device::Dim3 block{request->block[0], request->block[1], request->block[2]};
  // The shortest way out; the other limits are the device's to check.
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0) {
    return slate::fail(ErrorCode::kInvalidConfiguration, "a grid or block without threads");
  }
  if ((request->flags & ~ipc::kLaunchCooperative) != 0)
    return slate::fail(ErrorCode::kProtocol, "a launch with flags that there are not");
  const auto stream = streams_.find(request->stream);
  if (!stream) return std::unexpected(stream.error());
  if (kernel.form_progress != FormProgress::kSettled) modules_.attend(kernel);
  const device::LaunchSpec spec{
      .function = kernel.function,
      .grid = grid,
      .block = block,
      .dynamic_shared_bytes = request->dynamic_shared_bytes,
      .parameters = parameters,
      .arena = memory_->arena(),
      .cooperative = (request->flags & ipc::kLaunchCooperative) != 0,
      .cluster = {request->cluster[0], request->cluster[1], request->cluster[2]},
      .host = imports_.with(host_blocks_.ranges()),
  };
  const auto done = checked(executor_.launch(*client_, kernel, spec, **stream));
  // What is known of its time from earlier programs is known here by now.
  if (kernel.form_progress == FormProgress::kWatched) modules_.order_forms(kernel);
  if (done && (*stream)->active_lanes.load() > 0) {
    const Hold& hold = in_lanes_.emplace_back(request->stream, streams_.position());
    held_.hold(hold.stream, hold.position);
  }
  return done;
}

Result<void> Session::cluster_query(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::ClusterQuery>();
  if (!request) return std::unexpected(request.error());
  const auto function = modules_.find_function(request->function);
  if (!function) return std::unexpected(function.error());
  device::LaunchSpec spec;
  spec.function = (*function)->function;
  spec.grid = {request->grid[0], request->grid[1], request->grid[2]};
  spec.block = {request->block[0], request->block[1], request->block[2]};
  spec.cluster = {request->cluster[0], request->cluster[1], request->cluster[2]};
  spec.dynamic_shared_bytes = request->dynamic_shared_bytes;
  const auto value =
      request->largest != 0 ? device_.max_cluster_size(spec) : device_.max_active_clusters(spec);
  if (!value) return checked(std::unexpected(value.error()));
  reply.set(ipc::ClusterReply{*value, 0});
  return {};
}

}  // namespace slate::daemon
