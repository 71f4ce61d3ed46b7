// Guards that leave a thread's CUDA state as they found it.
#pragma once

#include "runtime/backends/cuda/driver.hpp"

namespace bilogp::cuda {

// Makes a context the thread's current one, and the former one again at the end.
class CurrentContext {
public:
  CurrentContext(const Driver& driver, Context context) : driver_(driver) {
    Context current = nullptr;
    driver.context_get_current(&current);
    if (current == context) return; // the usual case: a framework's thread already has it
    check(driver, driver.context_push_current(context), "making the device's context current");
    is_pushed_ = true;
  }
  ~CurrentContext() {
    Context popped = nullptr;
    if (is_pushed_) driver_.context_pop_current(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

private:
  const Driver& driver_;
  bool is_pushed_ = false;
};

// Lets this thread allocate and load while any stream is being captured: nothing done here belongs to a capture.
class OutsideCaptures {
public:
  explicit OutsideCaptures(const Driver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  ~OutsideCaptures() { driver_.exchange_capture_mode(&mode_); }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;

private:
  const Driver& driver_;
  CaptureMode mode_ = CaptureMode::relaxed;
};

} // namespace bilogp::cuda
