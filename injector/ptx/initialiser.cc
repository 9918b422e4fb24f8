// The initial contents of variables: numbers, addresses and nested braces become bytes and fixups.
#include <bit>
#include <cstring>

#include "injector/ptx/constant.h"
#include "injector/ptx/declaration.h"

namespace slate::ptx {
namespace {

bool is_opaque(Type type) {
  return type == Type::kTexref || type == Type::kSamplerref || type == Type::kSurfref;
}

class Initialiser {
 public:
  Initialiser(Cursor& cursor, Variable& variable, const std::vector<std::uint64_t>& dimensions,
              std::uint64_t& implied)
      : cursor_(cursor), variable_(variable), implied_(implied) {
    width_ = type_bytes(variable.type);
    std::uint64_t extent = width_;
    extents_.push_back(extent);
    if (variable.vector > 1) extents_.push_back(extent *= variable.vector);
    counted_ = !dimensions.empty() && dimensions.front() == 0;
    for (std::size_t i = dimensions.size(); i-- > (counted_ ? 1u : 0u);) {
      extents_.push_back(extent *= dimensions[i]);
    }
    if (counted_) extents_.push_back(UINT64_MAX);
  }

  void parse() {
    std::size_t level = extents_.size() - 1;
    if (cursor_.accept('{')) {
      // Braces around a plain number are allowed, as in C.
      parse_list(level, 0);
    } else {
      parse_scalar(0);
    }
    if (counted_) count();
  }

 private:
  /// Takes items through the closing brace; extents_[level] is the room.
  void parse_list(std::size_t level, std::uint64_t begin) {
    std::uint64_t position = begin;
    while (!cursor_.at_end() && !cursor_.at('}')) {
      if (position - begin >= extents_[level]) {
        cursor_.fail("more initial values than elements");
        return;
      }
      if (cursor_.accept('{')) {
        if (level == 0) {
          cursor_.fail("braces deeper than the array");
          return;
        }
        parse_list(level - 1, position);
        position += extents_[level - 1];
      } else {
        parse_scalar(position);
        position += width_;
      }
      if (!cursor_.accept(',')) break;
    }
    cursor_.expect('}', "after initial values");
    end_ = std::max(end_, position);
  }

  void parse_scalar(std::uint64_t offset) {
    if (width_ == 0 || variable_.space == Space::kReg) {
      cursor_.fail("initial value for a variable that takes none");
      return;
    }
    if (!make_room(offset)) return;
    if (cursor_.at(TokenKind::kWord) && cursor_.view(cursor_.peek()) != "WARP_SZ") {
      variable_.fixups.push_back(parse_address(offset));
      return;
    }
    const Constant value = parse_constant(cursor_);
    if (cursor_.accept('(')) {  // 0xFF00(symbol): one byte of an address
      Variable::Fixup fixup = parse_address(offset);
      fixup.shift = value.bits == 0 ? 0 : static_cast<std::uint32_t>(std::countr_zero(value.bits));
      cursor_.expect(')', "after a masked address");
      variable_.fixups.push_back(fixup);
      return;
    }
    store(offset, value);
  }

  bool make_room(std::uint64_t offset) {
    if (offset > variable_.initial.size()) {
      implied_ += offset - variable_.initial.size();
      if (implied_ > kMaxImpliedBytes) {
        cursor_.fail("initial values too sparse");
        return false;
      }
    }
    if (variable_.initial.size() < offset + width_) {
      cursor_.charge(offset + width_ - variable_.initial.size());
      variable_.initial.resize(offset + width_);
    }
    return !cursor_.failed();
  }

  Variable::Fixup parse_address(std::uint64_t offset) {
    cursor_.charge(sizeof(Variable::Fixup));
    Variable::Fixup fixup{.offset = offset,
                          .symbol = cursor_.expect_name("a symbol"),
                          .addend = 0,
                          .generic = false,
                          .bytes = static_cast<std::uint8_t>(width_)};
    if (fixup.symbol == "generic" && cursor_.accept('(')) {
      fixup.generic = true;
      fixup.symbol = cursor_.expect_name("a symbol");
      parse_addend(fixup);
      cursor_.expect(')', "after generic(symbol");
    }
    parse_addend(fixup);
    return fixup;
  }

  void parse_addend(Variable::Fixup& fixup) {
    if (!cursor_.at('+') && !cursor_.at('-')) return;
    cursor_.accept('+');
    // In unsigned arithmetic: a stranger's addends may overflow.
    fixup.addend = static_cast<std::int64_t>(static_cast<std::uint64_t>(fixup.addend) +
                                             parse_constant(cursor_).bits);
  }

  void store(std::uint64_t offset, const Constant& value) {
    std::uint64_t bits = value.bits;
    const Type type = variable_.type;
    if (type == Type::kF64 || (value.is_float() && type == Type::kB64)) {
      if (value.float_bits != 64) bits = std::bit_cast<std::uint64_t>(value.as_double());
    } else if (type == Type::kF32 || (value.is_float() && type == Type::kB32)) {
      if (value.float_bits != 32) {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(value.as_double()));
      }
    } else if (value.is_float()) {
      cursor_.fail("floating-point value for an integer variable before this");
      return;
    }
    // Little-endian, as the device is; a 16-byte element takes the sign of its 64-bit constant.
    std::memcpy(variable_.initial.data() + offset, &bits, std::min<std::uint64_t>(width_, 8));
    if (width_ == 16 && value.kind == Constant::Kind::kSigned && bits >> 63 != 0) {
      std::memset(variable_.initial.data() + offset + 8, 0xff, 8);
    }
  }

  void count() {
    const std::uint64_t element = extents_[extents_.size() - 2];
    if (element == 0) return;
    const std::uint64_t rows = (end_ + element - 1) / element;
    variable_.bytes = rows * element;
    variable_.elements = variable_.bytes / width_ / variable_.vector;
  }

  Cursor& cursor_;
  Variable& variable_;
  std::uint64_t& implied_;
  std::vector<std::uint64_t> extents_;  // bytes of a scalar, a vector, a row ... the whole
  std::uint64_t width_ = 0;
  std::uint64_t end_ = 0;
  bool counted_ = false;
};

/// The fields of a sampler or texture reference mean nothing here.
void skip_opaque(Cursor& cursor) {
  int depth = 0;
  while (!cursor.at_end()) {
    if (depth == 0 && (cursor.at(';') || cursor.at(','))) return;
    if (cursor.at('{')) ++depth;
    if (cursor.at('}')) --depth;
    cursor.take();
  }
}

}  // namespace

void parse_initialiser(Cursor& cursor, Variable& variable,
                       const std::vector<std::uint64_t>& dimensions, std::uint64_t& implied) {
  if (is_opaque(variable.type)) {
    skip_opaque(cursor);
  } else {
    Initialiser(cursor, variable, dimensions, implied).parse();
  }
}

}  // namespace slate::ptx
