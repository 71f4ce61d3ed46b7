#include "runtime/backends/cpu/threads.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/cgroup_quota.hpp"

namespace bilogp::cpu {
namespace {

std::atomic<int> chosen_threads{0};
// The pool's workers do not exist in a forked child, and joining them would wait for ever.
std::atomic<bool> is_forked_child{false};

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { is_forked_child.store(true); }); });
}

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const int cores = CPU_COUNT(&set);
  return cores < 1 ? 1 : cores;
}

int threads_from_environment() {
  const char* text = std::getenv("BILOGP_NUM_THREADS");
  if (text == nullptr || *text == '\0') {
    const int quota = cgroup_quota();
    return quota > 0 ? std::min(quota, affinity_cores()) : affinity_cores();
  }
  const std::string_view view = text;
  int threads = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), threads);
  if (error != std::errc{} || end != view.data() + view.size() || threads < 1 || threads > largest_thread_count)
    throw Error(ErrorKind::invalid_argument, fmt::format("BILOGP_NUM_THREADS is \"{}\"; expected a number from 1 to {}",
                                                         view, largest_thread_count));
  return threads;
}

// oneTBB allows one thread per core; a caller who asks for more gets them, and no notice on stderr. The least of all
// limits that exist holds, so a new one replaces the old. Called with one mutex held; kept to the end of the process.
void allow_threads(int threads) {
  static tbb::global_control* own = nullptr;
  constexpr auto limit = tbb::global_control::max_allowed_parallelism;
  const auto wanted = static_cast<std::size_t>(threads);
  if (wanted <= tbb::global_control::active_value(limit)) return;
  delete own;
  own = new tbb::global_control(limit, wanted);
}

// oneTBB orders the caller before the bodies and these before the return, but is not built for ThreadSanitizer: this
// tells it. Nothing in other builds.
struct Order {
#if defined(__SANITIZE_THREAD__)
  void acquire() { __tsan_acquire(this); }
  void release() { __tsan_release(this); }
#else
  void acquire() {}
  void release() {}
#endif
};

// Arenas are kept, one per thread count: making one costs more than a small call. Never destroyed.
tbb::task_arena& arena_of(int threads) {
  static std::array<std::atomic<tbb::task_arena*>, largest_thread_count + 1> arenas{};
  std::atomic<tbb::task_arena*>& slot = arenas[static_cast<std::size_t>(threads)];
  if (tbb::task_arena* arena = slot.load(std::memory_order_acquire)) return *arena;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  if (slot.load(std::memory_order_acquire) == nullptr) {
    watch_forks();
    allow_threads(threads);
    slot.store(new tbb::task_arena(threads), std::memory_order_release);
  }
  return *slot.load(std::memory_order_acquire);
}

// Pieces of equal length: four per thread, so that one that comes late does not hold the others up.
class Pieces {
public:
  static constexpr int pieces_per_thread = 4;

  Pieces(std::int64_t count, std::int64_t grain, int threads, RangeBody body, void* context)
      : count_(count), pieces_(std::min((count + grain - 1) / grain, std::int64_t{pieces_per_thread} * threads)),
        body_(body), context_(context) {}

  void run_on(Executor& executor) {
    executor.run(pieces_, [](void* self, std::int64_t index) { static_cast<Pieces*>(self)->run(index); }, this);
    const std::int64_t done = done_.load(std::memory_order_acquire);
    if (done != pieces_)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("the executor returned after {} of {} tasks; it must run each one once", done, pieces_));
  }

private:
  // A task that there is none of is left alone, one that comes again does not stand for another.
  void run(std::int64_t index) {
    if (index < 0 || index >= pieces_) return;
    body_(context_, begin_of(index), begin_of(index + 1));
    const auto place = static_cast<std::size_t>(index);
    const std::uint64_t bit = std::uint64_t{1} << (place % 64);
    if ((seen_[place / 64].fetch_or(bit, std::memory_order_acq_rel) & bit) == 0)
      done_.fetch_add(1, std::memory_order_release);
  }
  [[nodiscard]] std::int64_t begin_of(std::int64_t index) const {
    return index * (count_ / pieces_) + std::min(index, count_ % pieces_);
  }

  std::int64_t count_, pieces_;
  RangeBody body_;
  void* context_;
  std::atomic<std::int64_t> done_{0};
  std::array<std::atomic<std::uint64_t>, std::size_t{largest_thread_count} * pieces_per_thread / 64> seen_{};
};

} // namespace

int default_threads() {
  static const int threads = threads_from_environment();
  return threads;
}

int current_threads() {
  const int threads = chosen_threads.load(std::memory_order_relaxed);
  return threads > 0 ? threads : default_threads();
}

void set_current_threads(int threads) {
  chosen_threads.store(threads, std::memory_order_relaxed);
}

void for_ranges(std::int64_t count, std::int64_t grain, const Crew& crew, RangeBody body, void* context) {
  if (count <= 0) return;
  if (crew.threads <= 1 || count <= grain) return body(context, 0, count);
  if (crew.executor != nullptr) return Pieces(count, grain, crew.threads, body, context).run_on(*crew.executor);
  if (is_forked_child.load(std::memory_order_relaxed)) return body(context, 0, count);
  static Order order; // known to tasks before they have read anything that the caller wrote
  const auto part = [&](const tbb::blocked_range<std::int64_t>& range) {
    order.acquire();
    body(context, range.begin(), range.end());
    order.release();
  };
  const auto all = [&] {
    order.acquire();
    tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count, static_cast<std::size_t>(grain)), part);
  };
  order.release();
  arena_of(crew.threads).execute(all);
  order.acquire();
}

} // namespace bilogp::cpu
