// A kernel reads constants that are written in every way there is between its launches: by copies
// and memsets, on its own stream and another one, and by kernels. Each launch has to see them as
// they were when it began, also beside work of other streams that takes long.
#include <cstdio>
#include <vector>

namespace {

constexpr int kBlocks = 6, kThreads = 64, kCount = kBlocks * kThreads;
constexpr int kFactors = 16;

__constant__ int factors[kFactors];
__constant__ int offset;

__global__ void read(int* to, int count, bool with_factors) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  to[i] = offset;
  if (with_factors) to[i] += factors[(i * 7) & (kFactors - 1)] * 1000;
}
__global__ void write(int* to, int value) {
  *to = value;
}
__global__ void write_in_front(int* end, int by, int value) {
  end[-by] = value;
}
__global__ void write_listed(int* const* list, int which, int value) {
  *list[which] = value;
}
// It reads constants, too: a copy of them that is filled in front of it is old behind it.
__global__ void write_factor(int* to, int which) {
  *to = factors[which];
}
__global__ void work(int* to, int turns) {
  int value = *to;
  for (int i = 0; i < turns; ++i) value = value * 5 + i;
  *to = value;
}

class Program {
 public:
  Program() {
    for (cudaStream_t& stream : streams_) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&written_, cudaEventDisableTiming);
    cudaMalloc(&memory_, kCount * sizeof(int));
    cudaMalloc(&source_, sizeof(now_));
    cudaMallocHost(&pinned_, sizeof(now_));
    cudaMalloc(&beside_, sizeof(int));
    cudaMemset(beside_, 0, sizeof(int));
    cudaGetSymbolAddress(reinterpret_cast<void**>(&factors_), factors);
    cudaGetSymbolAddress(reinterpret_cast<void**>(&offset_), offset);
    int* const list[] = {factors_, offset_};
    cudaMalloc(&list_, sizeof(list));
    cudaMemcpy(list_, list, sizeof(list), cudaMemcpyHostToDevice);
    cudaMemset(factors_, 0, sizeof(now_));
    cudaMemset(offset_, 0, sizeof(int));
  }

  void change(int how, int round, cudaStream_t stream) {
    const int which = round % kFactors;
    switch (how) {
      case 0:
        for (int& each : now_) each = ++next_;
        cudaMemcpyToSymbolAsync(factors, now_, sizeof(now_), 0, cudaMemcpyHostToDevice, stream);
        break;
      case 1:
        now_[which] = ++next_;
        cudaMemcpyAsync(source_, now_, sizeof(now_), cudaMemcpyHostToDevice, stream);
        cudaMemcpyAsync(factors_ + which, source_ + which, sizeof(int), cudaMemcpyDeviceToDevice,
                        stream);
        break;
      case 2:
        added_ = 0x01010101 * (round % 100);
        cudaMemsetAsync(offset_, round % 100, sizeof(int), stream);
        break;
      case 3:
        write<<<1, 1, 0, stream>>>(offset_, added_ = ++next_);
        break;
      case 4:
        write_in_front<<<1, 1, 0, stream>>>(factors_ + kFactors, kFactors - which,
                                            now_[which] = ++next_);
        break;
      case 5:
        write_listed<<<1, 1, 0, stream>>>(list_, 1, added_ = ++next_);
        break;
      case 6:
        write_factor<<<1, 1, 0, stream>>>(offset_, which);
        added_ = now_[which];
        break;
      default:
        break;
    }
  }

  /// The number of wrong results of a launch behind a change.
  int step(int round) {
    const cudaStream_t first = streams_[round % 2], second = streams_[(round / 2) % 2];
    if (round % 5 == 0) work<<<1, 1, 0, streams_[round % 3 % 2]>>>(beside_, 3000);
    change(round % 8, round, first);
    if (first != second) {
      cudaEventRecord(written_, first);
      cudaStreamWaitEvent(second, written_, 0);
    }
    return read_on(second, true);
  }

  /// A launch that reads other constants than those which a stream beside it is about to write.
  int read_beside_a_write() {
    const cudaStream_t beside = streams_[0], stream = streams_[1];
    cudaDeviceSynchronize();
    work<<<1, 1, 0, beside>>>(beside_, kLong);
    for (int i = 0; i < kFactors; ++i) pinned_[i] = now_[i] = ++next_;
    cudaMemcpyToSymbolAsync(factors, pinned_, sizeof(now_), 0, cudaMemcpyHostToDevice, beside);
    cudaEventRecord(written_, beside);
    const int wrong = read_on(stream, false);
    cudaStreamWaitEvent(stream, written_, 0);
    return wrong + read_on(stream, true);
  }

  /// A launch beside an earlier one on a stream that has not come to it.
  int read_before_an_earlier_launch() {
    change(0, 0, streams_[0]);
    cudaDeviceSynchronize();
    work<<<1, 1, 0, streams_[0]>>>(beside_, kLong);
    read<<<kBlocks, kThreads, 0, streams_[0]>>>(source_, 1, true);
    return read_on(streams_[1], true);
  }

 private:
  static constexpr int kLong = 100'000;  // turns

  /// The number of wrong results.
  int read_on(cudaStream_t stream, bool with_factors) {
    read<<<kBlocks, kThreads, 0, stream>>>(memory_, kCount, with_factors);
    std::vector<int> got(kCount);
    cudaMemcpyAsync(got.data(), memory_, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    int wrong = 0;
    for (int i = 0; i < kCount; ++i) {
      const int factor = with_factors ? now_[(i * 7) & (kFactors - 1)] : 0;
      wrong += got[i] != factor * 1000 + added_;
    }
    return wrong;
  }

  cudaStream_t streams_[2] = {};
  cudaEvent_t written_ = nullptr;
  int *memory_ = nullptr, *source_ = nullptr, *beside_ = nullptr, *pinned_ = nullptr;
  int *factors_ = nullptr, *offset_ = nullptr;
  int** list_ = nullptr;
  int now_[kFactors] = {};
  int added_ = 0, next_ = 0;
};

}  // namespace

int main() {
  Program program;
  constexpr int kRounds = 240;  // all ways on both streams
  int wrong = 0, beside = 0, early = 0;
  for (int round = 0; round < kRounds; ++round) wrong += program.step(round);
  for (int round = 0; round < 5; ++round) beside += program.read_beside_a_write();
  for (int round = 0; round < 5; ++round) early += program.read_before_an_earlier_launch();
  std::printf("wrong behind a change: %d, beside a write: %d, before an earlier launch: %d\n",
              wrong, beside, early);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
