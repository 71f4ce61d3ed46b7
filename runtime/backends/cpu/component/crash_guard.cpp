#include "runtime/backends/cpu/component/crash_guard.hpp"

#include <pthread.h>

#include <array>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <mutex>
#include <vector>

#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"

namespace bilogp::clang_component {
namespace {

constexpr std::size_t stack_bytes = 8U << 20, signal_stack_bytes = 64U << 10;
constexpr std::array crash_signals = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};

// What LLVM gave up with on this thread, when it said so; null on the host's threads. Initial-exec: a signal handler
// reads it, which must not allocate.
__attribute__((tls_model("initial-exec"))) thread_local std::string* fatal_reason = nullptr;

// LLVM calls this before it ends the process. Only our own threads can be saved.
void on_fatal_error(void*, const char* reason, bool) {
  if (fatal_reason == nullptr) return;
  *fatal_reason = reason;
  llvm::CrashRecoveryContext::GetCurrent()->HandleExit(1);
}

std::array<struct sigaction, crash_signals.size()> host_actions;     // what was there before
std::array<struct sigaction, crash_signals.size()> recovery_actions; // LLVM's

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
  for (std::size_t i = 0; i < crash_signals.size(); ++i) {
    if (crash_signals[i] != signal) continue;
    if (fatal_reason == nullptr) return pass_to_host(i, signal, info, context);
    recovery_actions[i].sa_handler(signal); // jumps back into run_safely
  }
}

// There while any compile runs; compiles may overlap.
class CrashHandlers {
public:
  CrashHandlers() {
    const std::scoped_lock lock(mutex());
    if (users()++ > 0) return;
    for (std::size_t i = 0; i < crash_signals.size(); ++i) sigaction(crash_signals[i], nullptr, &host_actions[i]);
    llvm::CrashRecoveryContext::Enable();
    struct sigaction ours = {};
    ours.sa_sigaction = on_crash_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (std::size_t i = 0; i < crash_signals.size(); ++i) sigaction(crash_signals[i], &ours, &recovery_actions[i]);
    llvm::install_fatal_error_handler(on_fatal_error);
  }

  ~CrashHandlers() {
    const std::scoped_lock lock(mutex());
    if (--users() > 0) return;
    llvm::remove_fatal_error_handler();
    std::array<struct sigaction, crash_signals.size()> present = {};
    for (std::size_t i = 0; i < crash_signals.size(); ++i) sigaction(crash_signals[i], nullptr, &present[i]);
    llvm::CrashRecoveryContext::Disable();
    for (std::size_t i = 0; i < crash_signals.size(); ++i) {
      // A handler that the host installed in the meantime stays.
      const bool ours = present[i].sa_sigaction == on_crash_signal;
      sigaction(crash_signals[i], ours ? &host_actions[i] : &present[i], nullptr);
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

struct Job {
  const std::function<void()>* work;
  std::string failure;
  std::vector<char> signal_stack = std::vector<char>(signal_stack_bytes);
};

// A crash by an overflow of the stack leaves no room on it for the handler.
void set_signal_stack(std::vector<char>& memory) {
  stack_t stack = {};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  sigaltstack(&stack, nullptr);
}

// The thread starts with the caller's rounding mode and flush-to-zero bits, which LLVM's constant folding must not see.
void* run_job(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  std::fesetenv(FE_DFL_ENV);
  set_signal_stack(job.signal_stack);
  std::string reason;
  fatal_reason = &reason;
  llvm::CrashRecoveryContext recovery;
  if (!recovery.RunSafely([&] { (*job.work)(); })) {
    job.failure =
        reason.empty() ? "clang crashed (status " + std::to_string(recovery.RetCode) + ")" : "LLVM gave up: " + reason;
  }
  fatal_reason = nullptr;
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

int start_thread(pthread_t& thread, Job& job) {
  const BlockedSignals blocked; // inherited by the new thread
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int status = pthread_create(&thread, &attributes, run_job, &job);
  pthread_attr_destroy(&attributes);
  return status;
}

} // namespace

std::string run_guarded(const std::function<void()>& work) {
  const CrashHandlers handlers;
  Job job{.work = &work, .failure = {}};
  pthread_t thread = {};
  const int status = start_thread(thread, job);
  if (status != 0) return std::string("cannot start a thread with a stack of 8 MB: ") + std::strerror(status);
  pthread_join(thread, nullptr);
  return job.failure;
}

} // namespace bilogp::clang_component
