// TextReader: the engine's side of a reader's process, which reads one module's text. Without a
// program to start, the text is read in this process: for tests, and for devices that run PTX in
// this process anyway. Its end ends the process. Thread: one at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/reader/reading.h"

namespace slate::daemon {

struct ReaderSettings {
  std::string program = {};  // path of slated; empty: texts are read in this process
  std::chrono::milliseconds most_cpu{20'000};   // processor time of one answer
  std::chrono::milliseconds most_wait{60'000};  // time of one answer on the clock
};

class TextReader {
 public:
  /// Whether nobody waits for the answer any more. May be a system call. Null: it is wanted.
  using IsOver = std::function<bool()>;

  /// Errors: kIo when no process can be started, or it cannot be confined.
  static Result<std::unique_ptr<TextReader>> open(const ReaderSettings& settings,
                                                  std::string_view text, const IsOver& is_over);
  virtual ~TextReader() = default;
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;

  // Errors of all: those of the text, with its words; kLimit when it takes too much memory or
  // processor time; kIo when it is no longer wanted, or the reader has ended otherwise. After a
  // kIo, or an answer of kInvalidValue, is_good() may be false.
  /// Bytes of the .global and .const variables that the module defines.
  Result<std::uint64_t> variable_bytes(const IsOver& is_over);
  /// As injector::place_variables(), with the variables' contents.
  Result<PlacedText> place_variables(std::span<const injector::PlacedVariable> placed,
                                     const IsOver& is_over);
  /// As move_home() of the text.
  Result<HomedCode> move_home(device::AddressRange home, const IsOver& is_over);
  /// As daemon::write_forms().
  Result<FormText> write_forms(const FormRequest& request, const IsOver& is_over);
  /// Whether it can be asked again.
  virtual bool is_good() const = 0;

 protected:
  TextReader() = default;

 private:
  /// The bytes of an answer.
  virtual Result<std::vector<std::byte>> ask(const Question& question, const IsOver& is_over) = 0;
};

}  // namespace slate::daemon
