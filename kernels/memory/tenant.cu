// A program that has much device memory, works on it in rounds with pauses, and checks every word
// in the end. Many of them together have more than the device.
//
//   tenant --mib N --buffers B --rounds R [OPTION VALUE]...      (kOptions has them all)
//
// A round's kernels rewrite some of the buffers, each from another one or in place. Then a few
// small copies and a memset change one window of words, and the program sleeps. contents.h computes
// what each word has to be, without the device. The first line printed has the memory that CUDA
// reports at the start, the last one the results, both as JSON.
//
// Exit status 0: every word was right; 1: the first wrong one of each buffer is printed; 2: a CUDA
// error; 64: a wrong command line.
#include <cuda_runtime.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/program.h"
#include "memory/contents.h"
#include "memory/reservation.h"

namespace {

using slate::kernels::Contents;
using slate::kernels::Line;
using slate::kernels::Reservation;
using slate::kernels::scrambled;
using slate::kernels::Step;

constexpr unsigned kThreads = 256, kMostBlocks = 1056, kMostSpin = 1 << 20;
// A generator's step and the inverse of its factor: forth and back again leave a word as it was.
constexpr std::uint32_t kFactor = 1664525, kAddend = 1013904223, kInverse = 4276115653;
static_assert(kFactor * kInverse == 1);

struct Options {
  double mib = 16, buffers = 4, rounds = 10, touch = 0, gap_ms = 0, kernel_ms = 0, spin = 0,
         seed = 1, streams = 1, seconds = 0;
  bool indirect = false, expect_zeros = false, reserve = false;
};

// Aliases, as nvcc writes such members with parentheses that the compiler warns of.
using Number = double Options::*;
using Flag = bool Options::*;

struct Option {
  const char* name;
  Number number;
  Flag flag;
  const char* help;
};

const Option kOptions[] = {
    {"--mib", &Options::mib, nullptr, "MiB of all buffers together"},
    {"--buffers", &Options::buffers, nullptr, "their number"},
    {"--rounds", &Options::rounds, nullptr, "the most rounds"},
    {"--seconds", &Options::seconds, nullptr, "no further round begins after so long; 0: no limit"},
    {"--touch", &Options::touch, nullptr, "buffers that a round rewrites, in turn; 0: all"},
    {"--gap_ms", &Options::gap_ms, nullptr, "sleep after a round, nothing in flight"},
    {"--kernel_ms", &Options::kernel_ms, nullptr, "let a round's kernels take so long (measured)"},
    {"--spin", &Options::spin, nullptr, "arithmetic for each word, as --kernel_ms would find it"},
    {"--seed", &Options::seed, nullptr, "of all contents"},
    {"--streams", &Options::streams, nullptr, "streams that a round's kernels are spread over"},
    {"--indirect", nullptr, &Options::indirect,
     "kernels find the buffers by a table on the device"},
    {"--reserve", nullptr, &Options::reserve, "map the buffers into one reservation of addresses"},
    {"--expect_zeros", nullptr, &Options::expect_zeros, "new memory has to read as zero"},
};

struct Found {
  unsigned long long wrong, hash, index;  // words that are wrong, sum over all words, a wrong one
  std::uint32_t value, taken;             // what it is, and whether one was found at all
};

__device__ std::uint32_t spun(std::uint32_t word, unsigned spin) {
  for (unsigned i = 0; i < spin; ++i) word = word * kFactor + kAddend;
  for (unsigned i = 0; i < spin; ++i) word = (word - kAddend) * kInverse;
  return word;
}

__device__ void rewrite(uint4* to, const uint4* from, std::uint64_t count, Step step,
                        unsigned spin) {
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const uint4 word = to[i], other = from[i];
    to[i] = {step.keep * spun(word.x, spin) + step.take * other.x + step.add,
             step.keep * spun(word.y, spin) + step.take * other.y + step.add,
             step.keep * spun(word.z, spin) + step.take * other.z + step.add,
             step.keep * spun(word.w, spin) + step.take * other.w + step.add};
  }
}

__global__ void rewrite_buffer(uint4* to, const uint4* from, std::uint64_t count, Step step,
                               unsigned spin) {
  rewrite(to, from, count, step, spin);
}

__global__ void rewrite_listed(uint4* const* table, unsigned to, unsigned from, std::uint64_t count,
                               Step step, unsigned spin) {
  rewrite(table[to], table[from], count, step, spin);
}

__device__ std::uint32_t word_of(Line line, std::uint64_t index) {
  return line.slope * static_cast<std::uint32_t>(index) + line.offset;
}

__global__ void fill(uint4* to, std::uint64_t count, Line line) {
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x)
    to[i] = {word_of(line, 4 * i), word_of(line, 4 * i + 1), word_of(line, 4 * i + 2),
             word_of(line, 4 * i + 3)};
}

