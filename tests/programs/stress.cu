// Random work that knows what must come of it: every byte that a copy or kernel leaves, and every
// return code, is compared with a model on the host. Meant to run beside others of its kind, where
// memory is short; tests/e2e/stress_test.py starts it.
//
//   stress work SEED    two threads of random steps; prints one line of counts
//   stress visit SEED   a short stay: some work, modules, and an end that leaves things behind
//
// --steps N: of each thread. --bytes N: of each buffer, at most. --touch N: bytes that a kernel
// touches, at most. Exit code: 0 as it should be, 1 not, 3 no session.
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

using Byte = unsigned char;
using Bytes = std::vector<Byte>;

struct Settings {
  unsigned seed = 1;
  int steps = 60;
  std::size_t bytes = 3 << 20;
  std::size_t touch = 1 << 20;
};

struct Tally {
  std::atomic<unsigned long> wrong{0}, unexpected{0}, checked{0};
};
static Tally tally;

__host__ __device__ inline Byte mask_of(std::size_t i, unsigned salt) {
  return static_cast<Byte>((static_cast<unsigned>(i) * 2654435761u ^ salt * 40503u) >> 13);
}

/// Few blocks, each of which goes over all: such launches stay as they are.
__global__ void mix(Byte* bytes, std::size_t count, unsigned salt) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
    bytes[i] ^= mask_of(i, salt);
}

constexpr unsigned kTile = 128;
/// Many blocks with a barrier, which may run in another form.
__global__ void turn(Byte* bytes, unsigned salt) {
  __shared__ Byte tile[kTile];
  const std::size_t first = std::size_t{blockIdx.x} * kTile;
  tile[threadIdx.x] = bytes[first + threadIdx.x];
  __syncthreads();
  bytes[first + threadIdx.x] = tile[kTile - 1 - threadIdx.x] + static_cast<Byte>(salt);
}

/// Of a module made at run time: adds SALT to each of its bytes.
static std::string module_text(unsigned salt) {
  return R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 add_0, .param .u32 add_1)
{
	.reg .pred %p<2>;
	.reg .b16 %rs<3>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [add_0];
	ld.param.u32 %r1, [add_1];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra DONE;
	cvta.to.global.u64 %rd2, %rd1;
	cvt.u64.u32 %rd3, %r5;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.u8 %rs1, [%rd4];
	add.s16 %rs2, %rs1, )" +
         std::to_string(salt % 256) + R"(;
	st.global.u8 [%rd4], %rs2;
DONE:
	ret;
}
)";
}

/// A code that is not the one that it must be; also where cudaGetLastError() says another one.
static bool expect(cudaError_t code, cudaError_t wanted, const char* what) {
  const cudaError_t last = cudaGetLastError();
  if (code == wanted && last == wanted) return true;
  if (++tally.unexpected <= 20)
    std::fprintf(stderr, "stress: %s: %s, last %s, instead of %s\n", what, cudaGetErrorName(code),
                 cudaGetErrorName(last), cudaGetErrorName(wanted));
  return false;
}
static bool fine(cudaError_t code, const char* what) {
  return expect(code, cudaSuccess, what);
}

