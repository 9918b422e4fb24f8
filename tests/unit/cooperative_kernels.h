// PTX whose blocks wait for one another, and whose blocks are in clusters: for the tests of both
// devices.
#pragma once

#include <string_view>

namespace slate::test {

/// meet(p): every block counts itself in p[0] and waits until all are there; p[1] becomes 1 if
/// there is a workspace for cooperative groups. ranks(p): p[block] = rank in its cluster + 100 *
/// the cluster's blocks. await(p): lets the next launch begin, then sets p[1] to p[0] once p[0] is
/// not 0, or after 0.1 s. tell(p): p[0] becomes 1.
inline constexpr std::string_view kCooperativePtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry meet(.param .u64 p)
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %tid.x;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $done;
	mov.u32 %r2, %nctaid.x;
	atom.add.release.gpu.global.u32 %r3, [%rd1], 1;
$wait:
	ld.acquire.gpu.global.u32 %r4, [%rd1];
	setp.lt.u32 %p2, %r4, %r2;
	@%p2 bra $wait;
	mov.u32 %r5, %envreg1;
	mov.u32 %r6, %envreg2;
	or.b32 %r5, %r5, %r6;
	setp.ne.u32 %p3, %r5, 0;
	selp.u32 %r5, 1, 0, %p3;
	st.global.u32 [%rd1+4], %r5;
$done:
	ret;
}
.visible .entry ranks(.param .u64 p)
{
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %cluster_ctarank;
	mov.u32 %r2, %cluster_nctarank;
	mad.lo.u32 %r1, %r2, 100, %r1;
	mov.u32 %r3, %ctaid.x;
	mul.wide.u32 %rd2, %r3, 4;
	add.u64 %rd1, %rd1, %rd2;
	st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry await(.param .u64 p)
{
	.reg .pred %p<3>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	griddepcontrol.launch_dependents;
	mov.u64 %rd2, %globaltimer;
	add.u64 %rd2, %rd2, 100000000;
$again:
	ld.acquire.gpu.global.u32 %r1, [%rd1];
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra $seen;
	mov.u64 %rd3, %globaltimer;
	setp.lt.u64 %p2, %rd3, %rd2;
	@%p2 bra $again;
$seen:
	st.global.u32 [%rd1+4], %r1;
	ret;
}
.visible .entry tell(.param .u64 p)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, 1;
	st.release.gpu.global.u32 [%rd1], %r1;
	ret;
}
)";

}  // namespace slate::test
