#include "runtime/backends/cpu/component/crash_guard.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <cfenv>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>
#include <vector>

#include "llvm/Support/ErrorHandling.h"

namespace bilogp::clang_component {
namespace {

constexpr std::size_t stack_bytes = 8U << 20, guard_bytes = 1U << 20; // a frame may be larger than a page
constexpr std::size_t signal_stack_bytes = 64U << 10, gap_bytes = 64U << 10;
constexpr std::array crash_signals = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};

// How a thread of ours gets out of a crash.
struct Recovery {
  sigjmp_buf frame;
  int signal = 0;     // that told of the crash
  std::string reason; // what LLVM gave up with, when it said so
};

// Null on the host's threads. Initial-exec: a signal handler reads it, which must not allocate.
__attribute__((tls_model("initial-exec"))) thread_local Recovery* recovery = nullptr;

// LLVM calls this before it ends the process. Only our own threads can be saved.
void on_fatal_error(void*, const char* reason, bool) {
  if (recovery == nullptr) return;
  recovery->reason = reason;
  siglongjmp(recovery->frame, 1);
}

std::array<struct sigaction, crash_signals.size()> host_actions; // what was there before

void pass_to_host(std::size_t index, int signal, siginfo_t* info, void* context) {
  const struct sigaction& host = host_actions[index];
  const bool takes_info = (host.sa_flags & SA_SIGINFO) != 0;
  if (takes_info && host.sa_sigaction != nullptr) return host.sa_sigaction(signal, info, context);
  if (host.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (host.sa_handler != SIG_DFL && host.sa_handler != SIG_IGN) return host.sa_handler(signal);
  struct sigaction fallback = {};
  fallback.sa_handler = SIG_DFL;
  sigaction(signal, &fallback, nullptr);
  if (info->si_code <= 0) raise(signal); // one that was sent; a fault comes again by itself
}

void on_crash_signal(int signal, siginfo_t* info, void* context) {
  if (recovery != nullptr) {
    recovery->signal = signal;
    siglongjmp(recovery->frame, 1);
  }
  for (std::size_t i = 0; i < crash_signals.size(); ++i)
    if (crash_signals[i] == signal) pass_to_host(i, signal, info, context);
}

// There while any compile runs; compiles may overlap.
class CrashHandlers {
public:
  CrashHandlers() {
    const std::scoped_lock lock(mutex());
    if (users()++ > 0) return;
    struct sigaction ours = {};
    ours.sa_sigaction = on_crash_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (std::size_t i = 0; i < crash_signals.size(); ++i) {
      sigaction(crash_signals[i], nullptr, &host_actions[i]); // known before the first signal can be passed on
      sigaction(crash_signals[i], &ours, nullptr);
    }
    llvm::install_fatal_error_handler(on_fatal_error);
  }

  ~CrashHandlers() {
    const std::scoped_lock lock(mutex());
    if (--users() > 0) return;
    llvm::remove_fatal_error_handler();
    for (std::size_t i = 0; i < crash_signals.size(); ++i) {
      // A handler that the host installed in the meantime stays.
      struct sigaction present = {};
      sigaction(crash_signals[i], nullptr, &present);
      if (present.sa_sigaction == on_crash_signal) sigaction(crash_signals[i], &host_actions[i], nullptr);
    }
  }

  CrashHandlers(const CrashHandlers&) = delete;
  CrashHandlers& operator=(const CrashHandlers&) = delete;

private:
  static std::mutex& mutex() {
    static std::mutex the_mutex;
    return the_mutex;
  }
  static int& users() {
    static int count = 0;
    return count;
  }
};

// The stack of one compile, with a guard below it.
//
// After a crash it must stay as it is to the end of the process: LLVM has lists of the process that then still hold
// objects of the frames that were jumped over (its timers, for one), and would write through them into whatever
// uses that memory next.
class Stack {
public:
  Stack() {
    void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<char*>(memory);
    mprotect(memory_, guard_bytes, PROT_NONE);
  }
  ~Stack() {
    if (memory_ != nullptr) munmap(memory_, guard_bytes + stack_bytes);
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  [[nodiscard]] bool usable() const { return memory_ != nullptr; }
  [[nodiscard]] char* lowest() const { return memory_ + guard_bytes; }
  void keep() { memory_ = nullptr; }

private:
  char* memory_ = nullptr;
};

// A crash by an overflow of the stack leaves no room on it for the handler. What was there before is put back: a
// sanitizer sets up every thread and expects to find its own.
class SignalStack {
public:
  SignalStack() {
    stack_t ours = {};
    ours.ss_sp = memory_.data();
    ours.ss_size = memory_.size();
    sigaltstack(&ours, &before_);
  }
  ~SignalStack() { sigaltstack(&before_, nullptr); }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

private:
  std::vector<char> memory_ = std::vector<char>(signal_stack_bytes);
  stack_t before_ = {};
};

struct Job {
  const std::function<void()>& work;
  std::string failure;
};

// Puts the frames of the work far below those of run_job, which goes on after a crash and must not write over them.
__attribute__((noinline)) void run_below(const std::function<void()>& work) {
  char gap[gap_bytes];
  __asm__ volatile("" : : "r"(gap) : "memory");
  work();
  __asm__ volatile("" : : "r"(gap) : "memory"); // no tail call
}

// The thread starts with the caller's rounding mode and flush-to-zero bits, which LLVM's constant folding must not see.
void* run_job(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  std::fesetenv(FE_DFL_ENV);
  const SignalStack signal_stack;
  Recovery ours;
  recovery = &ours;
  if (sigsetjmp(ours.frame, 1) == 0) {
    run_below(job.work);
  } else {
    job.failure = ours.signal != 0 ? std::string("clang crashed (") + strsignal(ours.signal) + ")"
                                   : "LLVM gave up: " + ours.reason;
  }
  recovery = nullptr;
  return nullptr;
}

// The host's signals are for the host's threads.
class BlockedSignals {
public:
  BlockedSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int signal : crash_signals) sigdelset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

private:
  sigset_t before_ = {};
};

int start_thread(pthread_t& thread, const Stack& stack, Job& job) {
  const BlockedSignals blocked; // inherited by the new thread
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack.lowest(), stack_bytes);
  const int status = pthread_create(&thread, &attributes, run_job, &job);
  pthread_attr_destroy(&attributes);
  return status;
}

} // namespace

std::string run_guarded(const std::function<void()>& work) {
  Stack stack;
  if (!stack.usable()) return "there is no memory for a stack of 8 MB";
  const CrashHandlers handlers;
  Job job{work, {}};
  pthread_t thread = {};
  const int status = start_thread(thread, stack, job);
  if (status != 0) return std::string("cannot start a thread with a stack of 8 MB: ") + std::strerror(status);
  pthread_join(thread, nullptr);
  if (!job.failure.empty()) stack.keep();
  return job.failure;
}

} // namespace bilogp::clang_component
