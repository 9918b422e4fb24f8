// ThreadStep: one instruction of a kernel as one thread carries it out, on the numbers that are
// known of its registers. What it does not know how to compute is unknown. Immutable once built.
// Thread: any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "injector/analysis/registers.h"
#include "injector/ptx/module.h"

namespace slate::injector {

/// The shared variables that a function names, and those that it declares.
class SharedVariables {
 public:
  static constexpr std::size_t kMost = 64;  // of more, all() has one more than these

  /// `dynamic_bytes`: of the launch, for a variable without a size. Requires: the others outlive
  /// it.
  SharedVariables(const ptx::Module& module, const ptx::Function& function,
                  std::uint32_t dynamic_bytes);

  const std::vector<const ptx::Variable*>& all() const { return all_; }
  /// None of its own for one of several variables without a size, which lie at one place.
  std::uint64_t bytes(std::uint32_t index) const;
  bool has_dynamic() const { return dynamics_ != 0; }
  /// The index of the variable that the operand names.
  std::optional<std::uint32_t> of(const ptx::Operand& operand) const;
  std::optional<std::uint32_t> index_of(const ptx::Variable& variable) const;

 private:
  const ptx::Module& module_;
  const ptx::Function& function_;
  const std::uint32_t dynamic_bytes_;
  std::uint32_t dynamics_ = 0;  // variables without a size
  std::vector<const ptx::Variable*> all_;
};

/// What one thread's register holds: a number, or the address of a shared variable plus a number.
struct ThreadValue {
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  static constexpr std::uint32_t kNumber = kUnknown - 1;

  std::uint32_t base = kUnknown;  // the variable's index, twice, plus 1 if the address is generic
  std::uint64_t number = 0;       // all bits above the register's are 0; unknown: 0

  bool operator==(const ThreadValue&) const = default;
  bool is_number() const { return base == kNumber; }
  bool is_address() const { return base < kNumber; }
};

class ThreadStep {
 public:
  using Index = std::array<std::uint32_t, 3>;  // of a thread in its block
  /// Where an operand's value comes from.
  struct Source {
    enum class Kind : std::uint8_t { kNothing, kRegister, kFixed, kThread };
    Kind kind = Kind::kNothing;
    bool is_negated = false;
    std::uint32_t index = 0;  // of the register, or the axis
    ThreadValue fixed{};
  };

  /// One of which nothing is known.
  ThreadStep() = default;
  /// `block`: its threads along each axis.
  ThreadStep(const ptx::Instruction& instruction, const Registers& registers,
             const SharedVariables& variables, const Index& block);

  /// The register that value() is for; none: what the instruction writes is not known.
  std::optional<std::uint32_t> result() const { return result_; }
  /// Requires: result().
  ThreadValue value(std::span<const ThreadValue> registers, const Index& thread) const;

  static Source source_of(const ptx::Operand& operand, const Registers& registers,
                          const SharedVariables& variables, const Index& block);
  static ThreadValue read(const Source& source, std::span<const ThreadValue> registers,
                          const Index& thread);

 private:
  enum class Op : std::uint8_t;
  enum class Comparison : std::uint8_t;
  struct Named;
  static const Named kNamed[];

  void decode(const ptx::Instruction& instruction, const Registers& registers);
  bool decode_comparison(const ptx::Instruction& instruction);
  ThreadValue computed(const std::array<ThreadValue, 3>& values) const;
  ThreadValue sum(const ThreadValue& a, const ThreadValue& b, bool is_less) const;
  ThreadValue product(const ThreadValue& a, const ThreadValue& b) const;
  ThreadValue logic(const ThreadValue& a, const ThreadValue& b) const;
  ThreadValue shifted(std::uint64_t a, std::uint64_t by) const;
  ThreadValue divided(std::uint64_t a, std::uint64_t b) const;
  ThreadValue compared(const std::array<ThreadValue, 3>& values) const;
  ThreadValue converted(const ThreadValue& a) const;
  std::uint64_t extended(std::uint64_t bits, ptx::Type type) const;
  ThreadValue number(std::uint64_t bits) const;

  Op op_{};
  Comparison comparison_{};
  Op joined_{};  // what a comparison does with a further predicate
  ptx::Type type_ = ptx::Type::kNone;
  ptx::Type to_ = ptx::Type::kNone;  // of a conversion
  std::uint32_t result_bits_ = 0;
  bool is_wide_ = false;
  bool is_to_ = false;  // of cvta: from a generic address
  std::array<Source, 3> sources_{};
  std::optional<std::uint32_t> result_;
};

}  // namespace slate::injector
