#include "tests/gpu_model/fiber.hpp"

#include <cstdint>

namespace gpu_model {

void Fiber::enter(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
  fiber->function_();
  fiber->is_done_ = true;
  fiber->suspend();
}

void Fiber::start(void (*function)()) {
  if (stack_ == nullptr) stack_ = std::make_unique_for_overwrite<char[]>(stack_bytes);
  function_ = function;
  is_done_ = false;
#if BILOGP_FIBERS_JUMP
  has_begun_ = false;
#endif
  getcontext(&inside_);
  inside_.uc_stack.ss_sp = stack_.get();
  inside_.uc_stack.ss_size = stack_bytes;
  inside_.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

void Fiber::resume() {
#if BILOGP_FIBERS_JUMP
  if (_setjmp(outside_jump_) != 0) return;
  if (has_begun_) _longjmp(inside_jump_, 1);
  has_begun_ = true;
  setcontext(&inside_);
#else
  swapcontext(&outside_, &inside_);
#endif
}

void Fiber::suspend() {
#if BILOGP_FIBERS_JUMP
  if (_setjmp(inside_jump_) == 0) _longjmp(outside_jump_, 1);
#else
  swapcontext(&inside_, &outside_);
#endif
}

} // namespace gpu_model
