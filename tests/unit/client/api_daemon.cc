#include "tests/unit/client/api_daemon.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/unit/client/fake_cache.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/client/fake_source.h"

namespace slate::test {

ApiDaemon::ApiDaemon()
    : directory_(std::filesystem::temp_directory_path() /
                 ("slate-api-test-" + std::to_string(::getpid()))),
      fake_(std::make_unique<FakeDaemon>(directory_)) {
  ::setenv("SLATE_RUNTIME_DIR", directory_.c_str(), 1);
  cudaDeviceReset();
  cudaGetLastError();
  fake_compiler() = {compiled(kTestPtx, {{"scale<float>", "_Z5scaleIfEvPT_"}}, "a warning")};
  fake_cache() = {};
}

ApiDaemon::~ApiDaemon() {
  cudaDeviceReset();
  fake_.reset();
  std::filesystem::remove_all(directory_);
}

void ApiDaemon::describe_parameters(const std::vector<unsigned>& sizes) {
  fake_->describe({1024, 256, 48896, 32, 8, 40, 90, 90, 0, 0}, {sizes.begin(), sizes.end()});
}

void ApiDaemon::settle() {
  cudaDeviceSynchronize();
  // That asks nobody when no work is under way; commands before this question have been taken, too.
  std::size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
}

int ApiDaemon::launches() const {
  return static_cast<int>(fake_->launches().size());
}

int ApiDaemon::unloads() const {
  return fake_->count(ipc::CommandType::kModuleUnload);
}

void ApiDaemon::stop() {
  fake_.reset();
}

}  // namespace slate::test
