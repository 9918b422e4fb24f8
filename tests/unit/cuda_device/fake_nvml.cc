// A library that answers as NVML does for one GPU, whose memory fills by 1 MiB with each question.
#include <cstring>

namespace {

bool is_open = false;
unsigned long long used = 0;
int device = 0;

struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  is_open = true;
  return 0;
}

int nvmlShutdown() {
  is_open = false;
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** found) {
  const bool is_mine = std::strcmp(uuid, "GPU-00010203-0405-0607-0809-0a0b0c0dfeff") == 0;
  if (!is_open || !is_mine) return 6;  // NVML_ERROR_NOT_FOUND
  *found = &device;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* which, Memory* memory) {
  if (!is_open || which != &device) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  used += 1 << 20;
  *memory = {.total = 1ull << 30, .free = (1ull << 30) - used, .used = used};
  return 0;
}
}
