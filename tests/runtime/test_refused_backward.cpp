// Backward calls that are refused, and what may overwrite the logits.
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

TEST_CASE("backward: several ids per row are refused") {
  Batch batch(3, 10);
  bilogp::LogpBackwardArgs args = batch.backward();
  args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {3, 2});
  CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "2 ids per row", "defined for one");
}

TEST_CASE("backward: wrong dtypes and shapes are refused") {
  Batch batch(3, 10);
  bilogp::LogpBackwardArgs args = batch.backward();
  SUBCASE("a gradient of another dtype than the logits") {
    args.grad_logits.dtype = DType::float16;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logits", "float16", "float32");
  }
  SUBCASE("a narrower gradient") {
    args.grad_logits.shape[1] = 9;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logits", "[3, 9]", "[3, 10]");
  }
  SUBCASE("upstream gradient of another shape") {
    args.grad_logp.shape[0] = 2;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logp", "[2]", "[3]");
  }
  SUBCASE("upstream gradient of another dtype") {
    args.grad_logp.dtype = DType::bfloat16;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logp", "bfloat16", "float32");
  }
  SUBCASE("no row_state") {
    args.row_state = {};
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "row_state");
  }
  SUBCASE("null gradient") {
    args.grad_logits.data = nullptr;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logits", "null", "30");
  }
  SUBCASE("a gradient whose columns are apart") {
    args.grad_logits = TensorView::strided(batch.grad.data(), DType::float32, {3, 10}, {1, 3});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logits", "stride 3", "expected 1");
  }
  SUBCASE("rows of the gradient on one another") {
    args.grad_logits.strides[0] = 0;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logits", "stride 0");
  }
}

TEST_CASE("backward: overwriting the logits needs in_place, and in_place the same memory") {
  Batch batch(3, 10);
  const std::vector<float> before = batch.logits;
  bilogp::LogpBackwardArgs args = batch.backward();
  SUBCASE("the logits without in_place") {
    args.grad_logits.data = batch.logits.data();
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "grad_logits", "logits", "in_place");
  }
  SUBCASE("in_place with other memory") {
    args.in_place = true;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "in_place", "not the memory of logits");
  }
  SUBCASE("in_place with other strides") {
    args.in_place = true;
    args.logits.shape[0] = args.target_ids.shape[0] = args.row_state.shape[0] = args.grad_logp.shape[0] = 2;
    args.grad_logits = args.logits;
    args.grad_logits.strides[0] = 20;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "in_place", "same strides");
  }
  CHECK(batch.logits == before);
}

TEST_CASE("backward: a shard outside the vocabulary is refused") {
  Batch batch(3, 10);
  bilogp::LogpBackwardArgs args = batch.backward();
  SUBCASE("beyond the end") {
    args.shard_begin = 5;
    args.full_vocab = 14;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "column 5", "10 columns", "[0, 14)");
  }
  SUBCASE("before the begin") {
    args.shard_begin = -1;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "column -1");
  }
  SUBCASE("a vocabulary beyond 2^31") {
    args.full_vocab = (std::int64_t{1} << 31) + 1;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "full_vocab", "2147483649", "2147483648");
  }
  SUBCASE("a begin that overflows") {
    args.shard_begin = INT64_MAX;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "column 9223372036854775807", "[0, 10)");
  }
  SUBCASE("a negative vocabulary") {
    args.full_vocab = INT64_MIN;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp_backward(args), "full_vocab", "-9223372036854775808");
  }
}

TEST_CASE("backward: gradients over the logits and beside them are the reference's") {
  Batch batch(5, 700);
  const std::vector<float> given = batch.logits;
  cpu().logp(batch.forward());
  cpu().logp_backward(batch.backward());
  REQUIRE(batch.logits == given); // the reference reads them next
  CHECK(batch.gradient_differences() == "");
  bilogp::LogpBackwardArgs over = batch.backward();
  over.grad_logits.data = batch.logits.data();
  over.in_place = true;
  cpu().logp_backward(over);
  CHECK(batch.logits == batch.grad);
}
