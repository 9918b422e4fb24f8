#include "daemon/engine/commands/code_commands.h"

#include <fmt/format.h>

#include <algorithm>

namespace slate::daemon {

using ipc::CommandType;

namespace {

/// The most of an ipc::LimitRaise, by its number: a thread's stack, as the driver has it, and what
/// any session may raise a device::Limit to, which is everybody's.
constexpr std::uint64_t kMostOfLimit[] = {512 << 10, std::uint64_t{4} << 30, 256 << 10};

std::string name_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

CodeCommands::CodeCommands(const PartContext& context, Compiler& compiler, MemoryCommands& memory,
                           const HostMemoryCommands& host, std::shared_ptr<ImageStore> images,
                           std::shared_ptr<MemoryLedger::Account> account)
    : context_(context),
      memory_(memory),
      account_(std::move(account)),
      modules_(
          context.device, compiler, context.executor.form_maker(), context.session,
          [&host](device::Address address, std::uint64_t bytes) {
            return host.blocks().owns(address, bytes);
          },
          images ? std::move(images) : std::make_shared<ImageStore>(0),
          {.uid = context.uid, .is_over = context.is_over}, &context.fence) {}

void CodeCommands::start() {
  modules_.ask_before_unfenced(context_.leaves_first);
  if (context_.book) {
    modules_.report([book = context_.book](
                        std::uint64_t id, std::uint32_t kind, std::span<const std::byte> image,
                        std::string_view source, device::Address home, std::uint64_t variables) {
      book->image(id, kind, image, source, home, variables);
    });
  }
  // With a swap a launch would have to say which variables it needs on the device.
  if (memory_.backing() == nullptr) {
    modules_.give_homes({.take =
                             [this](std::uint64_t bytes) {
                               return memory_.with_room(
                                   [&] { return memory_.manager().allocate(bytes); });
                             },
                         .give_back = [this](device::Address home) { give_back(home); }});
  }
  modules_.load_by(
      [this](const ModuleStore::Attempt& attempt) { (void)memory_.with_device_room(attempt); });
  modules_.loaded().charge_to(
      memory_.manager(),
      [this](std::uint64_t bytes) {
        return memory_.with_room([&] { return memory_.manager().charge(bytes); });
      },
      account_);
}

Result<void> CodeCommands::on(const Call<CommandType::kModuleLoad>& call) {
  const std::uint64_t module = call.body.module;
  if (lost_uploads_.contains(module)) return pass_over(call);
  const auto done = modules_.add_chunk(call.body, call.tail);
  if (modules_.has_put_off()) return done;
  if (context_.book && !done) context_.book->upload_gone(module);
  if (context_.book && done && call.body.offset == 0) context_.book->upload(module);
  return context_.checked(done);
}

/// The book keeps the upload: until the client has sent all again, it may get lost again.
Result<void> CodeCommands::pass_over(const Call<CommandType::kModuleLoad>& chunk) {
  const ipc::ModuleLoad& load = chunk.body;
  if (load.image_kind == ipc::kImageSource || load.offset + chunk.tail.size() < load.total_bytes)
    return {};
  lost_uploads_.erase(load.module);
  chunk.reply.set(ipc::OfferReply{0, 0});
  return {};
}

Result<void> CodeCommands::on(const Call<CommandType::kModuleOffer>& call) {
  const auto known = modules_.offer(call.body);
  if (!known) return context_.checked(std::unexpected(known.error()));
  call.reply.set(ipc::OfferReply{*known ? 1u : 0u, 0});
  return {};
}

Result<void> CodeCommands::on(const Call<CommandType::kModuleUnload>& call) {
  auto unused = modules_.forget(call.body.id);
  if (!unused) return std::unexpected(unused.error());
  // A program that has freed it harms itself alone.
  const bool has_home = unused->home != 0 && memory_.manager().retire(unused->home).has_value();
  return context_.take_away(
      [this, modules = unused->modules] {
        for (const device::Module module : modules) context_.fence.remove_variables(module);
      },
      [this, forgotten = *unused, has_home] {
        for (const device::Module module : forgotten.modules) modules_.loaded().unload_now(module);
        if (has_home) memory_.manager().finish_free(forgotten.home);
      });
}

/// Of a module that was not loaded.
void CodeCommands::give_back(device::Address home) {
  if (memory_.manager().retire(home)) memory_.manager().finish_free(home);
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
      .needs_cluster = info.needs_cluster ? 1u : 0u,
      .cluster = {info.cluster[0], info.cluster[1], info.cluster[2]},
      .non_portable_clusters = info.non_portable_clusters ? 1u : 0u,
      .cluster_scheduling = info.cluster_scheduling,
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

/// Allowances are never taken back: launches that wait were accepted with them. The client keeps to
/// what was set last. Forms have no use for any but shared memory, which their launches see to.
Result<void> CodeCommands::on(const Call<CommandType::kFunctionSet>& call) {
  const auto record = modules_.find_function(call.body.function);
  if (!record) return std::unexpected(record.error());
  device::FunctionInfo& info = (*record)->info;
  const std::int32_t value = call.body.value;
  const auto set = [&] {
    const device::Function function = (*record)->function;
    const FunctionAttribute attribute = call.body.attribute;
    return context_.checked((*record)->shared
                                ? (*record)->shared->set_attribute(function, attribute, value)
                                : context_.device.set_attribute(function, attribute, value));
  };
  switch (call.body.attribute) {
    case FunctionAttribute::kMaxDynamicShared: {
      if (value < 0) break;
      const auto bytes = static_cast<std::uint32_t>(value);
      if (bytes <= info.max_dynamic_shared_bytes) return {};
      const auto done = set();
      if (done) info.max_dynamic_shared_bytes = bytes;
      return done;
    }
    case FunctionAttribute::kNonPortableClusters: {
      if (value == 0 || info.non_portable_clusters) return {};
      const auto done = set();
      if (done) info.non_portable_clusters = true;
      return done;
    }
    case FunctionAttribute::kCarveout:
      if (value < -1 || value > 100) break;
      return set();
    case FunctionAttribute::kClusterScheduling:
      if (value < 0 || value > 2) break;
      return set();
    case FunctionAttribute::kClusterWidth:
    case FunctionAttribute::kClusterHeight:
    case FunctionAttribute::kClusterDepth:
      break;
  }
  return slate::fail(ErrorCode::kInvalidValue,
                     fmt::format("attribute {} of a kernel set to {}",
                                 static_cast<std::uint32_t>(call.body.attribute), value));
}

Result<void> CodeCommands::on(const Call<CommandType::kLimitRaise>& call) {
  if (call.body.limit >= std::size(kMostOfLimit) ||
      call.body.value > kMostOfLimit[call.body.limit]) {
    return slate::fail(ErrorCode::kInvalidValue,
                       fmt::format("limit {} of {}", call.body.limit, call.body.value));
  }
  if (call.body.limit == 0) return context_.checked(memory_.need_local(call.body.value));
  return context_.checked(context_.device.raise_limit(
      static_cast<device::Limit>(call.body.limit - 1), call.body.value));
}

/// The address is only written into the map: kernels could make such a one themselves.
Result<void> CodeCommands::on(const Call<CommandType::kTensorMapEncode>& call) {
  const auto map = context_.device.encode_tensor_map(call.body);
  if (!map) return context_.checked(std::unexpected(map.error()));
  call.reply.set(*map);
  return {};
}

Result<void> CodeCommands::on(const Call<CommandType::kGlobalGet>& call) {
  const auto range = modules_.find_global(call.body.module, name_of(call.tail));
  if (!range) return std::unexpected(range.error());
  call.reply.set(ipc::GlobalReply{range->base, range->bytes});
  return {};
}

}  // namespace slate::daemon
