// Forward calls that are refused: each says what was given and what was expected, and writes nothing.
#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::DType;
using bilogp::TensorView;
using runtime_test::Batch;

namespace {

bilogp::Runtime& cpu() {
  return bilogp::Runtime::get("cpu");
}

// Never read: a call that looked at it would crash.
void* unreadable() {
  return reinterpret_cast<void*>(std::uintptr_t{0x1000});
}

} // namespace

TEST_CASE("forward: wrong ranks are refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  SUBCASE("logits of one dimension") {
    args.logits = TensorView::contiguous(batch.logits.data(), DType::float32, {30});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logits", "1 dimension", "at least 2");
  }
  SUBCASE("no logits") {
    args.logits = {};
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logits", "0 dimension", "at least 2");
  }
  SUBCASE("target ids of three dimensions") {
    args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {3, 1, 1});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "target_ids", "[3, 1, 1]", "[3]");
  }
  SUBCASE("row_state without its words") {
    args.row_state = TensorView::contiguous(batch.row_state.data(), DType::int32, {3});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "row_state", "[3]", "[3, 2]");
  }
}

TEST_CASE("forward: wrong dtypes are refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  SUBCASE("logits") {
    args.logits.dtype = DType::int32;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logits", "int32", "float16");
  }
  SUBCASE("target ids") {
    args.target_ids.dtype = DType::float32;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "target_ids", "float32", "int32 or int64");
  }
  SUBCASE("logp") {
    args.logp.dtype = DType::bfloat16;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logp", "bfloat16", "float32");
  }
  SUBCASE("lse") {
    args.lse.dtype = DType::int32;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "lse", "int32", "float32");
  }
  SUBCASE("row_state") {
    args.row_state.dtype = DType::float32;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "row_state", "float32", "int32");
  }
}

TEST_CASE("forward: devices that this version has no back end for, or that differ, are refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  const bilogp::Device cuda{bilogp::DeviceType::cuda, 1};
  SUBCASE("one tensor elsewhere") {
    args.logp.device = cuda;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logp", "cuda:1", "cpu");
  }
  SUBCASE("all tensors elsewhere") {
    for (TensorView* tensor : {&args.logits, &args.target_ids, &args.logp, &args.lse, &args.row_state})
      tensor->device = cuda;
    args.options.validate = bilogp::Validate::off;
    CHECK_REFUSED(batch, unsupported, cpu().logp(args), "cuda", "cpu");
  }
}

TEST_CASE("forward: shapes that do not match are refused") {
  Batch batch(6, 10);
  bilogp::LogpArgs args = batch.forward();
  SUBCASE("fewer ids than rows") {
    args.target_ids.shape[0] = 5;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "target_ids", "[5]", "[6]");
  }
  SUBCASE("another leading shape") {
    args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {2, 3});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "target_ids", "[2, 3]", "[6");
  }
  SUBCASE("logp without the K of the ids") {
    args.target_ids = TensorView::contiguous(batch.ids.data(), DType::int64, {6, 1});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logp", "[6]", "[6, 1]");
  }
  SUBCASE("lse") {
    args.lse.shape[0] = 7;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "lse", "[7]", "[6]");
  }
  SUBCASE("row_state of three words") {
    args.row_state.shape[1] = 3;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "row_state", "[6, 3]", "[6, 2]");
  }
}

TEST_CASE("forward: a vocabulary of 0 or of more than 2^31 columns is refused before any memory is read") {
  Batch batch(1, 10);
  bilogp::LogpArgs args = batch.forward();
  args.logits = TensorView::contiguous(unreadable(), DType::float16, {1, 0});
  CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "vocabulary of 0", "1 to 2147483648");
  args.logits = TensorView::contiguous(unreadable(), DType::float16, {1, (std::int64_t{1} << 31) + 1});
  CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "2147483649", "1 to 2147483648");
}

TEST_CASE("forward: shapes whose element count overflows are refused") {
  Batch batch(1, 10);
  bilogp::LogpArgs args = batch.forward();
  const std::int64_t many = std::int64_t{1} << 31;
  args.logits = {};
  args.logits.data = unreadable();
  args.logits.rank = 3;
  for (int d = 0; d < 3; ++d) {
    args.logits.shape[d] = many;
    args.logits.strides[d] = d == 2 ? 1 : 0;
  }
  args.target_ids.rank = 2;
  args.target_ids.shape[0] = args.target_ids.shape[1] = many;
  CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logits", "2147483648");
}

TEST_CASE("forward: null pointers with elements behind them are refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  SUBCASE("logits") {
    args.logits.data = nullptr;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logits", "null", "30");
  }
  SUBCASE("target ids") {
    args.target_ids.data = nullptr;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "target_ids", "null", "[3]");
  }
  SUBCASE("logp") {
    args.logp.data = nullptr;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logp", "null", "[3]");
  }
  SUBCASE("an optional output that has a shape") {
    args.lse.data = nullptr;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "lse", "null", "[3]");
  }
}

TEST_CASE("forward: outputs that overlap inputs or themselves are refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  const std::vector<float> before = batch.logits;
  SUBCASE("logp inside the logits") {
    args.logp.data = batch.logits.data() + 29;
    args.logp.strides[0] = -1;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logp", "logits", "memory of its own");
  }
  SUBCASE("lse over the ids") {
    args.lse.data = batch.ids.data();
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "lse", "target_ids");
  }
  SUBCASE("an output with stride 0") {
    args.logp.strides[0] = 0;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logp", "stride 0", "every element");
  }
  CHECK(batch.logits == before);
}

TEST_CASE("forward: a stride other than 1 within a row is refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  SUBCASE("transposed logits") {
    args.logits = TensorView::strided(batch.logits.data(), DType::float32, {3, 10}, {1, 3});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "logits", "stride 3", "expected 1");
  }
  SUBCASE("row_state") {
    args.row_state = TensorView::strided(batch.row_state.data(), DType::int32, {3, 2}, {1, 3});
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "row_state", "stride 3", "expected 1");
  }
}
