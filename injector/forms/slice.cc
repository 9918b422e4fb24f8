#include "injector/forms/slice.h"

#include "injector/forms/block_index.h"
#include "injector/forms/function_copy.h"
#include "injector/forms/ptx_template.h"

namespace slate::injector {
namespace {

constexpr std::string_view kNumber = R"(	mov.u32 ~block, %ctaid.x;
	ld.param.u32 ~u, [<first>];
	add.u32 ~block, ~block, ~u;
)";

constexpr std::string_view kFindLeader = R"(	.reg .pred ~p;
	mov.u32 ~u, %tid.x;
	mov.u32 ~q, %tid.y;
	or.b32 ~u, ~u, ~q;
	mov.u32 ~q, %tid.z;
	or.b32 ~u, ~u, ~q;
	setp.ne.u32 ~p, ~u, 0;
	@~p bra $index;
)";

}  // namespace

Result<std::string> slice_form(const ptx::Module& module, const EntryAnalysis& entry,
                               const std::vector<bool>& copied, std::string_view name) {
  const ptx::Function& function = module.functions[entry.function];
  FunctionCopy copy(module, function, name);
  copy.add_parameter(parameter_declaration());
  std::string prologue = "\n" + block_index_registers() + expand(kNumber);
  if (entry.functions_read_block_index) {
    prologue += expand(kFindLeader) + publish_block_index() + expand("$index:\n\tbar.sync 0;\n");
  }
  copy.prepend(std::move(prologue));
  replace_block_index(function, copy);
  redirect_calls(module, function, copied, copy);
  return std::move(copy).text();
}

}  // namespace slate::injector
