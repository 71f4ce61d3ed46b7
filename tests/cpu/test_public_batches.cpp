// Case P1: the bits of a row are the same in a batch of any size, at any place in it.
#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>

#include <sys/mman.h>
#include <unistd.h>

#include "tests/cpu/public_cases.hpp"
#include "tests/reference/row_generators.hpp"

using namespace bilogp;
using namespace bilogp::test;

namespace {

constexpr std::int64_t columns = 151936;
constexpr std::size_t distinct_rows = 64;
Runtime& here = Runtime::get("cpu");

// Memory that costs nothing until it is touched.
class Pages {
public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) throw std::runtime_error("no memory for a batch");
    start_ = static_cast<char*>(start);
  }
  ~Pages() { ::munmap(start_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] char* at(std::size_t offset) const { return start_ + offset; }

private:
  std::size_t bytes_;
  char* start_ = nullptr;
};

// Rows kept once, of which a batch in any order and of any length is mapped together: 4096 of them in 20 MB.
class RowFile {
public:
  explicit RowFile(const Rows& rows) : file_(::memfd_create("rows", MFD_CLOEXEC)) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto size = static_cast<std::size_t>(rows.row_bytes());
    stride_ = (size + page - 1) / page * page;
    bool written = file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(stride_) * rows.rows) == 0;
    for (std::size_t r = 0; written && r < static_cast<std::size_t>(rows.rows); ++r)
      written = ::pwrite(file_, rows.bytes.data() + r * size, size, offset(r)) == static_cast<ssize_t>(size);
    if (!written) throw std::runtime_error("no file in memory for the rows");
  }
  ~RowFile() { ::close(file_); }
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  [[nodiscard]] std::size_t bytes(std::size_t rows) const { return rows * stride_; }

  // `pages` holds bytes(order.size()).
  [[nodiscard]] TensorView map(const Pages& pages, const std::vector<std::size_t>& order) const {
    for (std::size_t i = 0; i < order.size(); ++i) {
      char* at = pages.at(i * stride_);
      if (::mmap(at, stride_, PROT_READ, MAP_SHARED | MAP_FIXED, file_, offset(order[i])) != at)
        throw std::runtime_error("a row cannot be mapped");
    }
    return TensorView::strided(pages.at(0), DType::bfloat16, {static_cast<std::int64_t>(order.size()), columns},
                               {static_cast<std::int64_t>(stride_ / 2), 1});
  }

private:
  [[nodiscard]] off_t offset(std::size_t row) const { return static_cast<off_t>(row * stride_); }

  int file_;
  std::size_t stride_ = 0;
};

// What every row gives in a batch of its own.
struct Alone {
  Scores scores;
  std::vector<char> gradient;
};

Alone score_alone(const Rows& rows, const std::vector<std::int64_t>& ids, const TensorView& upstream) {
  Alone all;
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (std::size_t r = 0; r < ids.size(); ++r) {
    TensorView row = rows.view();
    row.data = static_cast<char*>(row.data) + r * static_cast<std::size_t>(rows.row_bytes());
    row.shape[0] = 1;
    const Scores scores = score(here, row, {ids[r]});
    append(all.scores.logp, scores.logp);
    append(all.scores.lse, scores.lse);
    append(all.scores.state, scores.state);
    append(all.gradient, gradient(here, row, {ids[r]}, scores, upstream));
  }
  return all;
}

} // namespace

TEST_SUITE_BEGIN("public cases");

TEST_CASE("P1 batch sizes") {
  const float one = 1;
  const auto upstream = [&](std::int64_t rows) { return TensorView::strided(&one, DType::float32, {rows}, {0}); };
  Rows fixed(Storage::bfloat16, columns);
  std::vector<std::int64_t> ids;
  for (std::uint64_t r = 0; r < distinct_rows; ++r) {
    const auto kind = r % 2 == 0 ? reference::RowKind::normal_2 : reference::RowKind::offset_high;
    fixed.add(reference::make_row(kind, columns, Storage::bfloat16, r));
    ids.push_back(static_cast<std::int64_t>(r * 2371));
  }
  const RowFile file(fixed);
  const auto size = static_cast<std::size_t>(fixed.row_bytes());
  const Alone alone = score_alone(fixed, ids, upstream(1));
  std::mt19937_64 random(1);
  for (const std::size_t rows : {1U, 7U, 64U, 255U, 256U, 257U, 4096U}) {
    CAPTURE(rows);
    std::vector<std::size_t> order(rows);
    for (std::size_t i = 0; i < rows; ++i) order[i] = (i + rows) % distinct_rows;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::int64_t> batch_ids;
    for (const std::size_t from : order) batch_ids.push_back(ids[from]);
    const Pages pages(file.bytes(rows));
    const Pages gradient_pages(rows * size); // 1.2 GB of 4096 rows: each is looked at
    const TensorView logits = file.map(pages, order);
    const Scores scores = score(here, logits, batch_ids);
    LogpBackwardArgs args;
    args.logits = logits;
    args.target_ids = TensorView::contiguous(batch_ids.data(), DType::int64, {logits.shape[0]});
    args.row_state = TensorView::contiguous(scores.state.data(), DType::int32, {logits.shape[0], 2});
    args.grad_logp = upstream(logits.shape[0]);
    args.grad_logits = TensorView::contiguous(gradient_pages.at(0), DType::bfloat16, {logits.shape[0], columns});
    here.logp_backward(args);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t from = order[i];
      CHECK(scores.logp[i] == alone.scores.logp[from]);
      CHECK(scores.lse[i] == alone.scores.lse[from]);
      CHECK(scores.state[2 * i] == alone.scores.state[2 * from]);
      CHECK(scores.state[2 * i + 1] == alone.scores.state[2 * from + 1]);
      CHECK(std::memcmp(gradient_pages.at(i * size), alone.gradient.data() + from * size, size) == 0);
    }
  }
}

TEST_SUITE_END();
