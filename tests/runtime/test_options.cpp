// Options: temperature, vocab_size, ignore_index, validation and its error words, threads; and empty results.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::DType;
using bilogp::TensorView;
using bilogp::Validate;
using runtime_test::Batch;

namespace {

bilogp::Runtime& cpu() {
  return bilogp::Runtime::get("cpu");
}

std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

} // namespace

TEST_CASE("options: temperatures that are no temperatures are refused") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  for (const double temperature :
       {0.0, -0.0, -1.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 0x1p-21, 0x1p21, 1e-300, 1e300}) {
    CAPTURE(temperature);
    args.options.temperature = temperature;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "temperature", "2^-20 to 2^20");
  }
}

TEST_CASE("options: temperatures from end to end of the range give the reference's bits") {
  for (const double temperature : {0x1p-20, 0.1, 0.7, 1.0, 3.0, 0x1p20}) {
    Batch batch(4, 300);
    bilogp::LogpArgs args = batch.forward();
    args.options.temperature = temperature;
    cpu().logp(args);
    CHECK(batch.forward_differences(args.options) == "");
  }
}

TEST_CASE("options: a temperature per row must fit, and poisons its row alone when it is bad") {
  Batch batch(3, 50);
  bilogp::LogpArgs args = batch.forward();
  std::vector<float> temperatures{1.0F, 0.0F, 1.0F};
  args.options.temperature_per_row = TensorView::contiguous(temperatures.data(), DType::float32, {3});
  SUBCASE("another shape") {
    args.options.temperature_per_row.shape[0] = 2;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "temperature_per_row", "[2]", "[3]");
  }
  SUBCASE("another dtype") {
    args.options.temperature_per_row.dtype = DType::float16;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "temperature_per_row", "float16", "float32");
  }
  SUBCASE("bad values") {
    for (const float bad : {0.0F, -1.0F, std::nanf(""), HUGE_VALF}) {
      temperatures[1] = bad;
      Batch fresh(3, 50);
      bilogp::LogpArgs call = fresh.forward();
      call.options.temperature_per_row = args.options.temperature_per_row;
      cpu().logp(call);
      CHECK(std::isnan(fresh.logp[1]));
      fresh.logp[1] = fresh.logp[0];
      Batch plain(3, 50);
      cpu().logp(plain.forward());
      CHECK(bits(fresh.logp[0]) == bits(plain.logp[0]));
      CHECK(bits(fresh.logp[2]) == bits(plain.logp[2]));
    }
  }
}

TEST_CASE("options: vocab_size is 1 to the stored columns") {
  Batch batch(3, 50);
  for (std::size_t row = 0; row < 3; ++row) batch.logits[row * 50 + 40] = std::nanf("");
  bilogp::LogpArgs args = batch.forward();
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{-2}, std::int64_t{51}, INT64_MAX, INT64_MIN}) {
    args.options.vocab_size = size;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "vocab_size", std::to_string(size), "50 stored columns");
  }
  args.options.vocab_size = 40; // the NaN is padding
  cpu().logp(args);
  CHECK(batch.forward_differences(args.options) == "");
  CHECK(!std::isnan(batch.logp[0]));
}

TEST_CASE("options: with validation a bad target id is named with its row") {
  for (const std::int64_t id : {std::int64_t{50}, std::int64_t{-1}, INT64_MAX, INT64_MIN})
    for (const Validate validate : {Validate::on, Validate::automatic}) {
      Batch batch(6, 50);
      batch.ids[4] = id;
      bilogp::LogpArgs args = batch.forward();
      args.options.validate = validate;
      CHECK_REFUSED(batch, out_of_range, cpu().logp(args), "row 4 is " + std::to_string(id), "0 to 49", "-100");
    }
}

TEST_CASE("options: with several ids per row the row is named, not the id's place") {
  Batch batch(2, 50);
  std::vector<std::int32_t> ids{1, 2, 3, 4, 77, 5};
  std::vector<float> logp(6);
  bilogp::LogpArgs args = batch.forward();
  args.target_ids = TensorView::contiguous(ids.data(), DType::int32, {2, 3});
  args.logp = TensorView::contiguous(logp.data(), DType::float32, {2, 3});
  CHECK_REFUSED(batch, out_of_range, cpu().logp(args), "row 1 is 77");
  CHECK(std::ranges::all_of(logp, [](float value) { return bits(value) == 0; }));
}

