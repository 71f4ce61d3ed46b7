// Cases P8 to P14: views, ids, padding, precision of the output, empty calls.
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/cpu/public_cases.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

namespace {

Runtime& here = Runtime::get("cpu");

Rows random_rows(Storage storage, std::int64_t rows, std::int64_t columns) {
  Rows result(storage, columns);
  for (std::int64_t r = 0; r < rows; ++r)
    result.add(reference::make_row(reference::RowKind::normal_5, columns, storage, static_cast<std::uint64_t>(r)));
  return result;
}

} // namespace

TEST_SUITE_BEGIN("public cases");

TEST_CASE("P8 upstream gradients of any strides") {
  for (const Storage storage : all_storages) {
    const Rows rows = random_rows(storage, 12, 333);
    std::vector<std::int64_t> ids;
    for (std::int64_t r = 0; r < 12; ++r) ids.push_back(20 * r);
    const Scores scores = score(here, rows.view(), ids);
    std::vector<float> upstream(12);
    for (std::size_t r = 0; r < 12; ++r) upstream[r] = static_cast<float>(r);
    const auto size = static_cast<std::size_t>(rows.row_bytes());
    const auto check = [&](const TensorView& view, auto value_of_row) {
      const auto got = gradient(here, rows.view(), ids, scores, view);
      for (std::size_t r = 0; r < 12; ++r) { // the row alone
        const float value = value_of_row(r);
        TensorView row = rows.view();
        row.data = static_cast<char*>(row.data) + r * size;
        row.shape[0] = 1;
        const Scores own = score(here, row, {ids[r]});
        const auto right = gradient(here, row, {ids[r]}, own, TensorView::contiguous(&value, DType::float32, {1}));
        CHECK(std::memcmp(got.data() + r * size, right.data(), size) == 0);
      }
    };
    check(TensorView::contiguous(upstream.data(), DType::float32, {12}), [&](std::size_t r) { return upstream[r]; });
    check(TensorView::strided(&upstream[5], DType::float32, {12}, {0}), [&](std::size_t) { return upstream[5]; });
    std::vector<float> wide(36); // a column of a [12, 3] array, which is a row of its transpose
    for (std::size_t i = 0; i < 36; ++i) wide[i] = static_cast<float>(i) - 9.5F;
    check(TensorView::strided(&wide[1], DType::float32, {12}, {3}), [&](std::size_t r) { return wide[3 * r + 1]; });
  }
}

TEST_CASE("P9 views of larger arrays") {
  for (const Storage storage : all_storages) {
    const Rows base = random_rows(storage, 10, 402);
    const std::int64_t size = size_of(dtype_of(storage));
    std::vector<std::int64_t> all_ids = {9, 0, 399, 5, 17, 200, 1, 2, 3, 4, 77};
    const std::vector<std::int64_t> ids(all_ids.begin() + 1, all_ids.end());
    const std::vector<std::int32_t> narrow_ids(ids.begin(), ids.end());
    // base[:, 1:-1] and base[::2]
    const auto inner = TensorView::strided(base.bytes.data() + size, dtype_of(storage), {10, 400}, {402, 1});
    const auto even = TensorView::strided(base.bytes.data(), dtype_of(storage), {5, 402}, {804, 1});
    for (const TensorView& view : {inner, even}) {
      Rows copy(storage, view.shape[1]);
      for (std::int64_t r = 0; r < view.shape[0]; ++r) {
        const char* at = static_cast<const char*>(view.data) + r * view.strides[0] * size;
        copy.bytes.insert(copy.bytes.end(), at, at + copy.row_bytes());
      }
      copy.rows = view.shape[0];
      const Scores right = score(here, copy.view(), ids);
      const auto rows = view.shape[0];
      CHECK(score(here, view, TensorView::contiguous(all_ids.data() + 1, DType::int64, {rows})) == right);
      CHECK(score(here, view, TensorView::contiguous(narrow_ids.data(), DType::int32, {rows})) == right);
      const float half = 0.5F;
      const auto upstream = TensorView::strided(&half, DType::float32, {rows}, {0});
      CHECK(gradient(here, view, ids, right, upstream) == gradient(here, copy.view(), ids, right, upstream));
    }
  }
}

TEST_CASE("P10 two scores and their gradients from the same logits") {
  constexpr std::int64_t count = 12, columns = 333;
  const float one = 1;
  const auto upstream = TensorView::strided(&one, DType::float32, {count}, {0}); // as from a sum
  for (const Storage storage : all_storages) {
    const Rows rows = random_rows(storage, count, columns);
    const std::vector<char> given = rows.bytes;
    std::vector<std::int64_t> first, second;
    for (std::int64_t r = 0; r < count; ++r) {
      first.push_back(20 * r);
      second.push_back(columns - 1 - 7 * r);
    }
    const Scores of_first = score(here, rows.view(), first);
    const Scores of_second = score(here, rows.view(), second);
    CHECK(rows.bytes == given);
    const auto check_gradient = [&](const std::vector<std::int64_t>& ids, const Scores& scores) {
      const std::vector<char> got = gradient(here, rows.view(), ids, scores, upstream);
      Rows right(storage, columns);
      for (std::size_t r = 0; r < static_cast<std::size_t>(count); ++r) {
        const auto row = reference::make_row(reference::RowKind::normal_5, columns, storage, r);
        const std::vector<std::int64_t> id = {ids[r]};
        CHECK(scores.logp[r] == reference::score(row, id, {}).logp[0]);
        right.add(reference::gradient(row, ids[r], one, {}));
      }
      CHECK(got == right.bytes);
      CHECK(rows.bytes == given);
    };
    check_gradient(first, of_first);
    check_gradient(second, of_second);
    CHECK(score(here, rows.view(), first) == of_first);
  }
}

