// Inline assembly: scopes with names of their own, the same labels twice, tensor map and cluster operands.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ __forceinline__ void wait(unsigned barrier, unsigned phase) {
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
               "@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(barrier), "r"(phase));
}
__global__ void __cluster_dims__(2, 1, 1) scopes(float* b, long long* q, unsigned s, int* i) {
  auto cluster = cg::this_cluster();
  extern __shared__ int shared[];
  *cluster.map_shared_rank(shared, 1) = 4;
  cluster.sync();
  wait(s, 0);
  wait(s + 8, 1);
  asm volatile("{ .reg .b32 r<3>; .reg .pred p; setp.eq.s32 p, %1, 0; mov.b32 r2, 5; { .reg .b32 r<3>; mov.b32 r2, 7; "
               "@!p add.s32 r1, %1, r2; } add.s32 %0, r2, 4; }" : "=r"(i[3]) : "r"(i[4]));
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(s), "l"(b), "r"(2), "r"(3), "r"(s + 16));
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(q[0]));
  asm("vadd.s32.s32.s32.sat %0, %1.b0, %2.h1, %3;" : "=r"(i[0]) : "r"(i[1]), "r"(i[2]), "r"(i[5]));
  asm("ld.global.L1::no_allocate.L2::128B.v4.f32 {%0, %1, %2, %3}, [%4+16];"
      : "=f"(b[20]), "=f"(b[21]), "=f"(b[22]), "=f"(b[23]) : "l"(b));
  asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;");
}
