// A function that can be left and entered again, on a stack of its own.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <ucontext.h>

// swapcontext asks the kernel for the signal mask each time; a jump does not, and is twenty times as fast. Sanitizers
// know the former only.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BILOGP_FIBERS_JUMP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BILOGP_FIBERS_JUMP 0
#endif
#endif
#ifndef BILOGP_FIBERS_JUMP
#define BILOGP_FIBERS_JUMP 1
#endif

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
#if BILOGP_FIBERS_JUMP
  std::jmp_buf inside_jump_{};
  std::jmp_buf outside_jump_{};
  bool has_begun_ = false;
#else
  ucontext_t outside_{};
#endif
  void (*function_)() = nullptr;
  bool is_done_ = false;
};

} // namespace gpu_model
