// Times one call (32 lanes) of the arithmetic that kernels use most, per instruction set of the
// host, with all lanes active and with half of them. Entries: name/isa/full or half. Single thread,
// no GPU.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>

#include "device/sim/alu_index.h"

namespace {

using slate::sim::AluIsa;
using slate::sim::AluOp;
using slate::sim::AluTable;

struct alignas(slate::sim::kRegisterAlign) Register {
  unsigned char bytes[512];
};

void run(benchmark::State& state, const AluOp& op, slate::sim::Mask active) {
  Register d = {}, d2 = {}, s[5];
  slate::sim::Mask carry = 0;
  for (int k = 0; k < 5; ++k) {
    // 1.5 or so as floats of both sizes, harmless as integers.
    for (std::size_t i = 0; i < sizeof(s[k].bytes); ++i) s[k].bytes[i] = i % 4 == 3 ? 0x3f : 0xc1;
  }
  slate::sim::AluOperands o;
  o.d = d.bytes;
  o.d2 = d2.bytes;
  for (int k = 0; k < 5; ++k) o.s[k] = s[k].bytes;
  o.carry = &carry;
  for (auto _ : state) {
    op.fn(o, active);
    benchmark::ClobberMemory();
  }
}

constexpr const char* kNames[] = {"mov.b32",
                                  "mov.b64",
                                  "add.s32",
                                  "add.s64",
                                  "mul.lo.s32",
                                  "mul.lo.s64",
                                  "mad.lo.s32",
                                  "mul.wide.s32",
                                  "mul.hi.u32",
                                  "shl.b32",
                                  "shr.s32",
                                  "shl.b64",
                                  "and.b32",
                                  "lop3.b32",
                                  "selp.b32",
                                  "min.s32",
                                  "setp.lt.s32",
                                  "setp.lt.f32",
                                  "setp.eq.s64",
                                  "setp.lt.f64",
                                  "add.f32",
                                  "mul.f32",
                                  "fma.rn.f32",
                                  "fma.rn.ftz.f32",
                                  "add.rz.f32",
                                  "max.f32",
                                  "fma.rn.f64",
                                  "div.rn.f32",
                                  "div.s32",
                                  "rem.u32",
                                  "div.u64",
                                  "sqrt.rn.f32",
                                  "rcp.approx.ftz.f32",
                                  "ex2.approx.ftz.f32",
                                  "lg2.approx.f32",
                                  "sin.approx.f32",
                                  "tanh.approx.f32",
                                  "cvt.rn.f32.s32",
                                  "cvt.rn.f32.u32",
                                  "cvt.rzi.s32.f32",
                                  "cvt.rzi.u32.f32",
                                  "cvt.s64.s32",
                                  "cvt.u32.u64",
                                  "cvt.f64.f32",
                                  "cvt.rn.f32.f64",
                                  "cvt.f32.f16",
                                  "cvt.rn.f16.f32",
                                  "cvt.u16.u32",
                                  "cvt.u32.u16",
                                  "fma.rn.f16x2",
                                  "add.cc.u32",
                                  "popc.b32",
                                  "prmt.b32",
                                  "bfe.u32",
                                  "set.lt.u32.s32"};

void add(const char* name, AluIsa isa) {
  const AluOp* op = AluTable::of(isa).find(name);
  if (op == nullptr) return;
  const std::string base = std::string(name) + (isa == AluIsa::kBase ? "/base/" : "/v3/");
  benchmark::RegisterBenchmark((base + "full").c_str(), [op](benchmark::State& state) {
    run(state, *op, slate::sim::kAllLanes);
  });
  benchmark::RegisterBenchmark((base + "half").c_str(),
                               [op](benchmark::State& state) { run(state, *op, 0x5a5a5a5a); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* name : kNames) {
    add(name, AluIsa::kBase);
    if (slate::sim::alu_isa_supported(AluIsa::kV3)) add(name, AluIsa::kV3);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
