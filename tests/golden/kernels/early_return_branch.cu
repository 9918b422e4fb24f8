// Between the barriers lie branches: past a bounds check and a load (made into predicates), past
// more code with effects of its own (skipped by parked threads), and with two sides. Parked threads
// come along, and what they have written stays as it is.
extern "C" __global__ void early_return_branch(const unsigned* in, unsigned* out, unsigned count) {
  __shared__ unsigned cells[128];
  const auto* lives = reinterpret_cast<const unsigned char*>(in);
  const unsigned t = threadIdx.x;
  const unsigned base = blockIdx.x * blockDim.x;
  if (base + t >= count) return;
  const unsigned life = lives[base + t] % 8;
  unsigned value = in[base + t];
  cells[t] = value;
#pragma unroll
  for (unsigned round = 0; round < 3; ++round) {
    __syncthreads();
    if (life == round) {
      out[base + t] = value;
      return;
    }
    const unsigned other = (t + (5u << round)) % 128;
    if (base + other < count && lives[base + other] % 8 > 2) value += cells[other];
    if ((value & 12) == 4 * round) {
      unsigned bits = value;
      for (unsigned i = 0; i < 2; ++i) bits = __popc(bits ^ in[(bits + i) % count]) + (bits << 3);
      out[base + t] = bits;
      value ^= bits;
    }
    if (value & 1) {
      value += atomicXor(&out[base + t], value >> 1) & 6;
    } else {
      value += in[t];
    }
    __syncthreads();
    cells[t] = value;
  }
  out[base + t] = ~value;
}
