#include "daemon/engine/commands/code_commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::daemon {

using ipc::CommandType;

namespace {

/// What any session may raise a device::Limit to: a thread's stack, as the driver has it, and what
/// one session may take of what is everybody's.
constexpr std::uint64_t kMostOfLimit[] = {512 << 10, std::uint64_t{4} << 30, 256 << 10};

std::string name_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

CodeCommands::CodeCommands(const PartContext& context, Compiler& compiler, MemoryCommands& memory,
                           const HostMemoryCommands& host)
    : context_(context),
      memory_(memory),
      modules_(context.device, compiler, context.executor.form_maker(), context.session,
               [&host](device::Address address, std::uint64_t bytes) {
                 return host.blocks().owns(address, bytes);
               }) {}

void CodeCommands::start() {
  modules_.loaded().charge_to(memory_.manager(), [this](std::uint64_t bytes) {
    return memory_.with_room([&] { return memory_.manager().charge(bytes); });
  });
}

Result<void> CodeCommands::on(const Call<CommandType::kModuleLoad>& call) {
  return context_.checked(modules_.add_chunk(call.body, call.tail));
}

Result<void> CodeCommands::on(const Call<CommandType::kModuleUnload>& call) {
  auto unused = modules_.forget(call.body.id);
  if (!unused) return std::unexpected(unused.error());
  return context_.checked(
      context_.retirement.after_present_work([this, modules = std::move(*unused)] {
        for (const device::Module module : modules) modules_.loaded().unload_now(module);
      }));
}

Result<void> CodeCommands::on(const Call<CommandType::kVariablePlace>& call) {
  return modules_.place(call.body.module, name_of(call.tail), call.body.address);
}

Result<void> CodeCommands::on(const Call<CommandType::kFunctionGet>& call) {
  const auto record =
      modules_.add_function(call.body.module, call.body.function, name_of(call.tail));
  if (!record) return std::unexpected(record.error());
  const device::FunctionInfo& info = (*record)->info;
  call.reply.set(ipc::FunctionReply{
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

Result<void> CodeCommands::on(const Call<CommandType::kFunctionParameters>& call) {
  const auto record = modules_.find_function(call.body.function);
  if (!record) return std::unexpected(record.error());
  const auto& parameters = (*record)->info.parameters;
  if (call.body.first > parameters.size()) {
    return slate::fail(ErrorCode::kInvalidValue, fmt::format("no parameter {}", call.body.first));
  }
  ipc::ParameterReply answer{};
  answer.count = static_cast<std::uint32_t>(
      std::min<std::size_t>(parameters.size() - call.body.first, ipc::ParameterReply::kMost));
  for (std::uint32_t i = 0; i < answer.count; ++i) {
    const auto& parameter = parameters[call.body.first + i];
    answer.parameters[i].offset = parameter.offset;
    answer.parameters[i].size = parameter.size;
  }
  call.reply.set(answer);
  return {};
}

Result<void> CodeCommands::on(const Call<CommandType::kFunctionSetShared>& call) {
  const auto record = modules_.find_function(call.body.function);
  if (!record) return std::unexpected(record.error());
  // Never lower: launches that wait were accepted with more. The client keeps to what was set last.
  if (call.body.bytes <= (*record)->info.max_dynamic_shared_bytes) return {};
  const auto done = context_.checked(
      context_.device.set_max_dynamic_shared((*record)->function, call.body.bytes));
  if (done) (*record)->info.max_dynamic_shared_bytes = call.body.bytes;
  return done;
}

Result<void> CodeCommands::on(const Call<CommandType::kLimitRaise>& call) {
  if (call.body.limit >= std::size(kMostOfLimit) ||
      call.body.value > kMostOfLimit[call.body.limit]) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("limit {} of {}", call.body.limit, call.body.value));
  }
  return context_.checked(
      context_.device.raise_limit(static_cast<device::Limit>(call.body.limit), call.body.value));
}

Result<void> CodeCommands::on(const Call<CommandType::kGlobalGet>& call) {
  const auto range = modules_.find_global(call.body.module, name_of(call.tail));
  if (!range) return std::unexpected(range.error());
  call.reply.set(ipc::GlobalReply{range->base, range->bytes});
  return {};
}

}  // namespace slate::daemon
