// Commands on modules, functions and global variables.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/engine/session.h"

namespace slate::daemon {
namespace {

/// What any session may raise a device::Limit to: a thread's stack, as the driver has it, and what
/// one session may take of what is everybody's.
constexpr std::uint64_t kMostOfLimit[] = {512 << 10, std::uint64_t{4} << 30, 256 << 10};

std::string name_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<void> Session::module_load(const ipc::Command& command, Reply&) {
  std::span<const std::byte> bytes;
  const auto chunk = command.as<ipc::ModuleLoad>(&bytes);
  if (!chunk) return std::unexpected(chunk.error());
  return checked(modules_.add_chunk(*chunk, bytes));
}

Result<void> Session::module_unload(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::IdCommand>();
  if (!request) return std::unexpected(request.error());
  auto unused = modules_.forget(request->id);
  if (!unused) return std::unexpected(unused.error());
  return checked(retirement_.after_present_work([this, modules = std::move(*unused)] {
    for (const device::Module module : modules) modules_.loaded().unload_now(module);
  }));
}

Result<void> Session::variable_place(const ipc::Command& command, Reply&) {
  std::span<const std::byte> name;
  const auto request = command.as<ipc::VariablePlace>(&name);
  if (!request) return std::unexpected(request.error());
  return modules_.place(request->module, name_of(name), request->address);
}

Result<void> Session::function_get(const ipc::Command& command, Reply& reply) {
  std::span<const std::byte> name;
  const auto request = command.as<ipc::FunctionGet>(&name);
  if (!request) return std::unexpected(request.error());
  const auto record = modules_.add_function(request->module, request->function, name_of(name));
  if (!record) return std::unexpected(record.error());
  const device::FunctionInfo& info = (*record)->info;
  reply.set(ipc::FunctionReply{
      .max_threads_per_block = info.max_threads_per_block,
      .static_shared_bytes = info.static_shared_bytes,
      .max_dynamic_shared_bytes = info.max_dynamic_shared_bytes,
      .constant_bytes = info.constant_bytes,
      .local_bytes = info.local_bytes,
      .registers = info.registers,
      .ptx_version = info.ptx_version,
      .binary_version = info.binary_version,
      .parameter_count = static_cast<std::uint32_t>(info.parameters.size()),
      .parameter_bytes = (*record)->parameter_bytes,
  });
  return {};
}

Result<void> Session::function_parameters(const ipc::Command& command, Reply& reply) {
  const auto request = command.as<ipc::FunctionParameters>();
  if (!request) return std::unexpected(request.error());
  const auto record = modules_.find_function(request->function);
  if (!record) return std::unexpected(record.error());
  const auto& parameters = (*record)->info.parameters;
  if (request->first > parameters.size()) {
    return slate::fail(ErrorCode::kInvalidValue, fmt::format("no parameter {}", request->first));
  }
  ipc::ParameterReply answer{};
  answer.count = static_cast<std::uint32_t>(
      std::min<std::size_t>(parameters.size() - request->first, ipc::ParameterReply::kMost));
  for (std::uint32_t i = 0; i < answer.count; ++i) {
    const auto& parameter = parameters[request->first + i];
    answer.parameters[i].offset = parameter.offset;
    answer.parameters[i].size = parameter.size;
  }
  reply.set(answer);
  return {};
}

Result<void> Session::function_set_shared(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::FunctionSetShared>();
  if (!request) return std::unexpected(request.error());
  const auto record = modules_.find_function(request->function);
  if (!record) return std::unexpected(record.error());
  // Never lower: launches that wait were accepted with more. The client keeps to what was set last.
  if (request->bytes <= (*record)->info.max_dynamic_shared_bytes) return {};
  const auto done = checked(device_.set_max_dynamic_shared((*record)->function, request->bytes));
  if (done) (*record)->info.max_dynamic_shared_bytes = request->bytes;
  return done;
}

Result<void> Session::limit_raise(const ipc::Command& command, Reply&) {
  const auto request = command.as<ipc::LimitRaise>();
  if (!request) return std::unexpected(request.error());
  if (request->limit >= std::size(kMostOfLimit) || request->value > kMostOfLimit[request->limit]) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("limit {} of {}", request->limit, request->value));
  }
  return checked(device_.raise_limit(static_cast<device::Limit>(request->limit), request->value));
}

Result<void> Session::global_get(const ipc::Command& command, Reply& reply) {
  std::span<const std::byte> name;
  const auto request = command.as<ipc::GlobalGet>(&name);
  if (!request) return std::unexpected(request.error());
  const auto range = modules_.find_global(request->module, name_of(name));
  if (!range) return std::unexpected(range.error());
  reply.set(ipc::GlobalReply{range->base, range->bytes});
  return {};
}

}  // namespace slate::daemon
