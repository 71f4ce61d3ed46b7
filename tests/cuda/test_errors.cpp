// Bad input: ids that are flagged or refused, memory and streams of the wrong place, targets that do not fit.
#include <array>
#include <memory>

#include "tests/cuda/graphs.hpp"
#include "tests/cuda/problem.hpp"

namespace {

using bilogp::LogpArgs;
using bilogp::TargetErrors;
using bilogp::Validate;
using cuda_test::contains;
using cuda_test::DeviceTensor;
using cuda_test::DType;
using cuda_test::first_device;
using cuda_test::Problem;
using cuda_test::refusal;
using cuda_test::Runtime;
using cuda_test::Storage;
using cuda_test::TensorView;

Problem small_problem() {
  return Problem(first_device(), {.storage = Storage::float32, .columns = 1000, .rows = 4, .seed = 1});
}

// [2, 3, 2, rows of one id] on the device, whose dimensions do not collapse: several launches.
struct BadIds {
  std::vector<float> logits = std::vector<float>(std::size_t{24} * 16, 0.5F);
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(24, 3);
  std::vector<float> logp = std::vector<float>(24);
  std::vector<float> grad = std::vector<float>(std::size_t{24} * 16);
  std::vector<float> upstream = std::vector<float>(24, 1.0F);
};

} // namespace

TEST_SUITE_BEGIN("errors");

TEST_CASE("bad ids are counted on the device, taken once, and rows are numbered over all launches") {
  Runtime& runtime = Runtime::get("cuda");
  static_cast<void>(runtime.take_errors(first_device()));
  BadIds rows;
  rows.ids[16] = -3;                    // 12 + 3 + 0 + 1: position [1, 1, 0, 1], which is row 13
  rows.ids[20] = std::int64_t{1} << 40; // of no row
  const DeviceTensor logits(
      first_device(), TensorView::strided(rows.logits.data(), DType::float32, {2, 2, 2, 2, 16}, {192, 48, 96, 16, 1}));
  const DeviceTensor ids(first_device(),
                         TensorView::strided(rows.ids.data(), DType::int64, {2, 2, 2, 2}, {12, 3, 6, 1}));
  const DeviceTensor logp(first_device(), TensorView::contiguous(rows.logp.data(), DType::float32, {2, 2, 2, 2}));
  LogpArgs args;
  args.logits = logits.view();
  args.target_ids = ids.view();
  args.logp = logp.view();
  runtime.logp(args);
  cuda_test::wait_for(first_device(), nullptr);
  const TargetErrors errors = runtime.take_errors(first_device());
  CHECK(errors.count == 1);
  CHECK(errors.first_row == 13);
  CHECK(errors.first_id == -3);
  CHECK(runtime.take_errors(first_device()).count == 0);
}

TEST_CASE("many bad ids at once: all counted, the lowest row named") {
  constexpr std::int64_t rows = 5000;
  Runtime& runtime = Runtime::get("cuda");
  std::vector<float> logits(rows * 8, 1.0F);
  std::vector<std::int32_t> ids(rows, 9);
  std::vector<float> logp(rows);
  for (std::size_t i = 0; i < 17; ++i) ids[i] = 2;
  ids[17] = 77;
  const DeviceTensor logits_there(first_device(), TensorView::contiguous(logits.data(), DType::float32, {rows, 8}));
  const DeviceTensor ids_there(first_device(), TensorView::contiguous(ids.data(), DType::int32, {rows}));
  const DeviceTensor logp_there(first_device(), TensorView::contiguous(logp.data(), DType::float32, {rows}));
  std::array<std::int64_t, 4> words{};
  DeviceTensor own_words(first_device(), TensorView::contiguous(words.data(), DType::int64, {4}));
  LogpArgs args;
  args.logits = logits_there.view();
  args.target_ids = ids_there.view();
  args.logp = logp_there.view();
  for (const bool own : {false, true}) {
    args.options.error_buffer = own ? static_cast<std::int64_t*>(own_words.view().data) : nullptr;
    for (int launch = 0; launch < 3; ++launch) runtime.logp(args);
    cuda_test::wait_for(first_device(), nullptr);
    const TargetErrors errors = runtime.take_errors(first_device());
    CHECK(errors.count == (own ? 0 : 3 * (rows - 17)));
    if (own) continue;
    CHECK(errors.first_row == 17);
    CHECK(errors.first_id == 77);
  }
  args.options.bad_ids_counted = true;
  runtime.logp(args);
  args.options.error_buffer = nullptr;
  runtime.logp(args);
  cuda_test::wait_for(first_device(), nullptr);
  CHECK(runtime.take_errors(first_device()).count == 0);
  CHECK(own_words.bring_back() == "");
  CHECK(words[0] == 3 * (rows - 17));
  CHECK(words[1] == 17);
  CHECK(words[2] == 77);
  CHECK(words[3] == 0);
}

