// logp_with_gradient: what it shares with its two halves, what it refuses, how it counts bad ids.
#include <array>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::DType;
using bilogp::TensorView;
using runtime_test::Batch;

namespace {

bilogp::Runtime& cpu() {
  return bilogp::Runtime::get("cpu");
}

} // namespace

TEST_CASE("with gradient: the bits of the forward and of the backward") {
  for (const std::int64_t rows : {1, 3, 40}) {
    Batch batch(rows, 40'003);
    bilogp::LogpGradientArgs args = batch.with_gradient();
    for (const int threads : {1, 8}) {
      args.options.threads = threads;
      const std::vector<float> given = batch.logits;
      cpu().logp_with_gradient(args);
      REQUIRE(batch.logits == given); // the reference reads them next
      CHECK(batch.forward_differences() == "");
      CHECK(batch.gradient_differences() == "");
    }
  }
}

TEST_CASE("with gradient: refusals name the argument and touch nothing") {
  Batch batch(3, 10);
  bilogp::LogpGradientArgs args = batch.with_gradient();
  SUBCASE("several ids per row") {
    args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {3, 2});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "2 ids per row", "defined for one");
  }
  SUBCASE("a gradient of another dtype than the logits") {
    args.grad_logits.dtype = DType::bfloat16;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "grad_logits", "bfloat16", "float32");
  }
  SUBCASE("no gradient") {
    args.grad_logits = {};
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "grad_logits");
  }
  SUBCASE("no logp") {
    args.logp = {};
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "logp", "[3]");
  }
  SUBCASE("upstream gradients of another shape") {
    args.grad_logp.shape[0] = 2;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "grad_logp", "[2]", "[3]");
  }
  SUBCASE("the logits as the gradient, without in_place") {
    args.grad_logits = args.logits;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "in_place");
  }
  SUBCASE("in_place with other memory") {
    args.in_place = true;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "in_place", "memory of logits");
  }
  SUBCASE("a row_state inside the gradient") {
    args.row_state.data = batch.grad.data();
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_with_gradient(args), "row_state", "grad_logits");
  }
  SUBCASE("native numerics") {
    args.options.numerics = bilogp::Numerics::native;
    CHECK_REFUSED(batch, unsupported, cpu().logp_with_gradient(args), "native", "CPU");
  }
  SUBCASE("a bad id, checked") {
    batch.ids[1] = 10;
    CHECK_REFUSED(batch, out_of_range, cpu().logp_with_gradient(args), "row 1", "10");
  }
}

TEST_CASE("with gradient: a bad id is counted once, however the rows are cut") {
  for (const std::int64_t vocab : {100, 100'000})
    for (const int threads : {1, 8}) {
      Batch batch(3, vocab);
      batch.ids[2] = vocab + 5;
      std::array<std::int64_t, 4> words{};
      bilogp::LogpGradientArgs args = batch.with_gradient();
      args.row_state = {};
      args.options.validate = bilogp::Validate::off;
      args.options.threads = threads;
      args.options.error_buffer = words.data();
      cpu().logp_with_gradient(args);
      CHECK(words[0] == 1);
      CHECK(words[1] == 2);
      CHECK(words[2] == vocab + 5);
      CHECK(cpu().take_errors().count == 0);
    }
}

TEST_CASE("with gradient: its warm-up is that of its two halves") {
  const bilogp::Specialization spec{bilogp::Operator::logp_with_gradient, DType::float16, DType::int32, 5000};
  const bilogp::WarmupReport report = cpu().warmup({&spec, 1});
  REQUIRE(report.kernels.size() == 2);
  CHECK(report.kernels[0].specialization.op == bilogp::Operator::logp_forward);
  CHECK(report.kernels[1].specialization.op == bilogp::Operator::logp_backward);
}
