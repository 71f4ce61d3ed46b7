// Streams and captured graphs: order, scratch of their own, no work outside the stream.
#include <deque>

#include "tests/cuda/graphs.hpp"
#include "tests/cuda/problem.hpp"

namespace {

using cuda_test::CapturedGraph;
using cuda_test::contains;
using cuda_test::first_device;
using cuda_test::Problem;
using cuda_test::refusal;
using cuda_test::Storage;
using cuda_test::TestStream;

namespace cuda = bilogp::cuda;

// Plans that cut rows among blocks, and so take scratch, besides the chosen one.
const std::vector<int>& forward_plans() {
  static const std::vector<int> plans = cuda_test::plans_of(bilogp::Operator::logp_forward);
  return plans;
}

} // namespace

TEST_SUITE_BEGIN("streams");

TEST_CASE("two streams at once, with scratch of their own") {
  Problem one(first_device(), {.storage = Storage::bfloat16, .columns = 50000, .rows = 5, .seed = 1});
  Problem two(first_device(), {.storage = Storage::bfloat16, .columns = 50000, .rows = 7, .seed = 2});
  const TestStream first(first_device());
  const TestStream second(first_device());
  for (const int plan : forward_plans())
    for (int round = 0; round < 100; ++round) {
      one.clear();
      two.clear();
      for (int repeat = 0; repeat < 4; ++repeat) {
        one.runtime().logp(one.forward(first.get(), plan));
        two.runtime().logp(two.forward(second.get(), plan));
      }
      first.wait();
      second.wait();
      REQUIRE(one.check_scores() == "");
      REQUIRE(two.check_scores() == "");
    }
}

TEST_CASE("the default streams: of the process and of the thread") {
  Problem problem(first_device(), {.storage = Storage::float32, .columns = 9000, .rows = 3, .seed = 3});
  for (const std::uintptr_t handle : {0U, 1U, 2U}) {
    auto* const stream = reinterpret_cast<cuda::Stream>(handle);
    problem.clear();
    problem.runtime().logp_with_gradient(problem.with_gradient(stream));
    cuda_test::wait_for(first_device(), stream);
    CHECK(problem.check_scores() == "");
    CHECK(problem.check_gradient() == "");
  }
}

TEST_CASE("more streams than scratch is kept for without looking") {
  Problem problem(first_device(), {.storage = Storage::bfloat16, .columns = 30000, .rows = 2, .seed = 4});
  for (int turn = 0; turn < 3; ++turn) {
    std::deque<TestStream> streams;
    for (int i = 0; i < 100; ++i) {
      problem.clear();
      const TestStream& stream = streams.emplace_back(first_device());
      problem.runtime().logp(problem.forward(stream.get(), cuda::plain_split_rows));
      stream.wait();
      REQUIRE(problem.check_scores() == "");
    }
  }
}

TEST_CASE("captured once, replayed on new logits") {
  for (const int plan : forward_plans()) {
    CAPTURE(plan);
    Problem problem(first_device(), {.storage = Storage::bfloat16, .columns = 40000, .rows = 6, .seed = 5});
    const TestStream stream(first_device());
    const auto calls = [&] {
      problem.runtime().logp(problem.forward(stream.get(), plan));
      problem.runtime().logp_with_gradient(problem.with_gradient(stream.get(), plan));
    };
    calls();
    const CapturedGraph graph(stream, calls);
    for (int replay = 0; replay < 20; ++replay) {
      stream.wait();
      problem.clear();
      graph.replay(stream);
      stream.wait();
      REQUIRE(problem.check_scores() == "");
      if (replay % 10 == 0) REQUIRE(problem.check_gradient() == "");
    }
  }
}

TEST_CASE("two graphs and a stream at once") {
  Problem one(first_device(), {.storage = Storage::bfloat16, .columns = 60000, .rows = 4, .seed = 6});
  Problem two(first_device(), {.storage = Storage::bfloat16, .columns = 60000, .rows = 4, .seed = 7});
  Problem three(first_device(), {.storage = Storage::bfloat16, .columns = 60000, .rows = 4, .seed = 8});
  const TestStream first(first_device());
  const TestStream second(first_device());
  const TestStream third(first_device());
  for (const int plan : forward_plans()) {
    one.runtime().logp(one.forward(first.get(), plan));
    first.wait();
    const CapturedGraph graph_one(first, [&] { one.runtime().logp(one.forward(first.get(), plan)); });
    const CapturedGraph graph_two(first, [&] { two.runtime().logp(two.forward(first.get(), plan)); });
    for (int round = 0; round < 100; ++round) {
      for (Problem* problem : {&one, &two, &three}) problem->clear();
      for (int repeat = 0; repeat < 3; ++repeat) {
        graph_one.replay(first);
        graph_two.replay(second);
        three.runtime().logp(three.forward(third.get(), plan));
      }
      for (const TestStream* stream : {&first, &second, &third}) stream->wait();
      for (Problem* problem : {&one, &two, &three}) REQUIRE(problem->check_scores() == "");
    }
  }
}

TEST_CASE("a cold kernel in a capture is refused, and names the way out") {
  Problem problem(first_device(), {.storage = Storage::float16, .columns = 54321, .rows = 2, .seed = 9});
  const TestStream stream(first_device());
  std::string said;
  cuda_test::during_capture(stream,
                            [&] { said = refusal([&] { problem.runtime().logp(problem.forward(stream.get())); }); });
  CHECK(contains(said, "warmup"));
  CHECK(contains(said, "captured"));
  CHECK(contains(said, "54321"));
  const bilogp::Specialization spec{bilogp::Operator::logp_forward, bilogp::DType::float16, bilogp::DType::int64,
                                    54321};
  problem.runtime().warmup({&spec, 1});
  for (const int plan : forward_plans()) {
    problem.clear();
    const CapturedGraph graph(stream, [&] { problem.runtime().logp(problem.forward(stream.get(), plan)); });
    graph.replay(stream);
    stream.wait();
    CHECK(problem.check_scores() == "");
  }
}

TEST_CASE("validation in a capture is refused") {
  Problem problem(first_device(), {.storage = Storage::float32, .columns = 500, .rows = 2, .seed = 10});
  const TestStream stream(first_device());
  bilogp::LogpArgs args = problem.forward(stream.get());
  problem.runtime().logp(args);
  args.options.validate = bilogp::Validate::on;
  std::string said;
  cuda_test::during_capture(stream, [&] { said = refusal([&] { problem.runtime().logp(args); }); });
  CHECK(contains(said, "validate"));
  problem.clear();
  problem.runtime().logp(args);
  stream.wait();
  CHECK(problem.check_scores() == "");
}

TEST_SUITE_END();
