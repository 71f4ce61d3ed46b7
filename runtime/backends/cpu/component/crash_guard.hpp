// Turns a crash of clang or LLVM on this thread into an error, and leaves the host's signal handlers as they were.
#pragma once

#include <functional>
#include <string>

namespace bilogp::clang_component {

// Runs `work` with an 8 MB stack of its own and in the default floating-point mode, and waits for it. Returns nothing,
// or one sentence when the thread could not be started or clang crashed; what clang held by then is lost.
//
// Handlers of the signals that tell of a crash are there while any compile runs; on a thread of the host they pass the
// signal on to the host's own handler. LLVM's CrashRecoveryContext is not used: its handlers take the host's signals
// away from the host, and after a crash it destroys objects of frames that are gone.
std::string run_guarded(const std::function<void()>& work);

} // namespace bilogp::clang_component