/// Adds all words to a hash, and compares those outside of [first, first + exempt).
__global__ void check(const std::uint32_t* words, std::uint64_t count, Line line,
                      std::uint64_t first, std::uint64_t exempt, Found* found) {
  unsigned long long hash = 0, wrong = 0;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t word = words[i];
    hash += (2 * i + 1) * (word + 1ull);
    if (word == word_of(line, i) || i - first < exempt) continue;
    ++wrong;
    if (atomicExch(&found->taken, 1) == 0) {
      found->index = i;
      found->value = word;
    }
  }
  atomicAdd(&found->hash, hash);
  if (wrong > 0) atomicAdd(&found->wrong, wrong);
}

double seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

class Tenant {
 public:
  explicit Tenant(const Options& options)
      : options_(options),
        words_(static_cast<std::uint64_t>(options.mib * (1 << 18)) /
               static_cast<unsigned>(options.buffers) / 4 * 4),
        touch_(static_cast<unsigned>(options.touch > 0 ? options.touch : options.buffers)),
        spin_(static_cast<unsigned>(options.spin)),
        contents_(static_cast<std::uint64_t>(options.seed), static_cast<unsigned>(options.buffers),
                  words_) {}

  void allocate() {
    SLATE_REQUIRE(cudaMemGetInfo(&free_, &total_));
    std::printf("{\"free\": %zu, \"total\": %zu}\n", free_, total_);
    std::fflush(stdout);
    SLATE_REQUIRE(cudaMalloc(&found_, sizeof(Found)));
    SLATE_REQUIRE(cudaMallocHost(&pinned_, contents_.window_size() * sizeof(std::uint32_t)));
    pageable_.resize(contents_.window_size());
    buffers_.resize(static_cast<std::size_t>(options_.buffers));
    if (options_.reserve) reservation_.make(buffers_.size(), bytes());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (options_.reserve) {
        buffers_[i] = reinterpret_cast<std::uint32_t*>(reservation_.buffer(i));
      } else {
        SLATE_REQUIRE(cudaMalloc(&buffers_[i], bytes()));
      }
    }
    if (options_.indirect) {
      const std::size_t size = buffers_.size() * sizeof(buffers_[0]);
      SLATE_REQUIRE(cudaMalloc(&table_, size));
      SLATE_REQUIRE(cudaMemcpy(table_, buffers_.data(), size, cudaMemcpyHostToDevice));
    }
    streams_.resize(static_cast<std::size_t>(options_.streams));
    for (cudaStream_t& stream : streams_) SLATE_REQUIRE(cudaStreamCreate(&stream));
  }

  void start() {
    for (unsigned i = 0; i < buffers_.size(); ++i) {
      if (options_.expect_zeros) compare(i, Line{}, 0);
      fill<<<blocks(), kThreads>>>(vectors(i), words_ / 4, contents_.line(i));
      SLATE_REQUIRE(cudaGetLastError());
    }
    SLATE_REQUIRE(cudaDeviceSynchronize());
    hash_ = 0;
    if (options_.kernel_ms > 0) calibrate();
  }

  void work() {
    begun_ = seconds();
    for (; round_ < options_.rounds; ++round_) {
      if (options_.seconds > 0 && seconds() - begun_ > options_.seconds) break;
      const double begin = seconds();
      launch_round();
      kernel_seconds_ += seconds() - begin;
      copy_some(buffer_of(round_ % touch_), buffer_of((round_ + 1) % touch_));
      longest_ = std::max(longest_, seconds() - begin);
      if (options_.gap_ms > 0) usleep(static_cast<useconds_t>(options_.gap_ms * 1e3));
    }
    ended_ = seconds();
  }

  /// The number of wrong words.
  unsigned long long finish() {
    for (unsigned i = 0; i < buffers_.size(); ++i) {
      compare(i, contents_.line(i), contents_.window_size());
      download_window(i, pageable_.data(), streams_[0]);
    }
    std::printf("{\"wrong\": %llu, \"hash\": \"%016llx\", \"seconds\": %.4f, ", wrong_, hash_,
                ended_ - begun_);
    std::printf("\"kernel_seconds\": %.4f, \"longest_round_ms\": %.2f, \"rounds\": %u, ",
                kernel_seconds_, longest_ * 1e3, round_);
    std::printf("\"spin\": %u, \"bytes\": %zu, \"free\": %zu, \"total\": %zu, ", spin_,
                bytes() * buffers_.size(), free_, total_);
    std::printf("\"begun_s\": %.4f, \"ended_s\": %.4f}\n", begun_, ended_);
    return wrong_;
  }

  void release() {
    for (const cudaStream_t stream : streams_) SLATE_REQUIRE(cudaStreamDestroy(stream));
    for (std::uint32_t* buffer : buffers_) {
      if (!options_.reserve) SLATE_REQUIRE(cudaFree(buffer));
    }
    reservation_.release();
    SLATE_REQUIRE(cudaFree(table_));
    SLATE_REQUIRE(cudaFree(found_));
    SLATE_REQUIRE(cudaFreeHost(pinned_));
  }

 private:
  std::size_t bytes() const { return words_ * sizeof(std::uint32_t); }
  uint4* vectors(unsigned buffer) const { return reinterpret_cast<uint4*>(buffers_[buffer]); }
  unsigned blocks() const {
    return static_cast<unsigned>(
        std::min<std::uint64_t>(kMostBlocks, slate::kernels::blocks_for(words_ / 4, kThreads)));
  }
  /// The buffer at a place among those that this round touches.
  unsigned buffer_of(unsigned place) const {
    return static_cast<unsigned>((std::uint64_t{round_} * touch_ + place) % buffers_.size());
  }

  void launch(unsigned to, unsigned from, Step step, unsigned spin, cudaStream_t stream) {
    if (options_.indirect) {
      rewrite_listed<<<blocks(), kThreads, 0, stream>>>(table_, to, from, words_ / 4, step, spin);
    } else {
      rewrite_buffer<<<blocks(), kThreads, 0, stream>>>(vectors(to), vectors(from), words_ / 4,
                                                        step, spin);
    }
    SLATE_REQUIRE(cudaGetLastError());
  }

  /// First the even places from odd ones, then the odd ones from even ones: kernels on different
  /// streams never work on the same buffer, unless both only read it.
  void launch_round() {
    for (unsigned parity = 0; parity < 2; ++parity) {
      for (unsigned place = parity; place < touch_; place += 2) {
        const unsigned other = place % 2 == 1 ? place - 1 : place + 1 < touch_ ? place + 1 : place;
        const unsigned to = buffer_of(place), from = buffer_of(other);
        const Step step = contents_.step(round_, to, from);
        launch(to, from, step, spin_, streams_[place / 2 % streams_.size()]);
        contents_.rewrite(to, from, step);
      }
      for (const cudaStream_t stream : streams_) SLATE_REQUIRE(cudaStreamSynchronize(stream));
    }
  }

  /// An upload, a memset, a copy on the device and a download, in the windows of two buffers.
  void copy_some(unsigned to, unsigned from) {
    const std::uint32_t half = contents_.window_size() / 2, piece = half / 2;
    const std::uint64_t first = contents_.window_first();
    const std::uint32_t up = scrambled(round_, to, 1) % (2 * half - piece),
                        set = scrambled(round_, to, 2) % (2 * half - piece),
                        read = scrambled(round_, to, 3) % (half - piece + 1),
                        write = half + scrambled(round_, to, 4) % (half - piece + 1);
    const int value = static_cast<int>(scrambled(round_, to, 5) & 0xff);
    const cudaStream_t stream = streams_[round_ % streams_.size()];
    const std::size_t size = piece * sizeof(std::uint32_t);
    std::uint32_t* host = round_ % 2 == 0 ? pinned_ : pageable_.data();
    std::vector<std::uint32_t>& window = contents_.window(to);
    for (std::uint32_t i = 0; i < piece; ++i) host[i] = window[up + i] = scrambled(round_, i, 6);
    SLATE_REQUIRE(
        cudaMemcpyAsync(buffers_[to] + first + up, host, size, cudaMemcpyHostToDevice, stream));
    SLATE_REQUIRE(cudaMemsetAsync(buffers_[to] + first + set, value, size, stream));
    std::memset(&window[set], value, size);
    SLATE_REQUIRE(cudaMemcpyAsync(buffers_[to] + first + write, buffers_[from] + first + read, size,
                                  cudaMemcpyDeviceToDevice, stream));
    std::memmove(&window[write], &contents_.window(from)[read], size);
    SLATE_REQUIRE(cudaStreamSynchronize(stream));
    download_window(to, host, stream);
  }

  void download_window(unsigned buffer, std::uint32_t* host, cudaStream_t stream) {
    const std::uint64_t first = contents_.window_first();
    const std::size_t size = contents_.window_size() * sizeof(std::uint32_t);
    SLATE_REQUIRE(
        cudaMemcpyAsync(host, buffers_[buffer] + first, size, cudaMemcpyDeviceToHost, stream));
    SLATE_REQUIRE(cudaStreamSynchronize(stream));
    bool said = false;
    for (std::uint32_t i = 0; i < contents_.window_size(); ++i) {
      const std::uint32_t expected = contents_.window(buffer)[i];
      if (host[i] == expected) continue;
      ++wrong_;
      if (!said) complain(buffer, first + i, expected, host[i]);
      said = true;
    }
  }

  void complain(unsigned buffer, std::uint64_t index, std::uint32_t expected, std::uint32_t found) {
    std::printf("round %u: buffer %u, word %" PRIu64 " at %p is %08x, not %08x\n", round_, buffer,
                index, static_cast<void*>(buffers_[buffer] + index), found, expected);
    std::fflush(stdout);
  }

  void compare(unsigned buffer, Line line, std::uint32_t exempt) {
    SLATE_REQUIRE(cudaMemset(found_, 0, sizeof(Found)));
    check<<<blocks(), kThreads>>>(buffers_[buffer], words_, line, contents_.window_first(), exempt,
                                  found_);
    SLATE_REQUIRE(cudaGetLastError());
    Found found{};
    SLATE_REQUIRE(cudaMemcpy(&found, found_, sizeof found, cudaMemcpyDeviceToHost));
    hash_ = hash_ * 31 + found.hash;
    wrong_ += found.wrong;
    if (found.taken != 0) complain(buffer, found.index, line.at(found.index), found.value);
  }

  /// Milliseconds of a kernel that leaves a buffer as it is, the least of some.
  double kernel_ms(unsigned spin) {
    double least = 1e9;
    for (int i = 0; i < 4; ++i) {
      const double begin = seconds();
      launch(0, buffers_.size() > 1 ? 1 : 0, Step{}, spin, streams_[0]);
      SLATE_REQUIRE(cudaStreamSynchronize(streams_[0]));
      if (i > 0) least = std::min(least, (seconds() - begin) * 1e3);
    }
    return least;
  }

  /// Arithmetic of a kernel that memory bounds takes no time of its own.
  void calibrate() {
    const double wanted = options_.kernel_ms / touch_, none = kernel_ms(0);
    unsigned probe = 64;
    double some = kernel_ms(probe);
    for (; some < 2 * none + wanted / 4 && probe < kMostSpin; some = kernel_ms(probe)) probe *= 2;
    if (wanted > none) spin_ = static_cast<unsigned>(wanted / some * probe + 0.5);
  }

  const Options options_;
  const std::uint64_t words_;  // of each buffer
  const unsigned touch_;       // buffers that a round rewrites
  unsigned spin_;              // arithmetic for each word of a kernel
  Contents contents_;
  Reservation reservation_;  // of the buffers, with --reserve
  std::vector<std::uint32_t*> buffers_;
  std::vector<cudaStream_t> streams_;
  uint4** table_ = nullptr;  // on the device, for --indirect
  Found* found_ = nullptr;   // on the device
  std::uint32_t* pinned_ = nullptr;
  std::vector<std::uint32_t> pageable_;
  unsigned round_ = 0;
  unsigned long long wrong_ = 0, hash_ = 0;
  std::size_t free_ = 0, total_ = 0;
  double begun_ = 0, ended_ = 0, kernel_seconds_ = 0, longest_ = 0;
};