TEST_CASE("P11 several ids per row") {
  for (const Storage storage : all_storages) {
    const Rows rows = random_rows(storage, 9, 700);
    for (const std::int64_t count : {1, 6, 64}) {
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < 9 * count; ++i) ids.push_back(i * 131 % 700);
      const Scores together = score(here, rows.view(), TensorView::contiguous(ids.data(), DType::int64, {9, count}));
      CHECK(together.lse.size() == 9);
      for (std::int64_t k = 0; k < count; ++k) {
        const Scores one = score(here, rows.view(), TensorView::strided(ids.data() + k, DType::int64, {9}, {count}));
        CHECK(one.lse == together.lse);
        CHECK(one.state == together.state);
        for (std::int64_t r = 0; r < 9; ++r)
          CHECK(one.logp[static_cast<std::size_t>(r)] == together.logp[static_cast<std::size_t>(r * count + k)]);
      }
    }
  }
}

TEST_CASE("P12 padded vocabularies") {
  constexpr std::int64_t width = 262144, used = 201088;
  Rows padded(Storage::bfloat16, width);
  for (std::uint64_t r = 0; r < 2; ++r) {
    auto row = reference::make_row(reference::RowKind::normal_2, width, Storage::bfloat16, r);
    std::fill(row.begin() + used, row.end(), std::bit_cast<std::uint32_t>(50.0F));
    padded.add(row);
  }
  LogpOptions options;
  options.vocab_size = used;
  const std::vector<std::int64_t> ids = {used - 1, 12345};
  const auto slice = TensorView::strided(padded.bytes.data(), DType::bfloat16, {2, used}, {width, 1});
  const Scores right = score(here, slice, ids);
  CHECK(score(here, padded.view(), ids, options) == right);
  const float one = 1;
  const auto upstream = TensorView::strided(&one, DType::float32, {2}, {0});
  const auto whole = gradient(here, padded.view(), ids, right, upstream, options);
  const auto part = gradient(here, slice, ids, right, upstream);
  const std::vector<char> zeros(2 * (width - used));
  for (std::size_t r = 0; r < 2; ++r) {
    CHECK(std::memcmp(whole.data() + r * 2 * width, part.data() + r * 2 * used, 2 * used) == 0);
    CHECK(std::memcmp(whole.data() + r * 2 * width + 2 * used, zeros.data(), zeros.size()) == 0);
  }
}

TEST_CASE("P13 float32 answers from 16-bit logits") {
  constexpr std::int64_t columns = 3000;
  for (const Storage storage : {Storage::bfloat16, Storage::float16})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      auto row = reference::make_row(reference::RowKind::normal_5, columns, storage, seed);
      row[7] = reference::representable(storage, -55); // 69 nats and more below the sum
      Rows rows(storage, columns);
      rows.add(row);
      for (const std::int64_t target : {7, 100, 2999}) {
        const double exact = logp_in_double(row, target);
        const auto got = static_cast<double>(std::bit_cast<float>(score(here, rows.view(), {target}).logp[0]));
        CHECK(std::abs(got - exact) <= 1e-6 + 4 * 0x1p-23 * std::abs(exact));
      }
    }
}

TEST_CASE("P14 nothing, one row, one column") {
  for (const Storage storage : all_storages) {
    const Rows none(storage, 77);
    const Scores empty = score(here, none.view(), std::vector<std::int64_t>{});
    CHECK(empty.logp.empty());
    CHECK(gradient(here, none.view(), {}, empty, TensorView::contiguous(nullptr, DType::float32, {0})).empty());
    const Rows single = random_rows(storage, 1, 77);
    CHECK(score(here, single.view(), {5}).logp.size() == 1);
    Rows column(storage, 1);
    for (const float value : {0.0F, 3.5F, -1e4F})
      column.add({reference::representable(storage, static_cast<double>(value))});
    const Scores scores = score(here, column.view(), {0, 0, 0});
    CHECK(scores.logp == std::vector<std::uint32_t>(3));
    const float two = 2;
    const auto grad =
        gradient(here, column.view(), {0, 0, 0}, scores, TensorView::strided(&two, DType::float32, {3}, {0}));
    CHECK(grad == std::vector<char>(grad.size()));
  }
}

TEST_SUITE_END();
