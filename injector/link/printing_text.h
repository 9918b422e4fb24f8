// The PTX that with_builtins() links in for printf and assert. printing.h describes what it writes.
//
// Functions that put something into the ring take its address, or 0 to count only. They return the
// position behind what they put. So the same code measures and writes a record.
#pragma once

#include <string_view>

namespace slate::ptx {

inline constexpr std::string_view kRingText = R"(
.visible .global .align 8 .u64 __libslate_print_ring;
.func (.param .b64 $_next) __libslate_put_word(.param .b64 $_ring, .param .b64 $_position, .param .b64 $_word)
{
	.reg .pred %counts;
	.reg .b64 %ring, %position, %word, %place;
	ld.param.u64 %ring, [$_ring];
	ld.param.u64 %position, [$_position];
	ld.param.u64 %word, [$_word];
	setp.eq.u64 %counts, %ring, 0;
	@%counts bra $counted;
	ld.global.u64 %place, [%ring+16];
	and.b64 %place, %place, %position;
	add.u64 %place, %place, %ring;
	st.global.u64 [%place+64], %word;
$counted:
	add.u64 %position, %position, 8;
	st.param.b64 [$_next], %position;
	ret;
}
.func (.param .b64 $_next) __libslate_put_string(.param .b64 $_ring, .param .b64 $_position, .param .b64 $_string)
{
	.reg .pred %ends, %full;
	.reg .b32 %c, %shift;
	.reg .b64 %ring, %position, %string, %word, %wide;
	ld.param.u64 %ring, [$_ring];
	ld.param.u64 %position, [$_position];
	ld.param.u64 %string, [$_string];
$word:
	mov.u64 %word, 0;
	mov.u32 %shift, 0;
$byte:
	ld.u8 %c, [%string];
	add.u64 %string, %string, 1;
	cvt.u64.u32 %wide, %c;
	shl.b64 %wide, %wide, %shift;
	or.b64 %word, %word, %wide;
	add.u32 %shift, %shift, 8;
	setp.eq.u32 %ends, %c, 0;
	setp.eq.or.u32 %full, %shift, 64, %ends;
	@!%full bra $byte;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
	@!%ends bra $word;
	st.param.b64 [$_next], %position;
	ret;
}
.func __libslate_commit(.param .b64 $_ring, .param .b64 $_position)
{
	.reg .b64 %ring, %position, %place;
	ld.param.u64 %ring, [$_ring];
	ld.param.u64 %position, [$_position];
	ld.global.u64 %place, [%ring+16];
	and.b64 %place, %place, %position;
	add.u64 %place, %place, %ring;
	not.b64 %position, %position;
	membar.sys;
	st.volatile.global.u64 [%place+64], %position;
	ret;
}
)";