TEST_CASE("a bad id of a row that two launches work on is counted once") {
  Runtime& runtime = Runtime::get("cuda");
  static_cast<void>(runtime.take_errors(first_device()));
  Problem problem(first_device(), {.storage = Storage::bfloat16, .columns = 30000, .rows = 2, .seed = 6});
  const std::vector<std::int64_t> ids = {7, -5};
  const DeviceTensor ids_there(first_device(), TensorView::contiguous(ids.data(), DType::int64, {2}));
  for (const int plan : {-1, bilogp::cuda::plain_rows}) {
    CAPTURE(plan);
    bilogp::LogpGradientArgs args = problem.with_gradient(nullptr, plan);
    args.target_ids = ids_there.view();
    runtime.logp_with_gradient(args);
    cuda_test::wait_for(first_device(), nullptr);
    const TargetErrors errors = runtime.take_errors(first_device());
    CHECK(errors.count == 1);
    CHECK(errors.first_row == 1);
    CHECK(errors.first_id == -5);
  }
}

TEST_CASE("rows without ids: none is asked for, and they count as ignored") {
  Problem problem(first_device(), {.storage = Storage::bfloat16, .columns = 9000, .rows = 3, .seed = 4});
  LogpArgs args = problem.forward(nullptr);
  args.target_ids = TensorView::contiguous(nullptr, DType::int64, {3, 0}, first_device());
  args.logp = TensorView::contiguous(nullptr, DType::float32, {3, 0}, first_device());
  for (const int plan : cuda_test::plans_of(bilogp::Operator::logp_forward)) {
    CAPTURE(plan);
    args.options.plan = plan;
    problem.clear();
    problem.runtime().logp(args);
    cuda_test::wait_for(first_device(), nullptr);
    static_cast<void>(problem.check_scores());
    const std::vector<std::uint32_t> bits = problem.scores(); // three of logp, of lse, of the row states
    for (std::size_t row = 0; row < 3; ++row) {
      CHECK(bits[row] != 0); // nobody's
      CHECK(bits[3 + row] == 0);
      CHECK(bits[6 + 2 * row] == 0);
    }
  }
}

TEST_CASE("validate: a bad id is refused by its row, and nothing is written") {
  Runtime& runtime = Runtime::get("cuda");
  std::vector<float> logits(std::size_t{6} * 10, 1.0F);
  std::vector<std::int64_t> ids = {1, -100, 2, 10, 4, 5, 0, 0, 0, 0, 0};
  std::vector<float> logp(6, 7.0F);
  const DeviceTensor logits_there(first_device(), TensorView::contiguous(logits.data(), DType::float32, {6, 10}));
  DeviceTensor logp_there(first_device(), TensorView::contiguous(logp.data(), DType::float32, {6}));
  for (const std::int64_t stride : {1, 2}) {
    const DeviceTensor ids_there(first_device(), TensorView::strided(ids.data(), DType::int64, {6}, {stride}));
    LogpArgs args;
    args.logits = logits_there.view();
    args.target_ids = ids_there.view();
    args.logp = logp_there.view();
    args.options.validate = Validate::on;
    const std::string said = refusal([&] { runtime.logp(args); });
    CAPTURE(said);
    CHECK((stride == 1 ? contains(said, "out_of_range") && contains(said, "row 3") : said == "nothing thrown"));
    cuda_test::wait_for(first_device(), nullptr);
    CHECK(logp_there.bring_back() == "");
    CHECK((logp[3] == 7.0F) == (stride == 1));
  }
}

