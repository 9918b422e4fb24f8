// malloc and free, in pieces of all sizes; another block may get what one gave back.
extern "C" __global__ void heap(const unsigned* in, unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned sum = 0;
  for (unsigned round = 0; round < 2; ++round) {
    const unsigned words = 1 + (in[i] >> round) % (i % 17 == 0 ? 900 : 40);
    unsigned* const piece = static_cast<unsigned*>(malloc(words * sizeof(unsigned)));
    if (piece == nullptr) return;
    for (unsigned k = 0; k < words; k += 7) piece[k] = in[(i + k) % count];
    for (unsigned k = 0; k < words; k += 7) sum += piece[k] ^ k;
    free(piece);
  }
  out[i] = sum;
}