// A format and its arguments, as format_printed() of base/print_format.h takes them; at most 32.
// Returns the next position, with the number of arguments times 2^48 added.
inline constexpr std::string_view kPutFormatText = R"(
.func (.param .b64 $_next) __libslate_put_format(.param .b64 $_ring, .param .b64 $_position, .param .b64 $_format, .param .b64 $_list)
{
	.reg .pred %p, %q, %wide;
	.reg .b32 %c, %bit, %count;
	.reg .b64 %ring, %position, %format, %list, %word, %set;
	ld.param.u64 %ring, [$_ring];
	ld.param.u64 %position, [$_position];
	ld.param.u64 %format, [$_format];
	ld.param.u64 %list, [$_list];
	mov.u32 %count, 0;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %format;
	call ($_n), __libslate_put_string, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
$text:
	ld.u8 %c, [%format];
	add.u64 %format, %format, 1;
	setp.eq.u32 %p, %c, 0;
	@%p bra $done;
	setp.ne.u32 %p, %c, 37;
	@%p bra $text;
	setp.ne.u32 %wide, %c, 37;
$conversion:
	ld.u8 %c, [%format];
	setp.eq.u32 %p, %c, 0;
	@%p bra $done;
	add.u64 %format, %format, 1;
	setp.eq.u32 %p, %c, 42;
	@%p bra $narrow;
	and.b32 %bit, %c, 63;
	setp.ge.u32 %p, %c, 64;
	@%p bra $letter;
	mov.u64 %set, 0x03ff680900000000;
	shr.u64 %set, %set, %bit;
	and.b64 %set, %set, 1;
	setp.ne.u64 %p, %set, 0;
	@%p bra $conversion;
	bra $text;
$letter:
	setp.ge.u32 %p, %c, 128;
	@%p bra $text;
	setp.eq.u32 %p, %c, 104;
	@%p bra $conversion;
	mov.u64 %set, 0x0412140000001000;
	shr.u64 %set, %set, %bit;
	and.b64 %set, %set, 1;
	setp.ne.u64 %p, %set, 0;
	@%p setp.eq.u64 %wide, %set, 1;
	@%p bra $conversion;
	mov.u64 %set, 0x0120821001000000;
	shr.u64 %set, %set, %bit;
	and.b64 %set, %set, 1;
	setp.ne.u64 %p, %set, 0;
	setp.ne.and.u64 %q, %set, 0, %wide;
	@%q bra $eight;
	@%p bra $narrow;
	setp.eq.u32 %p, %c, 99;
	@%p bra $narrow;
	mov.u64 %set, 0x000900e2000000e2;
	shr.u64 %set, %set, %bit;
	and.b64 %set, %set, 1;
	setp.ne.u64 %p, %set, 0;
	@!%p bra $text;
$eight:
	setp.ge.u32 %p, %count, 32;
	@%p bra $text;
	add.u64 %list, %list, 7;
	and.b64 %list, %list, -8;
	ld.u64 %word, [%list];
	add.u64 %list, %list, 8;
	add.u32 %count, %count, 1;
	setp.eq.u32 %p, %c, 115;
	@%p bra $string;
	bra $put;
$string:
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_string, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
	bra $text;
$narrow:
	setp.ge.u32 %p, %count, 32;
	@%p bra $text;
	add.u64 %list, %list, 3;
	and.b64 %list, %list, -4;
	ld.u32 %word, [%list];
	add.u64 %list, %list, 4;
	add.u32 %count, %count, 1;
$put:
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
	setp.eq.u32 %p, %c, 42;
	@%p bra $conversion;
	bra $text;
$done:
	cvt.u64.u32 %word, %count;
	shl.b64 %word, %word, 48;
	add.u64 %position, %position, %word;
	st.param.b64 [$_next], %position;
	ret;
}
)";

inline constexpr std::string_view kPrintfText = R"(
.func (.param .b32 $_result) __libslate_vprintf(.param .b64 $_format, .param .b64 $_list)
{
	.reg .pred %p;
	.reg .b32 %result;
	.reg .b64 %ring, %position, %format, %list, %size, %count, %mask;
	ld.param.u64 %format, [$_format];
	ld.param.u64 %list, [$_list];
	mov.b32 %result, -1;
	setp.eq.u64 %p, %format, 0;
	@%p bra $over;
	mov.b32 %result, -2;
	ld.global.u64 %ring, [__libslate_print_ring];
	setp.eq.u64 %p, %ring, 0;
	@%p bra $over;
	{
	.param .b64 $_a, $_b, $_c, $_d, $_n;
	st.param.b64 [$_a], 0;
	st.param.b64 [$_b], 16;
	st.param.b64 [$_c], %format;
	st.param.b64 [$_d], %list;
	call ($_n), __libslate_put_format, ($_a, $_b, $_c, $_d);
	ld.param.b64 %size, [$_n];
	}
	shr.u64 %count, %size, 48;
	and.b64 %size, %size, 0xffffffffffff;
	ld.global.u64 %mask, [%ring+16];
	setp.gt.u64 %p, %size, %mask;
	@%p bra $over;
	atom.global.add.u64 %position, [%ring], %size;
	add.u64 %mask, %position, 8;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %mask;
	st.param.b64 [$_c], %size;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %mask, [$_n];
	}
	{
	.param .b64 $_a, $_b, $_c, $_d, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %mask;
	st.param.b64 [$_c], %format;
	st.param.b64 [$_d], %list;
	call ($_n), __libslate_put_format, ($_a, $_b, $_c, $_d);
	ld.param.b64 %size, [$_n];
	}
	{
	.param .b64 $_a, $_b;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	call __libslate_commit, ($_a, $_b);
	}
	cvt.u32.u64 %result, %count;
