// PTX kernels that run one entry of the arithmetic table; see alu_ptx.h.
#include "tests/unit/sim_alu/alu_ptx.h"

#include <fmt/format.h>

#include "tests/unit/sim_alu/alu_inputs.h"

namespace slate::sim {
namespace {

std::string declare(const std::string& name, int bytes) {
  return bytes == 0 ? fmt::format(".reg .pred {};\n", name)
                    : fmt::format(".reg .b{} {};\n", 8 * bytes, name);
}

std::string load(const std::string& name, int bytes, int slot, std::uint32_t count) {
  const std::uint32_t offset = static_cast<std::uint32_t>(slot) * count * 8;
  if (bytes == 0) {
    return fmt::format("ld.global.u32 %t, [%in+{}];\nsetp.ne.u32 {}, %t, 0;\n", offset, name);
  }
  return fmt::format("ld.global.b{} {}, [%in+{}];\n", 8 * bytes, name, offset);
}

std::string store(const std::string& name, int bytes, std::uint32_t offset) {
  if (bytes == 0) {
    return fmt::format("selp.u32 %t, 1, 0, {};\nst.global.u32 [%out+{}], %t;\n", name, offset);
  }
  return fmt::format("st.global.b{} [%out+{}], {};\n", 8 * bytes, offset, name);
}

}  // namespace

AluSpelling spell(const std::string& name) {
  AluSpelling r{.text = name};
  const std::size_t width = name.find(".w");
  if (width != std::string::npos && name.find(':') != std::string::npos) {
    r.text = name.substr(0, width);
    r.d_bytes = name[width + 2] - '0';
    r.s_bytes = name[width + 4] - '0';
  }
  const std::size_t slash = r.text.find("/3");
  if (slash != std::string::npos) r.text.erase(slash, 2);
  return r;
}

std::string AluKernels::header() const {
  return ".version 9.0\n.target sm_90\n.address_size 64\n";
}

std::string AluKernels::kernel(int index, const std::string& name, const AluOp& op) const {
  const AluSpelling spelling = spell(name);
  const std::uint32_t second = count * 8;
  const bool of_half = op.s[0] == ptx::Type::kF16 || op.s[0] == ptx::Type::kBf16;
  const bool is_setp = name.starts_with("setp") && !of_half;  // with a second result
  const bool is_lop3 = name.starts_with("lop3");
  const bool is_lop3_predicate = is_lop3 && op.sources == 5;
  const bool subtracts = name.starts_with("sub");
  const int d_bytes = spelling.d_bytes != 0 ? spelling.d_bytes : lane_bytes_of(op.d);
  std::string text = fmt::format(
      ".visible .entry k{}(.param .u64 in, .param .u64 out)\n{{\n.reg .b32 %t, %u;\n"
      ".reg .b64 %in, %out, %o;\n.reg .pred %q;\n",
      index);
  text += declare("%d", d_bytes);
  std::string arguments;
  std::string loads;
  for (int k = 0; k < op.sources; ++k) {
    if (is_lop3 && k == 3) {
      arguments += fmt::format(", {}", lop3_table);
      continue;
    }
    const std::string source = fmt::format("%s{}", k);
    const int bytes = spelling.s_bytes != 0 ? spelling.s_bytes : lane_bytes_of(op.s[k]);
    text += declare(source, bytes);
    loads += load(source, bytes, k, count);
    arguments += fmt::format(", {}", source);
  }
  text +=
      "mov.u32 %t, %ctaid.x;\nmov.u32 %u, %ntid.x;\nmul.lo.u32 %t, %t, %u;\nmov.u32 %u, %tid.x;\n"
      "add.u32 %t, %t, %u;\nmul.wide.u32 %o, %t, 8;\nld.param.u64 %in, [in];\n"
      "ld.param.u64 %out, [out];\nadd.u64 %in, %in, %o;\nadd.u64 %out, %out, %o;\n" +
      loads;
  if (op.reads_carry) {
    text += fmt::format("ld.global.u32 %t, [%in+{}];\n", 5 * count * 8);
    text += subtracts ? "sub.cc.u32 %t, 0, %t;\n" : "add.cc.u32 %t, %t, 0xffffffff;\n";
  }
  text += fmt::format("{} %d{}{};\n", spelling.text, is_setp || is_lop3_predicate ? "|%q" : "",
                      arguments);
  if (op.writes_carry) {
    text += subtracts ? "subc.u32 %t, 0, 0;\nneg.s32 %t, %t;\n" : "addc.u32 %t, 0, 0;\n";
    text += store("%t", 4, second);
  }
  if (is_setp || is_lop3_predicate) text += store("%q", 0, second);
  return text + store("%d", d_bytes, 0) + "ret;\n}\n";
}

}  // namespace slate::sim