TEST_CASE("options: without validation a bad id gives a NaN row and the error words") {
  Batch batch(6, 50);
  batch.ids[4] = 50;
  batch.ids[2] = INT64_MIN;
  bilogp::LogpArgs args = batch.forward();
  args.options.validate = Validate::off;
  cpu().take_errors();
  SUBCASE("of the device") {
    cpu().logp(args);
    cpu().logp(args);
    const bilogp::TargetErrors errors = cpu().take_errors();
    CHECK(errors.count == 4);
    CHECK(errors.first_row == 2);
    CHECK(errors.first_id == INT64_MIN);
  }
  SUBCASE("of the caller") {
    std::int64_t words[4] = {0, -1, 0, 77};
    args.options.error_buffer = words;
    cpu().logp(args);
    CHECK(words[0] == 2);
    CHECK(words[1] == 2);
    CHECK(words[2] == INT64_MIN);
    CHECK(words[3] == 77);
  }
  SUBCASE("of neither, where another call has counted it") {
    std::int64_t words[4] = {0, -1, 0, 77};
    args.options.bad_ids_counted = true;
    cpu().logp(args);
    args.options.error_buffer = words;
    cpu().logp(args);
    CHECK(words[0] == 0);
    CHECK(words[1] == -1);
  }
  CHECK(cpu().take_errors().count == 0);
  CHECK(cpu().take_errors().first_row == -1);
  CHECK(batch.forward_differences() == "");
  CHECK(bits(batch.logp[4]) == 0x7fc00000U);
  CHECK(!std::isnan(batch.logp[3]));
}

TEST_CASE("options: a row with ignore_index is not read and scores +0.0") {
  Batch batch(3, 50);
  batch.ids[1] = 7;
  batch.ids[0] = 3;
  bilogp::LogpArgs args = batch.forward();
  args.options.ignore_index = 7;
  cpu().logp(args);
  CHECK(bits(batch.logp[1]) == 0);
  CHECK(batch.forward_differences(args.options) == "");
}

TEST_CASE("options: thread counts of a call and of the process") {
  Batch batch(3, 10);
  bilogp::LogpArgs args = batch.forward();
  for (const int threads : {-1, 4097}) {
    args.options.threads = threads;
    CHECK_REFUSED(batch, invalid_argument, cpu().logp(args), "threads is " + std::to_string(threads), "4096");
    CHECK_REFUSED(batch, invalid_argument, bilogp::Runtime::set_num_threads(threads), std::to_string(threads), "4096");
  }
  bilogp::Runtime::set_num_threads(3);
  CHECK(bilogp::Runtime::num_threads() == 3);
  bilogp::Runtime::set_num_threads(0);
  CHECK(bilogp::Runtime::num_threads() >= 1);
  args.options.threads = 0;
  args.options.numerics = bilogp::Numerics::native;
  CHECK_REFUSED(batch, unsupported, cpu().logp(args), "native", "portable");
}

TEST_CASE("options: one to sixteen threads give the same bits, over rows and over blocks of columns") {
  for (const std::int64_t rows : {1, 2, 40}) {
    Batch expected(rows, 70000);
    bilogp::LogpArgs single = expected.forward();
    single.options.threads = 1;
    cpu().logp(single);
    if (rows == 1) CHECK(expected.forward_differences() == "");
    for (const int threads : {2, 3, 5, 8, 16}) {
      Batch batch(rows, 70000);
      bilogp::LogpArgs args = batch.forward();
      args.options.threads = threads;
      cpu().logp(args);
      CHECK(std::ranges::equal(batch.logp, expected.logp, {}, bits, bits));
      CHECK(std::ranges::equal(batch.lse, expected.lse, {}, bits, bits));
      CHECK(batch.row_state == expected.row_state);
    }
  }
}

TEST_CASE("options: zero rows are an empty result") {
  Batch batch(1, 10);
  bilogp::LogpArgs args;
  args.logits = TensorView::contiguous(nullptr, DType::float32, {2, 0, 10});
  args.target_ids = TensorView::contiguous(nullptr, DType::int64, {2, 0});
  args.logp = TensorView::contiguous(nullptr, DType::float32, {2, 0});
  CHECK_NOTHROW(cpu().logp(args));
  bilogp::LogpBackwardArgs backward;
  backward.logits = backward.grad_logits = args.logits;
  backward.target_ids = args.target_ids;
  backward.grad_logp = args.logp;
  backward.row_state = TensorView::contiguous(nullptr, DType::int32, {2, 0, 2});
  CHECK_NOTHROW(cpu().logp_backward(backward));
}
