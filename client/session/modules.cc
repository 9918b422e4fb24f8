#include "client/session/modules.h"

#include <algorithm>

#include "base/digest.h"
#include "client/session/say.h"
#include "client/session/session.h"
#include "injector/link/builtins.h"

namespace slate::client {
namespace {

using ipc::CommandType;

constexpr std::size_t kModuleChunkBytes = 48 << 10;
constexpr std::size_t kMostSourceBytes = 96 << 20;  // beside the module itself
static_assert(sizeof(ipc::CommandHeader) + sizeof(ipc::ModuleLoad) + kModuleChunkBytes <=
              ipc::kMaxCommandBytes);

}  // namespace

Result<std::uint64_t> Modules::load(const Image& image, std::span<const PlacedVariable> placed) {
  const std::string_view text(reinterpret_cast<const char*>(image.bytes.data()),
                              image.bytes.size());
  if (image.kind != ImageKind::kPtx) session_.heap().raise_drivers(image.bytes);
  auto module = image.kind == ImageKind::kPtx ? load_text(image, placed)
                                              : send(image.kind, image.bytes, placed);
  // What machine code does nobody has looked at.
  const bool atomics = image.kind != ImageKind::kPtx || has_system_atomics(text);
  if (module && atomics && needs_managed_guard(session_.device()))
    session_.host_memory().guard().add_module(*module);
  return module;
}

Result<std::uint64_t> Modules::load_text(const Image& image,
                                         std::span<const PlacedVariable> placed) {
  const auto linked =
      ptx::with_builtins({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
  if (!linked) {
    // Placed variables are in the text only.
    const bool as_code = placed.empty() && !image.code.empty();
    return as_code ? send(ImageKind::kElf, image.code, {}, image.bytes)
                   : send(ImageKind::kPtx, image.bytes, placed);
  }
  if (linked->allocates) {
    if (auto ready = session_.heap().need(); !ready) return std::unexpected(ready.error());
  }
  const auto module = send(ImageKind::kPtx, std::as_bytes(std::span(linked->text)), placed);
  if (!module) return module;
  if (linked->prints) {
    if (const auto ready = session_.printing().connect(*module); !ready) {
      say_once("kernels cannot print: " + ready.error().message);
    }
  }
  if (linked->allocates) {
    if (auto ready = session_.heap().connect(*module); !ready) {
      (void)unload(*module);
      return std::unexpected(ready.error());
    }
  }
  return module;
}

Result<void> Modules::unload(std::uint64_t module) {
  session_.host_memory().guard().remove_module(module);
  session_.printing().disconnect(module);
  session_.heap().disconnect(module);
  return session_.wire().post(CommandType::kModuleUnload, ipc::IdCommand{module});
}

Result<std::uint64_t> Modules::send(ImageKind kind, std::span<const std::byte> bytes,
                                    std::span<const PlacedVariable> placed,
                                    std::span<const std::byte> source) {
  const std::uint64_t module = session_.wire().next_id();
  bool is_loaded = false;
  if (bytes.size() >= ipc::kLeastOffered && placed.empty() && source.empty()) {
    const auto known = offer(module, kind, bytes);
    if (!known) return std::unexpected(known.error());
    is_loaded = *known;
  }
  while (!is_loaded) {
    const auto sent = send_all(module, kind, bytes, placed, source);
    if (!sent) return std::unexpected(sent.error());
    is_loaded = *sent;
  }
  return module;
}

/// False: an engine has died that had a part of it, and the next one has to get all of it.
Result<bool> Modules::send_all(std::uint64_t module, ImageKind kind,
                               std::span<const std::byte> bytes,
                               std::span<const PlacedVariable> placed,
                               std::span<const std::byte> source) {
  ipc::ModuleLoad load{};
  load.module = module;
  if (!source.empty() && source.size() <= kMostSourceBytes) {
    load.image_kind = ipc::kImageSource;
    load.total_bytes = source.size();
    if (auto ok = post_chunks(load, source); !ok) return std::unexpected(ok.error());
  }
  for (const PlacedVariable& each : placed) {
    auto ok = session_.wire().channel().post(
        CommandType::kVariablePlace, ipc::bytes_of(ipc::VariablePlace{load.module, each.address}),
        std::as_bytes(std::span(each.name)));
    if (!ok) return std::unexpected(ok.error());
  }
  load.total_bytes = bytes.size();
  load.image_kind = static_cast<std::uint32_t>(kind);
  load.offset = 0;
  const std::size_t last = bytes.empty() ? 0 : (bytes.size() - 1) % kModuleChunkBytes + 1;
  if (auto ok = post_chunks(load, bytes.first(bytes.size() - last)); !ok)
    return std::unexpected(ok.error());
  ipc::OfferReply reply{};
  std::size_t reply_bytes = 0;
  auto ok = session_.wire().channel().call(
      CommandType::kModuleLoad, ipc::bytes_of(load), bytes.last(last),
      std::as_writable_bytes(std::span(&reply, 1)), &reply_bytes);
  if (!ok) return std::unexpected(ok.error());
  return reply_bytes == 0 || reply.known != 0;
}

/// Whether the daemon has the image already, and has loaded the module from it.
Result<bool> Modules::offer(std::uint64_t module, ImageKind kind,
                            std::span<const std::byte> bytes) {
  ipc::ModuleOffer offered{module, static_cast<std::uint32_t>(kind), 0, {}};
  const DigestBytes digest = digest_of(bytes);
  std::copy(digest.begin(), digest.end(), offered.digest);
  const auto reply = session_.wire().call<ipc::OfferReply>(CommandType::kModuleOffer, offered);
  if (!reply) return std::unexpected(reply.error());
  return reply->known != 0;
}

/// Leaves `load` behind the last of them.
Result<void> Modules::post_chunks(ipc::ModuleLoad& load, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min<std::size_t>(bytes.size(), kModuleChunkBytes));
    auto ok = session_.wire().channel().post(CommandType::kModuleLoad, ipc::bytes_of(load), chunk);
    if (!ok) return ok;
    bytes = bytes.subspan(chunk.size());
    load.offset += chunk.size();
  }
  return {};
}

Result<ipc::GlobalReply> Modules::find_global(std::uint64_t module, const std::string& name) {
  auto reply =
      session_.wire().call<ipc::GlobalReply>(CommandType::kGlobalGet, ipc::GlobalGet{module}, name);
  if (reply && reply->bytes > 0) {
    session_.memory().table().insert({reply->address, reply->bytes, kTagGlobal});
  }
  return reply;
}

Result<void> Modules::raise_limit(std::uint32_t limit, std::uint64_t value) {
  auto reply =
      session_.wire().call<Nothing>(CommandType::kLimitRaise, ipc::LimitRaise{limit, 0, value});
  if (!reply) return std::unexpected(reply.error());
  return {};
}

Result<void> Modules::raise_stack(std::uint64_t bytes) {
  return raise_limit(0, bytes);
}

Result<void> Modules::raise_drivers_heap(std::uint64_t bytes) {
  return raise_limit(1, bytes);
}

Result<void> Modules::raise_pending_launches(std::uint64_t count) {
  return raise_limit(2, count);
}

Result<std::uint64_t> Modules::variable_of(std::uint64_t module, std::string_view name) {
  const auto variable =
      session_.wire().call<ipc::GlobalReply>(CommandType::kGlobalGet, ipc::GlobalGet{module}, name);
  if (!variable) return std::unexpected(variable.error());
  return variable->address;
}

Result<void> Modules::write_address(std::uint64_t variable, std::uint64_t address) {
  return session_.waiting().on_own_stream([&](std::uint64_t stream) {
    return session_.copies().write(variable, std::as_bytes(std::span(&address, 1)), stream);
  });
}

}  // namespace slate::client