[[noreturn]] void explain(const char* wrong) {
  std::FILE* out = wrong != nullptr ? stderr : stdout;
  if (wrong != nullptr) std::fprintf(out, "tenant: %s makes no sense\n", wrong);
  for (const Option& option : kOptions) {
    std::fprintf(out, "  %s%s: %s\n", option.name, option.number != nullptr ? " NUMBER" : "",
                 option.help);
  }
  std::exit(wrong != nullptr ? 64 : 0);
}

Options read(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const Option* found = nullptr;
    if (std::strcmp(words[i], "--help") == 0) explain(nullptr);
    for (const Option& option : kOptions) {
      if (std::strcmp(option.name, words[i]) == 0) found = &option;
    }
    if (found == nullptr) explain(words[i]);
    if (found->flag != nullptr) {
      options.*(found->flag) = true;
      continue;
    }
    char* end = nullptr;
    if (++i == count || (options.*(found->number) = std::strtod(words[i], &end), *end != '\0') ||
        options.*(found->number) < 0)
      explain(found->name);
  }
  const double words_each = options.mib * (1 << 18) / options.buffers;
  if (options.buffers < 1 || options.touch > options.buffers) explain("--buffers");
  if (words_each < 64 || words_each > 0xffffffffu) explain("--mib");
  if (options.streams < 1) explain("--streams");
  return options;
}

}  // namespace

int main(int count, char** words) {
  Tenant tenant(read(count, words));
  tenant.allocate();
  tenant.start();
  tenant.work();
  const bool right = tenant.finish() == 0;
  tenant.release();
  return right ? 0 : 1;
}