$over:
	st.param.b32 [$_result], %result;
	ret;
}
)";

// The strings begin behind the seven words of AssertWords.
inline constexpr std::string_view kAssertText = R"(
.func (.param .b64 $_next) __libslate_put_strings(.param .b64 $_ring, .param .b64 $_position, .param .b64 $_first, .param .b64 $_second, .param .b64 $_third)
{
	.reg .b64 %ring, %position, %string;
	ld.param.u64 %ring, [$_ring];
	ld.param.u64 %position, [$_position];
	ld.param.u64 %string, [$_first];
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %string;
	call ($_n), __libslate_put_string, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
	ld.param.u64 %string, [$_second];
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %string;
	call ($_n), __libslate_put_string, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
	ld.param.u64 %string, [$_third];
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	st.param.b64 [$_c], %string;
	call ($_n), __libslate_put_string, ($_a, $_b, $_c);
	ld.param.b64 %position, [$_n];
	}
	st.param.b64 [$_next], %position;
	ret;
}
.func __libslate_assertfail(.param .b64 $_message, .param .b64 $_file, .param .b32 $_line, .param .b64 $_function, .param .b64 $_char_size)
{
	.reg .pred %p;
	.reg .b32 %line, %x, %y, %z, %tx, %ty, %tz;
	.reg .b64 %ring, %position, %at, %word, %message, %file, %function, %size, %mask;
	ld.param.u64 %message, [$_message];
	ld.param.u64 %file, [$_file];
	ld.param.u32 %line, [$_line];
	ld.param.u64 %function, [$_function];
	ld.global.u64 %ring, [__libslate_print_ring];
	setp.eq.u64 %p, %ring, 0;
	@%p trap;
	{
	.param .b64 $_a, $_b, $_c, $_d, $_e, $_n;
	st.param.b64 [$_a], 0;
	st.param.b64 [$_b], 72;
	st.param.b64 [$_c], %message;
	st.param.b64 [$_d], %file;
	st.param.b64 [$_e], %function;
	call ($_n), __libslate_put_strings, ($_a, $_b, $_c, $_d, $_e);
	ld.param.b64 %size, [$_n];
	}
	ld.global.u64 %mask, [%ring+16];
	setp.gt.u64 %p, %size, %mask;
	@%p bra $over;
	atom.global.add.u64 %position, [%ring], %size;
	or.b64 %size, %size, 0x8000000000000000;
	mov.u32 %x, %ctaid.x;
	mov.u32 %y, %ctaid.y;
	mov.u32 %z, %ctaid.z;
	mov.u32 %tx, %tid.x;
	mov.u32 %ty, %tid.y;
	mov.u32 %tz, %tid.z;
	add.u64 %at, %position, 8;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %size;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %line;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %x;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %y;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %z;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %tx;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %ty;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	cvt.u64.u32 %word, %tz;
	{
	.param .b64 $_a, $_b, $_c, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %word;
	call ($_n), __libslate_put_word, ($_a, $_b, $_c);
	ld.param.b64 %at, [$_n];
	}
	{
	.param .b64 $_a, $_b, $_c, $_d, $_e, $_n;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %at;
	st.param.b64 [$_c], %message;
	st.param.b64 [$_d], %file;
	st.param.b64 [$_e], %function;
	call ($_n), __libslate_put_strings, ($_a, $_b, $_c, $_d, $_e);
	ld.param.b64 %size, [$_n];
	}
	{
	.param .b64 $_a, $_b;
	st.param.b64 [$_a], %ring;
	st.param.b64 [$_b], %position;
	call __libslate_commit, ($_a, $_b);
	}
$over:
	red.global.add.u64 [%ring+8], 1;
	exit;
}
)";

}  // namespace slate::ptx
