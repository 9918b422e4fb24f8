// Fills with values of one, two and four bytes. Those without Async in their names return when they
// are done only where the host could see it otherwise, as CUDA's do.
#include "client/driver/front.h"
#include "client/driver/pointer.h"
#include "client/session/address_copy.h"

namespace slate::driver {
namespace {

/// `width`: values of a row.
struct Fill {
  CUdeviceptr to;
  std::size_t pitch;
  unsigned value;
  std::size_t element;  // bytes of the value
  std::size_t width;
  std::size_t height;
};

CUresult fill(const Fill& what, bool asynchronous, CUstream stream) {
  return with_session([&](Session& session) -> Answer {
    const auto id = stream_id(session, stream);
    if (!id) return std::unexpected(id.error());
    std::size_t bytes = 0;
    const bool aligned =
        what.to % what.element == 0 && (what.height <= 1 || what.pitch % what.element == 0);
    if (!aligned || __builtin_mul_overflow(what.width, what.element, &bytes))
      return deny(CUDA_ERROR_INVALID_VALUE);
    const client::FillCall call{pointer_to(what.to),
                                what.height == 1 ? bytes : what.pitch,
                                static_cast<int>(what.value),
                                bytes,
                                what.height,
                                asynchronous,
                                what.element};
    auto filled = client::fill_rows(session, call, *id);
    if (!filled || asynchronous || !synchronous_calls_wait()) return filled;
    return session.waiting().synchronize(ipc::TargetKind::kStream, *id);
  });
}

template <typename Value>
Fill line(CUdeviceptr to, Value value, std::size_t count) {
  return {to, 0, value, sizeof(Value), count, 1};
}
template <typename Value>
Fill rows(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width, std::size_t height) {
  return {to, pitch, value, sizeof(Value), width, height};
}

}  // namespace
}  // namespace slate::driver

using namespace slate::driver;

extern "C" {

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return fill(line(to, value, count), false, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return fill(line(to, value, count), false, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return fill(line(to, value, count), false, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return fill(line(to, value, count), true, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return fill(line(to, value, count), true, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return fill(line(to, value, count), true, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height) {
  return fill(rows(to, pitch, value, width, height), false, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch, unsigned short value,
                          std::size_t width, std::size_t height) {
  return fill(rows(to, pitch, value, width, height), false, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                          std::size_t height) {
  return fill(rows(to, pitch, value, width, height), false, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return fill(rows(to, pitch, value, width, height), true, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill(rows(to, pitch, value, width, height), true, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return fill(rows(to, pitch, value, width, height), true, stream);
}

}  // extern "C"