TEST_CASE("validate: memory of another place is refused") {
  Problem problem = small_problem();
  std::vector<float> host(4);
  LogpArgs args = problem.forward(nullptr);
  args.options.validate = Validate::on;
  args.logp.data = host.data();
  const std::string said = refusal([&] { problem.runtime().logp(args); });
  CHECK(contains(said, "invalid_argument"));
  CHECK(contains(said, "logp"));
  CHECK(contains(said, "host memory"));
  if (cuda_test::devices().size() < 2) {
    MESSAGE("one device: memory of another device was not tried");
    return;
  }
  const DeviceTensor elsewhere(cuda_test::devices()[1], TensorView::contiguous(host.data(), DType::float32, {4}));
  args.logp.data = elsewhere.view().data;
  CHECK(contains(refusal([&] { problem.runtime().logp(args); }), "cuda:1"));
}

TEST_CASE("a stream of another context is refused when validated, and the thread's context is left as it was") {
  Problem problem = small_problem();
  const cuda_test::ForeignStream foreign(first_device());
  LogpArgs args = problem.forward(foreign.get());
  args.options.validate = Validate::on;
  CHECK(contains(refusal([&] { problem.runtime().logp(args); }), "stream"));
  const bilogp::cuda::Driver& driver = bilogp::cuda::driver();
  auto* const own = static_cast<bilogp::cuda::Context>(foreign.context());
  REQUIRE(driver.context_push_current(own) == bilogp::cuda::Result::success);
  problem.clear();
  problem.runtime().logp(problem.forward(nullptr));
  static_cast<void>(problem.runtime().take_errors(first_device()));
  bilogp::cuda::Context current = nullptr;
  REQUIRE(driver.context_get_current(&current) == bilogp::cuda::Result::success);
  CHECK(current == own);
  driver.context_pop_current(&current);
  cuda_test::wait_for(first_device(), nullptr);
  CHECK(problem.check_scores() == "");
}

TEST_CASE("tensors off their elements' alignment, mixed devices, devices and targets that are not there") {
  Problem problem = small_problem();
  const LogpArgs good = problem.forward(nullptr);
  LogpArgs args = good;
  args.logits.data = static_cast<char*>(args.logits.data) + 2;
  CHECK(contains(refusal([&] { problem.runtime().logp(args); }), "multiple of the 4 bytes"));
  args = good;
  args.target_ids.device = {};
  CHECK(contains(refusal([&] { problem.runtime().logp(args); }), "all tensors on one device"));
  args = good;
  for (TensorView* view : {&args.logits, &args.target_ids, &args.logp, &args.lse, &args.row_state})
    view->device.index = 63;
  const std::string said = refusal([&] { problem.runtime().logp(args); });
  CHECK(contains(said, "invalid_argument"));
  CHECK(contains(said, "cuda:63"));
  CHECK(contains(refusal([&] { Runtime::get("cuda:sm_75").logp(good); }), "cuda:sm_75"));
  CHECK(contains(refusal([&] { Runtime::get("cpu").logp(good); }), "cpu"));
  problem.clear();
  Runtime::get("auto").logp(good);
  cuda_test::wait_for(first_device(), nullptr);
  CHECK(problem.check_scores() == "");
}