/// Random steps of one thread, on buffers and a stream of its own.
class Worker {
 public:
  Worker(const Settings& settings, unsigned number)
      : settings_(settings), random_(settings.seed * 7919u + number) {
    fine(cudaStreamCreateWithFlags(&stream_,
                                   pick(2) == 0 ? cudaStreamDefault : cudaStreamNonBlocking),
         "cudaStreamCreateWithFlags");
    for (Buffer& buffer : buffers_) renew(buffer);
    fine(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kPinned), "cudaMallocHost");
  }
  ~Worker() {
    for (Buffer& buffer : buffers_) {
      read(buffer, 0, buffer.model.size());
      fine(cudaFree(buffer.memory), "cudaFree");
    }
    fine(cudaFreeHost(pinned_), "cudaFreeHost");
    fine(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  }
  void run() {
    for (int i = 0; i < settings_.steps; ++i) step();
  }

 private:
  struct Buffer {
    Byte* memory = nullptr;
    Bytes model;  // what must be there
  };
  struct Range {
    std::size_t at, count;
  };
  static constexpr std::size_t kPinned = 64 << 10;
  static constexpr std::size_t kGuard = 64;

  std::size_t pick(std::size_t below) { return random_() % below; }
  /// Small ones as often as large ones.
  Range pick_range(const Buffer& buffer, std::size_t most) {
    most = std::min(most, buffer.model.size());
    std::size_t count = 1 + pick(most);
    if (pick(2) == 0) count = 1 + pick(std::min<std::size_t>(most, 3000));
    return {pick(buffer.model.size() - count + 1), count};
  }
  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; i += 4) {
      const unsigned word = random_();
      std::memcpy(&bytes[i], &word, std::min<std::size_t>(4, count - i));
    }
    return bytes;
  }

  void step() {
    Buffer& buffer = buffers_[pick(2)];
    switch (pick(13)) {
      case 0:
      case 1:
        return write(buffer);
      case 2: {
        const Range range = pick_range(buffer, buffer.model.size());
        return read(buffer, range.at, range.count);
      }
      case 3:
        return write_rows(buffer);
      case 4:
        return read_rows(buffer);
      case 5:
        return through_pinned(buffer);
      case 6:
        return fill(buffer);
      case 7:
        return move(buffer, buffers_[pick(2)]);
      case 8:
        return run_mix(buffer);
      case 9:
        return run_turn(buffer);
      case 10:
        return run_module(buffer);
      case 11:
        return be_refused(buffer);
      default:
        return renew(buffer);
    }
  }

  void write(Buffer& buffer) {
    const Range range = pick_range(buffer, buffer.model.size());
    Bytes source = random_bytes(range.count);
    const Bytes kept = source;
    fine(cudaMemcpyAsync(buffer.memory + range.at, source.data(), range.count,
                         cudaMemcpyHostToDevice, stream_),
         "copy to the device");
    std::ranges::fill(source, Byte{0xcc});  // it was read
    std::ranges::copy(kept, buffer.model.begin() + static_cast<long>(range.at));
  }

  /// Rows of 2-D copies: pitch on the device, and packed here.
  struct Rows {
    std::size_t at, pitch, width, height;
  };
  Rows pick_rows(const Buffer& buffer) {
    const std::size_t pitch = 1 + pick(std::min<std::size_t>(buffer.model.size(), 5000));
    const std::size_t height = 1 + pick(std::min<std::size_t>(buffer.model.size() / pitch, 300));
    const std::size_t spare = buffer.model.size() - pitch * height;
    return {pick(spare + 1), pitch, 1 + pick(pitch), height};
  }
  void write_rows(Buffer& buffer) {
    const Rows rows = pick_rows(buffer);
    const Bytes source = random_bytes(rows.width * rows.height);
    fine(cudaMemcpy2DAsync(buffer.memory + rows.at, rows.pitch, source.data(), rows.width,
                           rows.width, rows.height, cudaMemcpyHostToDevice, stream_),
         "rows to the device");
    for (std::size_t y = 0; y < rows.height; ++y)
      std::copy_n(source.begin() + static_cast<long>(y * rows.width), rows.width,
                  buffer.model.begin() + static_cast<long>(rows.at + y * rows.pitch));
  }
  void read_rows(const Buffer& buffer) {
    const Rows rows = pick_rows(buffer);
    Bytes wanted(rows.width * rows.height);
    for (std::size_t y = 0; y < rows.height; ++y)
      std::copy_n(buffer.model.begin() + static_cast<long>(rows.at + y * rows.pitch), rows.width,
                  wanted.begin() + static_cast<long>(y * rows.width));
    receive(wanted, "rows to the host", [&](Byte* to) {
      return cudaMemcpy2DAsync(to, rows.width, buffer.memory + rows.at, rows.pitch, rows.width,
                               rows.height, cudaMemcpyDeviceToHost, stream_);
    });
  }
  void read(const Buffer& buffer, std::size_t at, std::size_t count) {
    const auto first = buffer.model.begin() + static_cast<long>(at);
    receive(Bytes(first, first + static_cast<long>(count)), "copy to the host", [&](Byte* to) {
      return cudaMemcpyAsync(to, buffer.memory + at, count, cudaMemcpyDeviceToHost, stream_);
    });
  }

  /// `copy` brings the wanted bytes, no less and no more. The others beforehand are all different.
  template <typename Copy>
  void receive(const Bytes& wanted, const char* what, const Copy& copy) {
    Bytes place(kGuard + wanted.size() + kGuard);
    const auto before = [&](std::size_t i) {
      const std::size_t at = i - kGuard;
      return i < kGuard || at >= wanted.size() ? Byte{0xb7} : static_cast<Byte>(~wanted[at]);
    };
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = before(i);
    fine(copy(place.data() + kGuard), what);
    unsigned long wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < place.size(); ++i) {
      const bool inside = i >= kGuard && i - kGuard < wanted.size();
      const bool right = inside && place[i] == wanted[i - kGuard];
      const bool untouched = place[i] == before(i);
      if (inside ? right : untouched) continue;
      if (wrong++ == 0) first = i;
    }
    tally.checked += wanted.size();
    tally.wrong += wrong;
    if (wrong == 0) return;
    std::fprintf(stderr, "stress: %s: %lu of %zu bytes wrong, first at %zu: %d instead of %d\n",
                 what, wrong, wanted.size(), first - kGuard, place[first],
                 first - kGuard < wanted.size() ? wanted[first - kGuard] : 0xb7);
  }

  void through_pinned(Buffer& buffer) {
    const Range range = pick_range(buffer, kPinned);
    Byte* const to = buffer.memory + range.at;
    const Bytes source = random_bytes(range.count);
    std::ranges::copy(source, pinned_);
    fine(cudaMemcpyAsync(to, pinned_, range.count, cudaMemcpyHostToDevice, stream_), "from pinned");
    fine(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    std::ranges::copy(source, buffer.model.begin() + static_cast<long>(range.at));
    receive(source, "to pinned", [&](Byte* place) {
      std::copy_n(place, range.count, pinned_);
      auto code = cudaMemcpyAsync(pinned_, to, range.count, cudaMemcpyDeviceToHost, stream_);
      if (code == cudaSuccess) code = cudaStreamSynchronize(stream_);
      std::copy_n(pinned_, range.count, place);
      return code;
    });
  }

  void fill(Buffer& buffer) {
    const Range range = pick_range(buffer, buffer.model.size());
    const auto value = static_cast<Byte>(random_());
    fine(cudaMemsetAsync(buffer.memory + range.at, value, range.count, stream_), "fill");
    std::fill_n(buffer.model.begin() + static_cast<long>(range.at), range.count, value);
  }

  void move(Buffer& to, const Buffer& from) {
    if (&to == &from) return;
    const Range source = pick_range(from, to.model.size());
    const std::size_t at = pick(to.model.size() - source.count + 1);
    fine(cudaMemcpyAsync(to.memory + at, from.memory + source.at, source.count,
                         cudaMemcpyDeviceToDevice, stream_),
         "copy on the device");
    std::copy_n(from.model.begin() + static_cast<long>(source.at), source.count,
                to.model.begin() + static_cast<long>(at));
  }

  void run_mix(Buffer& buffer) {
    const Range range = pick_range(buffer, settings_.touch);
    const unsigned salt = random_();
    mix<<<static_cast<unsigned>(1 + pick(8)), 128, 0, stream_>>>(buffer.memory + range.at,
                                                                 range.count, salt);
    fine(cudaPeekAtLastError(), "mix");
    for (std::size_t i = 0; i < range.count; ++i) buffer.model[range.at + i] ^= mask_of(i, salt);
  }

  void run_turn(Buffer& buffer) {
    Range range = pick_range(buffer, settings_.touch);
    const std::size_t blocks = range.count / kTile;
    if (blocks == 0) return;
    const unsigned salt = random_();
    turn<<<static_cast<unsigned>(blocks), kTile, 0, stream_>>>(buffer.memory + range.at, salt);
    fine(cudaPeekAtLastError(), "turn");
    for (std::size_t block = 0; block < blocks; ++block) {
      const auto first = buffer.model.begin() + static_cast<long>(range.at + block * kTile);
      std::reverse(first, first + kTile);
      for (unsigned i = 0; i < kTile; ++i) first[i] = static_cast<Byte>(first[i] + salt);
    }
  }

  void run_module(Buffer& buffer) {
    const Range range = pick_range(buffer, settings_.touch);
    const unsigned salt = random_() % 256;
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
    if (!fine(cudaLibraryLoadData(&library, module_text(salt).c_str(), nullptr, nullptr, 0, nullptr,
                                  nullptr, 0),
              "cudaLibraryLoadData")) {
      return;
    }
    fine(cudaLibraryGetKernel(&kernel, library, "add"), "cudaLibraryGetKernel");
    Byte* memory = buffer.memory + range.at;
    auto count = static_cast<unsigned>(range.count);
    void* arguments[] = {&memory, &count};
    fine(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3((count + 127) / 128),
                          dim3(128), arguments, 0, stream_),
         "launch of a module's kernel");
    for (std::size_t i = 0; i < range.count; ++i)
      buffer.model[range.at + i] = static_cast<Byte>(buffer.model[range.at + i] + salt);
    fine(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    fine(cudaLibraryUnload(library), "cudaLibraryUnload");
  }

  /// What CUDA refuses changes nothing.
  void be_refused(Buffer& buffer) {
    const std::size_t size = buffer.model.size();
    void* none = nullptr;
    Byte host[16] = {};
    std::size_t count = size;
    unsigned salt = 1;
    void* arguments[] = {&buffer.memory, &count, &salt};
    const auto kernel = reinterpret_cast<const void*>(mix);
    switch (pick(8)) {
      case 0:
        expect(cudaMalloc(&none, std::size_t{1} << 50), cudaErrorMemoryAllocation, "too much");
        break;
      case 1:
        expect(cudaLaunchKernel(kernel, dim3(1), dim3(2048), arguments, 0, stream_),
               cudaErrorInvalidValue, "too many threads");
        break;
      case 2:
        expect(cudaLaunchKernel(kernel, dim3(1), dim3(32), arguments, 1 << 20, stream_),
               cudaErrorInvalidValue, "too much shared memory");
        break;
      case 3:
        expect(cudaMemcpyAsync(buffer.memory + size - 8, host, 64 << 20, cudaMemcpyHostToDevice,
                               stream_),
               cudaErrorInvalidValue, "a copy past the end");
        break;
      case 4:
        expect(cudaMemsetAsync(buffer.memory + size - 8, 0, 64 << 20, stream_),
               cudaErrorInvalidValue, "a fill past the end");
        break;
      case 5:
        expect(cudaFree(buffer.memory + 1), cudaErrorInvalidValue, "a free of the middle");
        break;
      case 6:
        expect(cudaMemcpyAsync(host, buffer.memory, 16, static_cast<cudaMemcpyKind>(77), stream_),
               cudaErrorInvalidMemcpyDirection, "a copy nowhere");
        break;
      default: {
        cudaLibrary_t library = nullptr;
        cudaKernel_t missing = nullptr;
        fine(cudaLibraryLoadData(&library, module_text(1).c_str(), nullptr, nullptr, 0, nullptr,
                                 nullptr, 0),
             "cudaLibraryLoadData");
        expect(cudaLibraryGetKernel(&missing, library, "subtract"), cudaErrorSymbolNotFound,
               "a kernel that is not there");
        fine(cudaLibraryUnload(library), "cudaLibraryUnload");
      }
    }
  }

  void renew(Buffer& buffer) {
    if (buffer.memory != nullptr) fine(cudaFree(buffer.memory), "cudaFree");
    const std::size_t size = kTile + pick(settings_.bytes);
    buffer.memory = nullptr;
    // Without memory, what follows would touch what is not its own.
    if (!fine(cudaMalloc(reinterpret_cast<void**>(&buffer.memory), size), "cudaMalloc"))
      std::exit(1);
    buffer.model.assign(size, 0);
    fine(cudaMemsetAsync(buffer.memory, 0, size, stream_), "fill of new memory");
  }

  const Settings settings_;
  std::mt19937 random_;
  cudaStream_t stream_ = nullptr;
  Buffer buffers_[2];
  Byte* pinned_ = nullptr;
};

