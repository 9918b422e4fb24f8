// The heap's pages, in PTX: they serve malloc of more than 2048 bytes. The words that this text
// reads by their offsets are HeapHeader's, in heap.h.
#pragma once

#include <string_view>

namespace slate::ptx {

// The variable, and these functions:
// - release: gives `count` pages from `page` on back, and updates the hints and the state.
// - run: returns the lowest `count` free pages in a row; -1: none.
// - claim: takes these pages; 1: it did. Of threads that want the same pages the one that is ahead
//   goes on, so one of them succeeds.
// - pages: malloc of more than 2048 bytes.
inline constexpr std::string_view kHeapPagesText = R"(
.visible .global .align 8 .u64 __libslate_heap;
.func __libslate_heap_release(.param .b64 $_heap, .param .b32 $_page, .param .b32 $_count)
{
	.reg .pred %p;
	.reg .b32 %page, %count, %left, %word, %shift;
	.reg .b64 %heap, %bits, %mask, %at;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %page, [$_page];
	ld.param.u32 %count, [$_count];
	ld.global.u64 %bits, [%heap+24];
	shr.u32 %word, %page, 6;
	and.b32 %shift, %page, 63;
	membar.gl;
$word:
	sub.u32 %left, 64, %shift;
	min.u32 %left, %left, %count;
	mov.u64 %mask, 1;
	shl.b64 %mask, %mask, %left;
	sub.u64 %mask, %mask, 1;
	shl.b64 %mask, %mask, %shift;
	not.b64 %mask, %mask;
	mul.wide.u32 %at, %word, 8;
	add.u64 %at, %at, %bits;
	red.global.and.b64 [%at], %mask;
	sub.u32 %count, %count, %left;
	mov.u32 %shift, 0;
	add.u32 %word, %word, 1;
	setp.ne.u32 %p, %count, 0;
	@%p bra $word;
	sub.u32 %word, %word, 1;
	red.global.max.u32 [%heap+384], %word;
	shr.u32 %word, %page, 6;
	red.global.min.u32 [%heap+256], %word;
	membar.gl;
	red.global.add.u64 [%heap+128], 0x1000000;
	ret;
}
.func (.param .b32 $_result) __libslate_heap_run(.param .b64 $_heap, .param .b32 $_count)
{
	.reg .pred %p, %whole, %first, %small;
	.reg .b32 %count, %words, %word, %run, %n, %k, %left;
	.reg .b64 %heap, %bits, %at, %set, %free, %other;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %count, [$_count];
	ld.global.u64 %bits, [%heap+24];
	ld.global.u32 %words, [%heap+16];
	ld.volatile.global.u32 %word, [%heap+256];
	setp.eq.u32 %whole, %word, 0;
	setp.lt.u32 %small, %count, 64;
	setp.eq.u32 %first, %count, %count;
$pass:
	mov.u32 %run, 0;
$word:
	setp.ge.u32 %p, %word, %words;
	@%p bra $top;
	mul.wide.u32 %at, %word, 8;
	add.u64 %at, %at, %bits;
	ld.volatile.global.u64 %set, [%at];
	setp.eq.u64 %p, %set, -1;
	@%p bra $full;
	setp.ne.u32 %first, %count, %count;
	brev.b64 %free, %set;
	clz.b64 %n, %free;
	add.u32 %n, %n, %run;
	setp.ge.u32 %p, %n, %count;
	@%p bra $here;
	setp.eq.u64 %p, %set, 0;
	@%p bra $empty;
	@!%small bra $tail;
	not.b64 %free, %set;
	mov.u32 %left, %count;
$shorten:
	shr.u32 %k, %left, 1;
	setp.eq.u32 %p, %k, 0;
	@%p bra $look;
	shr.u64 %other, %free, %k;
	and.b64 %free, %free, %other;
	sub.u32 %left, %left, %k;
	bra $shorten;
$look:
	setp.eq.u64 %p, %free, 0;
	@%p bra $tail;
	brev.b64 %free, %free;
	clz.b64 %n, %free;
	mad.lo.u32 %n, %word, 64, %n;
	bra $over;
$tail:
	clz.b64 %run, %set;
	add.u32 %word, %word, 1;
	bra $word;
$empty:
	mov.u32 %run, %n;
	add.u32 %word, %word, 1;
	bra $word;
$full:
	add.u32 %n, %word, 1;
	@%first atom.global.cas.b32 %k, [%heap+256], %word, %n;
	mov.u32 %run, 0;
	mov.u32 %word, %n;
	bra $word;
$here:
	shl.b32 %n, %word, 6;
	sub.u32 %n, %n, %run;
	bra $over;
$top:
	mov.u32 %n, -1;
	@%whole bra $over;
	setp.eq.u32 %whole, %count, %count;
	setp.ne.u32 %first, %count, %count;
	mov.u32 %word, 0;
	bra $pass;
$over:
	st.param.b32 [$_result], %n;
	ret;
}
.func (.param .b32 $_result) __libslate_heap_claim(.param .b64 $_heap, .param .b32 $_page, .param .b32 $_count)
{
	.reg .pred %p;
	.reg .b32 %page, %count, %word, %shift, %left, %done, %result;
	.reg .b64 %heap, %bits, %at, %mask, %set, %new, %got;
	ld.param.u64 %heap, [$_heap];
	ld.param.u32 %page, [$_page];
	ld.param.u32 %count, [$_count];
	ld.global.u64 %bits, [%heap+24];
	mov.u32 %result, 0;
	mov.u32 %done, 0;
	red.global.add.u64 [%heap+128], 1;
	membar.gl;
	shr.u32 %word, %page, 6;
	and.b32 %shift, %page, 63;
$word:
	sub.u32 %left, 64, %shift;
	min.u32 %left, %left, %count;
	mov.u64 %mask, 1;
	shl.b64 %mask, %mask, %left;
	sub.u64 %mask, %mask, 1;
	shl.b64 %mask, %mask, %shift;
	mul.wide.u32 %at, %word, 8;
	add.u64 %at, %at, %bits;
	ld.volatile.global.u64 %got, [%at];
$claim:
	mov.u64 %set, %got;
	and.b64 %new, %set, %mask;
	setp.ne.u64 %p, %new, 0;
	@%p bra $lost;
	or.b64 %new, %set, %mask;
	atom.global.cas.b64 %got, [%at], %set, %new;
	setp.ne.u64 %p, %got, %set;
	@%p bra $claim;
	add.u32 %done, %done, %left;
	sub.u32 %count, %count, %left;
	mov.u32 %shift, 0;
	add.u32 %word, %word, 1;
	setp.ne.u32 %p, %count, 0;
	@%p bra $word;
	mov.u32 %result, 1;
	bra $over;
$lost:
	setp.eq.u32 %p, %done, 0;
	@%p bra $over;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_c;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %done;
	call __libslate_heap_release, ($_a, $_b, $_c);
	}
$over:
	membar.gl;
	red.global.add.u64 [%heap+128], 0xffffff;
	st.param.b32 [$_result], %result;
	ret;
}
.func (.param .b64 $_result) __libslate_heap_pages(.param .b64 $_heap, .param .b64 $_size)
{
	.reg .pred %p;
	.reg .b32 %count, %page, %claimed, %looks;
	.reg .b64 %heap, %before, %after, %result;
	ld.param.u64 %heap, [$_heap];
	ld.param.u64 %result, [$_size];
	sub.u64 %result, %result, 1;
	shr.u64 %result, %result, 10;
	ld.global.u64 %after, [%heap+8];
	setp.lt.u64 %p, %result, %after;
	cvt.u32.u64 %count, %result;
	add.u32 %count, %count, 1;
	mov.u64 %result, 0;
	mov.u64 %before, -1;
	mov.u32 %looks, 256;
	@!%p bra $over;
$again:
	{
	.param .b64 $_a;
	.param .b32 $_b, $_r;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %count;
	call ($_r), __libslate_heap_run, ($_a, $_b);
	ld.param.b32 %page, [$_r];
	}
	setp.eq.u32 %p, %page, -1;
	@%p bra $full;
	{
	.param .b64 $_a;
	.param .b32 $_b, $_c, $_r;
	st.param.b64 [$_a], %heap;
	st.param.b32 [$_b], %page;
	st.param.b32 [$_c], %count;
	call ($_r), __libslate_heap_claim, ($_a, $_b, $_c);
	ld.param.b32 %claimed, [$_r];
	}
	setp.eq.u32 %p, %claimed, 0;
	@%p bra $again;
	ld.global.u64 %after, [%heap+48];
	mul.wide.u32 %result, %page, 4;
	add.u64 %after, %after, %result;
	mad.lo.u32 %count, %count, 32, 31;
	st.volatile.global.u32 [%after], %count;
	membar.gl;
	ld.global.u64 %after, [%heap];
	mul.wide.u32 %result, %page, 1024;
	add.u64 %result, %result, %after;
	bra $over;
$full:
	membar.gl;
	ld.volatile.global.u64 %after, [%heap+128];
	membar.gl;
	sub.u32 %looks, %looks, 1;
	setp.eq.u32 %p, %looks, 0;
	@%p bra $over;
	setp.ne.u64 %p, %after, %before;
	mov.u64 %before, %after;
	@%p bra $again;
	and.b64 %after, %after, 0xffffff;
	setp.ne.u64 %p, %after, 0;
	@%p bra $again;
$over:
	st.param.b64 [$_result], %result;
	ret;
}
)";

}  // namespace slate::ptx
