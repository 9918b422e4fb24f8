// malloc and free themselves, in PTX. They call functions of the other heap texts.
//
// Names of parameters begin with $_ in all of them: ptxas 13.0 crashes when a kernel has the name
// of some function's parameter.
#pragma once

#include <string_view>

namespace slate::ptx {

inline constexpr std::string_view kHeapText = R"(
.func (.param .b64 $_result) __libslate_malloc(.param .b64 $_size)
{
	.reg .pred %p;
	.reg .b32 %small;
	.reg .b64 %heap, %size, %result;
	ld.param.u64 %size, [$_size];
	mov.u64 %result, 0;
	ld.global.u64 %heap, [__libslate_heap];
	setp.eq.u64 %p, %heap, 0;
	@%p bra $over;
	max.u64 %size, %size, 1;
	setp.gt.u64 %p, %size, 2048;
	@%p bra $large;
	cvt.u32.u64 %small, %size;
	{
	.param .b64 $_a, $_r;
	.param .b32 $_b;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %small;
	call ($_r), __libslate_heap_unit, ($_a, $_b);
	ld.param.b64 %result, [$_r];
	}
	bra $over;
$large:
	{
	.param .b64 $_a, $_b, $_r;
	st.param.b64 [$_a], %heap;
	st.param.b64 [$_b], %size;
	call ($_r), __libslate_heap_pages, ($_a, $_b);
	ld.param.b64 %result, [$_r];
	}
$over:
	st.param.b64 [$_result], %result;
	ret;
}
.func __libslate_free(.param .b64 $_address)
{
	.reg .pred %p;
	.reg .b32 %page, %class, %n, %unit, %size, %count;
	.reg .b64 %heap, %address, %offset, %at, %bit;
	ld.param.u64 %address, [$_address];
	ld.global.u64 %heap, [__libslate_heap];
	setp.eq.u64 %p, %heap, 0;
	@%p bra $over;
	ld.global.u64 %at, [%heap];
	sub.u64 %offset, %address, %at;
	ld.global.u64 %at, [%heap+8];
	shr.u64 %bit, %offset, 10;
	setp.ge.u64 %p, %bit, %at;
	@%p bra $over;
	cvt.u32.u64 %page, %bit;
	ld.global.u64 %at, [%heap+48];
	mul.wide.u32 %bit, %page, 4;
	add.u64 %at, %at, %bit;
	ld.volatile.global.u32 %class, [%at];
	and.b32 %n, %class, 31;
	setp.eq.u32 %p, %n, 0;
	@%p bra $over;
	setp.ne.u32 %p, %n, 31;
	@%p bra $unit;
	and.b64 %bit, %offset, 1023;
	setp.ne.u64 %p, %bit, 0;
	@%p bra $over;
	shr.u32 %count, %class, 5;
	membar.gl;
	atom.global.cas.b32 %n, [%at], %class, 0;
	setp.ne.u32 %p, %n, %class;
	@%p bra $over;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_c;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %count;
	call __libslate_heap_release, ($_a, $_b, $_c);
	}
	bra $over;
$unit:
	shr.u32 %n, %class, 5;
	and.b32 %n, %n, 7;
	shr.u32 %page, %page, %n;
	shl.b32 %page, %page, %n;
	mul.wide.u32 %bit, %page, 1024;
	sub.u64 %offset, %offset, %bit;
	cvt.u32.u64 %n, %offset;
	shr.u32 %size, %class, 12;
	and.b32 %size, %size, 0xff0;
	div.u32 %unit, %n, %size;
	mul.lo.u32 %size, %size, %unit;
	setp.ne.u32 %p, %size, %n;
	@%p bra $over;
	shr.u32 %n, %class, 8;
	and.b32 %n, %n, 127;
	setp.ge.u32 %p, %unit, %n;
	@%p bra $over;
	ld.global.u64 %at, [%heap+40];
	mul.wide.u32 %bit, %page, 8;
	add.u64 %at, %at, %bit;
	ld.volatile.global.u64 %offset, [%at];
	mov.u64 %bit, 1;
	shl.b64 %bit, %bit, %unit;
	and.b64 %offset, %offset, %bit;
	setp.ne.u64 %p, %offset, 0;
	@%p bra $over;
	membar.gl;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_c, $_d;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %unit;
	st.param.b32 [$_d], %class;
	call __libslate_heap_put, ($_a, $_b, $_c, $_d);
	}
$over:
	ret;
}
)";

}  // namespace slate::ptx
