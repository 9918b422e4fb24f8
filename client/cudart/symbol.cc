// Variables of the program's device code, named by their shadow on the host.
#include "client/cudart/box.h"
#include "client/session/address_copy.h"

namespace slate::cudart {
namespace {

Maybe<client::Range> place_of(Session& session, const void* symbol) {
  client::Code& code = Process::get().code();
  client::Variable* variable = code.find_variable(symbol);
  if (variable == nullptr) {
    if (const auto managed = code.find_managed(session, address_of(symbol))) return *managed;
    return deny(cudaErrorInvalidSymbol);
  }
  auto place = code.place(session, *variable);
  if (place) return *place;
  if (place.error().code == ErrorCode::kSymbolNotFound) return deny(cudaErrorInvalidSymbol);
  return std::unexpected<Failure>(place.error());
}

struct SymbolCopy {
  const void* symbol;
  std::size_t offset;
  std::size_t count;
  int kind;  // a cudaMemcpyKind, or what the program takes for one
  bool asynchronous = false;
};

/// The address of the part of the symbol that is to be copied. `host_kind`: the kind with the other
/// side on the host.
Maybe<void*> target_of(Session& session, const SymbolCopy& call, cudaMemcpyKind host_kind) {
  if (call.kind != host_kind && call.kind != cudaMemcpyDeviceToDevice &&
      call.kind != cudaMemcpyDefault) {
    return deny(cudaErrorInvalidMemcpyDirection);
  }
  auto place = place_of(session, call.symbol);
  if (!place) return std::unexpected(place.error());
  if (call.offset > place->bytes || call.count > place->bytes - call.offset) {
    return deny(cudaErrorInvalidValue);
  }
  return pointer_to(place->address + call.offset);
}

cudaError_t copy_to_symbol(const SymbolCopy& call, const void* from, cudaStream_t stream,
                           DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto target = target_of(session, call, cudaMemcpyHostToDevice);
    if (!target) return std::unexpected(target.error());
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::copy_rows(session,
                             {*target, call.count, from, call.count, call.count, 1,
                              direction_of(call.kind), call.asynchronous},
                             *id);
  });
}

cudaError_t copy_from_symbol(void* to, const SymbolCopy& call, cudaStream_t stream,
                             DefaultStream zero) {
  return with_session([&](Session& session) -> Answer {
    auto source = target_of(session, call, cudaMemcpyDeviceToHost);
    if (!source) return std::unexpected(source.error());
    auto id = stream_id(session, stream, zero);
    if (!id) return std::unexpected(id.error());
    return client::copy_rows(session,
                             {to, call.count, *source, call.count, call.count, 1,
                              direction_of(call.kind), call.asynchronous},
                             *id);
  });
}

}  // namespace
}  // namespace slate::cudart

using namespace slate::cudart;

extern "C" {

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return with_session([&](Session& session) -> Answer {
    if (address == nullptr) return deny(cudaErrorInvalidValue);
    auto place = place_of(session, symbol);
    if (!place) return std::unexpected(place.error());
    *address = pointer_to(place->address);
    return {};
  });
}

cudaError_t cudaGetSymbolSize(std::size_t* size, const void* symbol) {
  return with_session([&](Session& session) -> Answer {
    if (size == nullptr) return deny(cudaErrorInvalidValue);
    auto place = place_of(session, symbol);
    if (!place) return std::unexpected(place.error());
    *size = place->bytes;
    return {};
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t count,
                               std::size_t offset, cudaMemcpyKind kind) {
  return copy_to_symbol({symbol, offset, count, kind}, from, nullptr, kLegacy);
}
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, std::size_t count,
                                    std::size_t offset, cudaMemcpyKind kind) {
  return copy_to_symbol({symbol, offset, count, kind}, from, nullptr, kPerThread);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t count,
                                    std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_to_symbol({symbol, offset, count, kind, true}, from, stream, kLegacy);
}
cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* from, std::size_t count,
                                         std::size_t offset, cudaMemcpyKind kind,
                                         cudaStream_t stream) {
  return copy_to_symbol({symbol, offset, count, kind, true}, from, stream, kPerThread);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t count,
                                 std::size_t offset, cudaMemcpyKind kind) {
  return copy_from_symbol(to, {symbol, offset, count, kind}, nullptr, kLegacy);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, std::size_t count,
                                      std::size_t offset, cudaMemcpyKind kind) {
  return copy_from_symbol(to, {symbol, offset, count, kind}, nullptr, kPerThread);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t count,
                                      std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return copy_from_symbol(to, {symbol, offset, count, kind, true}, stream, kLegacy);
}
cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* to, const void* symbol, std::size_t count,
                                           std::size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream) {
  return copy_from_symbol(to, {symbol, offset, count, kind, true}, stream, kPerThread);
}

}  // extern "C"
