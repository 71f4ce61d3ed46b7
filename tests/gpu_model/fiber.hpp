// A function that can be left and entered again, on a stack of its own.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <ucontext.h>

namespace gpu_model {

class Fiber {
public:
  // Begins `function` at the next resume(); the fiber must not be in the middle of another.
  void start(void (*function)());
  // Runs the fiber until it suspends or its function returns. Called from outside of it.
  void resume();
  // Called inside the fiber.
  void suspend();
  [[nodiscard]] bool is_done() const { return is_done_; }

private:
  static void enter(unsigned high, unsigned low);

  static constexpr std::size_t stack_bytes = std::size_t{64} * 1024;
  std::unique_ptr<char[]> stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  std::jmp_buf inside_jump_{};
  std::jmp_buf outside_jump_{};
  void (*function_)() = nullptr;
  bool has_begun_ = false;
  bool is_done_ = false;
};

} // namespace gpu_model
