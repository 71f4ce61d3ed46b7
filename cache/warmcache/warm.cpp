#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bilogp/runtime.hpp"
#include "cache/warmcache/commands.hpp"
#include "runtime/score/progress.hpp"
#include "runtime/score/text_table.hpp"

namespace bilogp::warmcache {

namespace {

using Clock = std::chrono::steady_clock;

struct Task {
  Runtime* runtime;
  Specialization specialization;
};

std::vector<Task> tasks_of(const WarmRequest& request) {
  std::vector<Task> tasks;
  for (const std::string& target : request.targets) {
    Runtime& runtime = Runtime::get(target == "auto" ? "cpu" : target);
    for (const Operator op : request.operators)
      for (const std::int64_t vocab_size : request.vocab_sizes)
        for (const DType logits : request.logits_dtypes)
          for (const DType ids : request.id_dtypes)
            for (const Numerics numerics : request.numerics)
              tasks.push_back({&runtime, {op, logits, ids, vocab_size, numerics, 0}});
  }
  return tasks;
}

// What all workers share.
class Work {
public:
  explicit Work(std::vector<Task> tasks)
      : tasks_(std::move(tasks)), bar_(static_cast<std::int64_t>(tasks_.size()), "kernels") {}

  void run(unsigned jobs) {
    std::vector<std::thread> threads;
    for (unsigned job = 1; job < std::min<std::size_t>(jobs, tasks_.size()); ++job)
      threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<KernelInfo> kernels; // one per kernel, in no order
  std::set<std::string> failures;

private:
  void work() {
    for (std::size_t i = next_++; i < tasks_.size(); i = next_++) {
      WarmupReport report;
      std::string failure;
      try {
        report = tasks_[i].runtime->warmup({&tasks_[i].specialization, 1});
      } catch (const std::exception& error) {
        failure = error.what();
      }
      const std::scoped_lock lock(mutex_);
      for (const KernelInfo& kernel : report.kernels) keep(kernel);
      if (!failure.empty()) failures.insert(failure);
      bar_.show(++done_);
    }
  }

  // Several specializations may have led to one kernel: the first of them tells where it came from.
  void keep(const KernelInfo& kernel) {
    for (KernelInfo& known : kernels)
      if (known.target == kernel.target && known.specialization == kernel.specialization) {
        if (kernel.origin < known.origin) known = kernel;
        return;
      }
    kernels.push_back(kernel);
  }

  const std::vector<Task> tasks_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_; // guards everything below, and the results
  std::int64_t done_ = 0;
  score::ProgressBar bar_;
};

unsigned default_jobs() {
  return static_cast<unsigned>(std::max(1, Runtime::num_threads()));
}

bool before(const KernelInfo& left, const KernelInfo& right) {
  const auto key = [](const KernelInfo& kernel) {
    const Specialization& spec = kernel.specialization;
    return std::tuple(kernel.target, spec.op, spec.vocab_size, spec.logits_dtype, spec.id_dtype, spec.numerics,
                      spec.variant);
  };
  return key(left) < key(right);
}

// The kernels that the store's file has, of those just compiled or found.
class Stored {
public:
  Stored(cache::Store& store, std::int64_t since) : since_(since) {
    if (!store.location().directory.empty()) entries_ = store.list();
  }
  [[nodiscard]] bool has(const KernelInfo& kernel) const {
    return std::ranges::any_of(entries_, [&](const cache::ListedEntry& entry) {
      return entry.metadata.backend + ":" + entry.metadata.target == kernel.target &&
             entry.metadata.compiler == kernel.compiler &&
             entry.metadata.description == describe(kernel.specialization) &&
             (kernel.origin != KernelOrigin::compiled || entry.created_unix >= since_);
    });
  }

private:
  std::int64_t since_;
  std::vector<cache::ListedEntry> entries_;
};

std::string_view people_origin(KernelOrigin origin) {
  return origin == KernelOrigin::compiled ? "compiled" : "was there";
}

} // namespace

Answer warm(const WarmRequest& request, cache::Store& store) {
  const auto start = Clock::now();
  const auto since = static_cast<std::int64_t>(std::time(nullptr));
  Work work(tasks_of(request));
  work.run(request.jobs > 0 ? static_cast<unsigned>(request.jobs) : default_jobs());
  std::ranges::sort(work.kernels, before);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();

  Answer answer;
  const Stored stored(store, since);
  Json kernels = Json::array();
  score::TextTable table({"<kernel", "<target", "<origin", "time", "bytes", "<stored"});
  std::size_t compiled = 0, missing = 0;
  for (const KernelInfo& kernel : work.kernels) {
    const Specialization& spec = kernel.specialization;
    const bool is_stored = stored.has(kernel);
    compiled += kernel.origin == KernelOrigin::compiled ? 1 : 0;
    missing += is_stored ? 0 : 1;
    kernels.push_back({{"operator", to_string(spec.op)},
                       {"logits_dtype", to_string(spec.logits_dtype)},
                       {"id_dtype", to_string(spec.id_dtype)},
                       {"vocab_size", spec.vocab_size},
                       {"numerics", to_string(spec.numerics)},
                       {"variant", spec.variant},
                       {"target", kernel.target},
                       {"compiler", kernel.compiler},
                       {"origin", to_string(kernel.origin)},
                       {"stored", is_stored},
                       {"seconds", kernel.seconds},
                       {"image_bytes", kernel.image_bytes}});
    table.add({describe(spec), kernel.target, std::string(people_origin(kernel.origin)),
               score::duration_text(kernel.seconds), score::grouped(kernel.image_bytes), is_stored ? "yes" : "no"});
  }
  answer.json = {{"store", place_json(store)},
                 {"kernels", std::move(kernels)},
                 {"compiled", compiled},
                 {"failures", work.failures},
                 {"seconds", seconds}};
  answer.text =
      fmt::format("{}{} compiled, {} already there, in {}\nStore: {}\n", work.kernels.empty() ? "" : table.text(),
                  compiled, work.kernels.size() - compiled, score::duration_text(seconds), place_of(store));
  for (const std::string& failure : work.failures) answer.advice += (answer.advice.empty() ? "" : "\n") + failure;
  if (missing > 0)
    answer.advice += fmt::format("{}{} not in the store: `bilogp-warmcache doctor` says what is wrong with it",
                                 answer.advice.empty() ? "" : "\n",
                                 missing == 1 ? "1 kernel is" : fmt::format("{} kernels are", missing));
  if (!answer.advice.empty()) answer.exit_code = exit_problem;
  return answer;
}

} // namespace bilogp::warmcache