TEST_CASE("more shards than one launch takes") {
  constexpr std::int64_t shard_count = 65;
  std::vector<std::int32_t> words(2, 0);
  std::vector<std::int64_t> id = {0};
  std::vector<float> value = {0};
  const DeviceTensor nodes(first_device(), TensorView::contiguous(words.data(), DType::int32, {1, 1, 2}));
  const DeviceTensor ids(first_device(), TensorView::contiguous(id.data(), DType::int64, {1}));
  const DeviceTensor logit(first_device(), TensorView::contiguous(value.data(), DType::float32, {1}));
  const DeviceTensor logp(first_device(), TensorView::contiguous(value.data(), DType::float32, {1}));
  std::vector<bilogp::ShardNodes> shards;
  for (std::int64_t s = 0; s < shard_count; ++s) shards.push_back({s, s + 1, nodes.view()});
  bilogp::LogpFinishArgs args;
  args.full_vocab = shard_count;
  args.target_ids = ids.view();
  args.target_logit = logit.view();
  args.logp = logp.view();
  shards.back().nodes.shape[1] = bilogp::node_count(shard_count - 1, shard_count, shard_count);
  args.shards = shards;
  const std::string said = refusal([&] { Runtime::get("cuda").logp_finish(args); });
  CHECK(contains(said, "65 shards"));
  CHECK(contains(said, "at most 64"));
}

TEST_CASE("no memory for scratch is said, and the call works once there is some") {
  Problem problem(first_device(), {.storage = Storage::bfloat16, .columns = 40000, .rows = 2, .seed = 3});
  problem.runtime().logp(problem.forward(nullptr, bilogp::cuda::plain_split_rows)); // loads the kernel
  cuda_test::wait_for(first_device(), nullptr);
  const cuda_test::TestStream stream(first_device()); // which has no scratch yet
  std::string said;
  {
    std::vector<std::unique_ptr<cuda_test::Buffer>> all; // of the device's memory
    for (std::size_t bytes = std::size_t{1} << 37; bytes >= std::size_t{1} << 16;)
      if (refusal([&] { all.push_back(std::make_unique<cuda_test::Buffer>(first_device(), bytes)); }) !=
          "nothing thrown")
        bytes /= 2;
    said = refusal([&] { problem.runtime().logp(problem.forward(stream.get(), bilogp::cuda::plain_split_rows)); });
  }
  CAPTURE(said);
  CHECK(said.starts_with("out_of_memory"));
  CHECK(contains(said, "scratch"));
  problem.clear();
  problem.runtime().logp(problem.forward(stream.get(), bilogp::cuda::plain_split_rows));
  stream.wait();
  CHECK(problem.check_scores() == "");
}

TEST_SUITE_END();

// In a process of its own, since the device takes no more calls from it: --no-skip --test-suite=sticky.
TEST_SUITE_BEGIN("sticky");

TEST_CASE("a device that is lost says so at every call, and other devices go on" * doctest::skip()) {
  Problem problem = small_problem();
  LogpArgs args = problem.forward(nullptr);
  problem.runtime().logp(args);
  cuda_test::wait_for(first_device(), nullptr);
  args.logits.data = reinterpret_cast<void*>(std::uintptr_t{4096}); // nobody's memory
  problem.runtime().logp(args);
  CHECK(contains(refusal([&] { cuda_test::wait_for(first_device(), nullptr); }), "device: "));
  for (int call = 0; call < 2; ++call) {
    const std::string said = refusal([&] { problem.runtime().logp(problem.forward(nullptr)); });
    CAPTURE(said);
    CHECK(said.starts_with("device: "));
    CHECK(contains(said, "started again"));
  }
  CHECK(contains(refusal([&] { static_cast<void>(problem.runtime().take_errors(first_device())); }), "started again"));
  if (cuda_test::devices().size() < 2) {
    MESSAGE("one device: another one was not tried");
    return;
  }
  Problem other(cuda_test::devices()[1], {.storage = Storage::bfloat16, .columns = 9000, .rows = 3, .seed = 2});
  other.runtime().logp(other.forward(nullptr));
  cuda_test::wait_for(cuda_test::devices()[1], nullptr);
  CHECK(other.check_scores() == "");
}

TEST_SUITE_END();
