#include "bench/device_link.h"

#include <fmt/format.h>
#include <nvJitLink.h>

namespace slate::bench {
namespace {

/// One linking; destroyed with all that was added to it.
class Link {
 public:
  explicit Link(int architecture) {
    const std::string target = fmt::format("-arch=sm_{}", architecture);
    const char* options[] = {target.c_str(), "-O3"};
    result_ = nvJitLinkCreate(&handle_, 2, options);
  }
  ~Link() {
    if (handle_ != nullptr) nvJitLinkDestroy(&handle_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Nothing more is done after the first failure.
  template <typename Call>
  void then(Call call) {
    if (result_ == NVJITLINK_SUCCESS) result_ = call(handle_);
  }

  Result<void> outcome() {
    if (result_ == NVJITLINK_SUCCESS) return {};
    std::size_t bytes = 0;
    std::string log;
    if (handle_ != nullptr && nvJitLinkGetErrorLogSize(handle_, &bytes) == NVJITLINK_SUCCESS) {
      log.resize(bytes);
      if (bytes > 0) nvJitLinkGetErrorLog(handle_, log.data());
    }
    return fail(ErrorCode::kInvalidPtx,
                fmt::format("nvJitLink: error {}: {}", static_cast<int>(result_), log.c_str()));
  }

 private:
  nvJitLinkHandle handle_ = nullptr;
  nvJitLinkResult result_ = NVJITLINK_SUCCESS;
};

}  // namespace

Result<std::vector<std::byte>> link_with_device_runtime(const std::vector<std::string>& ptx,
                                                        const std::string& library,
                                                        int architecture) {
  Link link(architecture);
  for (const std::string& text : ptx) {
    link.then([&](nvJitLinkHandle handle) {
      return nvJitLinkAddData(handle, NVJITLINK_INPUT_PTX, text.c_str(), text.size() + 1, "ptx");
    });
  }
  link.then([&](nvJitLinkHandle handle) {
    return nvJitLinkAddFile(handle, NVJITLINK_INPUT_LIBRARY, library.c_str());
  });
  link.then([](nvJitLinkHandle handle) { return nvJitLinkComplete(handle); });
  std::size_t bytes = 0;
  link.then([&](nvJitLinkHandle handle) { return nvJitLinkGetLinkedCubinSize(handle, &bytes); });
  std::vector<std::byte> code(bytes);
  link.then([&](nvJitLinkHandle handle) { return nvJitLinkGetLinkedCubin(handle, code.data()); });
  if (const auto linked = link.outcome(); !linked) return std::unexpected(linked.error());
  return code;
}

}  // namespace slate::bench