static int work(const Settings& settings) {
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 2; ++number)
    threads.emplace_back([&, number] { Worker(settings, number).run(); });
  for (std::thread& thread : threads) thread.join();
  fine(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::printf("checked %lu wrong %lu unexpected %lu\n", tally.checked.load(), tally.wrong.load(),
              tally.unexpected.load());
  return tally.wrong + tally.unexpected == 0 ? 0 : 1;
}

/// Nothing is checked: it is there to come and go, in every way that programs do.
static int visit(const Settings& settings) {
  std::mt19937 random(settings.seed);
  Settings short_stay = settings;
  short_stay.steps = static_cast<int>(random() % 8);
  Byte* left = nullptr;
  if (cudaMalloc(reinterpret_cast<void**>(&left), 1 + random() % settings.bytes) != cudaSuccess)
    return 1;
  { Worker(short_stay, 0).run(); }
  for (int i = 0; i < 4; ++i) mix<<<64, 128>>>(left, 1, 5);
  switch (random() % 4) {
    case 0:
      std::raise(SIGKILL);
      break;
    case 1:
      ::_exit(0);
    case 2:
      cudaDeviceReset();
      break;
    default:
      break;
  }
  return 0;
}

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  Settings settings;
  if (count > 2) settings.seed = static_cast<unsigned>(std::atoi(words[2]));
  for (int i = 3; i < count; ++i) {
    const std::string word = words[i];
    if (i + 1 == count) break;
    const long value = std::atol(words[i + 1]);
    if (word == "--steps") settings.steps = static_cast<int>(value);
    if (word == "--bytes") settings.bytes = static_cast<std::size_t>(value);
    if (word == "--touch") settings.touch = static_cast<std::size_t>(value);
  }
  if (mode != "work" && mode != "visit") {
    std::fprintf(stderr, "usage: stress work|visit SEED [--steps N] [--bytes N] [--touch N]\n");
    return 2;
  }
  if (const cudaError_t first = cudaDeviceSynchronize(); first != cudaSuccess) {
    std::fprintf(stderr, "stress: no session: %s\n", cudaGetErrorName(first));
    return 3;
  }
  return mode == "work" ? work(settings) : visit(settings);
}
