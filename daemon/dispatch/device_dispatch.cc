#include "daemon/dispatch/device_dispatch.h"

namespace slate::daemon {

#ifdef SLATE_HAS_DISPATCH_KERNEL
extern const char* const kDispatchPtx;  // made by the build
#else
constexpr const char* kDispatchPtx = "";
#endif

namespace {

constexpr std::string_view kTarget = "slate_dispatch_target";  // in the text
constexpr std::string_view kDispatch = "slate_dispatch";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

Result<void> check_device_dispatch(const device::Device& device) {
  const auto refused = [](const std::string& why) {
    return fail(ErrorCode::kInvalidValue, "dispatch = \"device\" cannot be had: " + why);
  };
  if (const auto can = device.can_link(); !can) return refused(can.error().message);
  if (std::string_view(kDispatchPtx).empty())
    return refused("this slated was built without nvcc, and has no dispatch kernel");
  return {};
}

std::string dispatch_name(std::string_view worker) {
  return std::string(worker) + "__dispatch";
}

std::string dispatch_text(std::string_view worker) {
  std::string text = kDispatchPtx;
  // The target's name begins with the kernel's own, and the worker's may have either in it.
  constexpr std::string_view kPlace = "\x01";
  replace_all(text, kTarget, kPlace);
  replace_all(text, kDispatch, dispatch_name(worker));
  replace_all(text, kPlace, worker);
  return text;
}

}  // namespace slate::daemon
