#include "runtime/score/invariance_calls.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/score/device_call.hpp"

namespace bilogp::score {
namespace {

constexpr std::uint64_t seed = 20240229; // of the order and the cuts: the same check every time
constexpr std::int64_t padding = 13;

template<typename Word> std::int64_t count_different(const std::vector<Word>& a, const std::vector<Word>& b) {
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) bits += std::popcount(static_cast<std::uint32_t>(a[i] ^ b[i]));
  return bits;
}

// Memory in which every column that a call must not look at is NaN.
std::vector<std::byte> nan_memory(DType dtype, std::int64_t elements) {
  const std::uint32_t nan = dtype == DType::float32 ? 0x7fc00000U : dtype == DType::float16 ? 0x7e00U : 0x7fc0U;
  const auto size = static_cast<std::size_t>(size_of(dtype));
  std::vector<std::byte> memory(static_cast<std::size_t>(elements) * size);
  for (std::size_t at = 0; at < memory.size(); at += size) std::memcpy(memory.data() + at, &nan, size);
  return memory;
}

void call(Runtime& runtime, const TensorView& logits, const TensorView& ids, const LogpOptions& options,
          Answers& answers, std::int64_t first) {
  const std::int64_t rows = ids.elements();
  LogpArgs args;
  args.logits = logits;
  args.target_ids = ids;
  args.logp = ids;
  args.logp.data = answers.logp.data() + first;
  args.logp.dtype = DType::float32;
  args.lse = args.logp;
  args.lse.data = answers.lse.data() + first;
  args.row_state = ids.rank == 1 ? TensorView::contiguous(answers.row_state.data() + 2 * first, DType::int32, {rows, 2})
                                 : TensorView::contiguous(answers.row_state.data() + 2 * first, DType::int32,
                                                          {ids.shape[0], ids.shape[1], 2});
  args.options = options;
  DeviceCall device(runtime);
  args.logits = device.in(args.logits);
  args.target_ids = device.in(args.target_ids);
  for (TensorView* output : {&args.logp, &args.lse, &args.row_state}) *output = device.out(*output);
  runtime.logp(args);
  device.fetch();
}

std::vector<std::int64_t> uneven_cuts(std::int64_t columns, std::int64_t shards) {
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(shards));
  std::vector<std::int64_t> cuts{0, columns};
  while (static_cast<std::int64_t>(cuts.size()) < shards + 1) {
    const auto cut = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(columns));
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

struct Shard {
  std::vector<std::int32_t> nodes;
  std::vector<float> target_logit;
};

} // namespace

Answers::Answers(std::int64_t rows)
    : logp(static_cast<std::size_t>(rows)), lse(static_cast<std::size_t>(rows)),
      row_state(static_cast<std::size_t>(2 * rows)) {}

std::int64_t Answers::bits() const {
  return 32 * static_cast<std::int64_t>(logp.size() + lse.size() + row_state.size());
}

std::int64_t Answers::bits_different(const Answers& other) const {
  return count_different(logp, other.logp) + count_different(lse, other.lse) +
         count_different(row_state, other.row_state);
}

void score_in_place(Runtime& runtime, const SampleRows& sample, std::int64_t first, std::int64_t count,
                    const LogpOptions& options, Answers& answers) {
  call(runtime, TensorView::contiguous(sample.row(first), sample.dtype, {count, sample.columns}),
       TensorView::contiguous(sample.id(first), sample.id_dtype, {count}), options, answers, first);
}

Answers score_one_by_one(Runtime& runtime, const SampleRows& sample, const LogpOptions& options) {
  Answers answers(sample.rows);
  for (std::int64_t row = 0; row < sample.rows; ++row) {
    const std::vector<std::byte> alone(sample.row(row), sample.row(row) + sample.row_bytes());
    call(runtime, TensorView::contiguous(alone.data(), sample.dtype, {1, sample.columns}),
         TensorView::contiguous(sample.id(row), sample.id_dtype, {1}), options, answers, row);
  }
  return answers;
}

Answers score_in_batches(Runtime& runtime, const SampleRows& sample, std::int64_t batch, const LogpOptions& options) {
  Answers answers(sample.rows);
  for (std::int64_t first = 0; first < sample.rows; first += batch)
    score_in_place(runtime, sample, first, std::min(batch, sample.rows - first), options, answers);
  return answers;
}

Answers score_shuffled(Runtime& runtime, const SampleRows& sample, const LogpOptions& options) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(sample.rows));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  SampleRows shuffled{sample.dtype, sample.id_dtype, sample.rows, sample.columns, {}, {}};
  for (const std::int64_t row : order) {
    shuffled.logits.insert(shuffled.logits.end(), sample.row(row), sample.row(row) + sample.row_bytes());
    shuffled.ids.insert(shuffled.ids.end(), sample.id(row), sample.id(row) + size_of(sample.id_dtype));
  }
  Answers mixed(sample.rows);
  score_in_place(runtime, shuffled, 0, sample.rows, options, mixed);
  Answers answers(sample.rows);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto row = static_cast<std::size_t>(order[i]);
    answers.logp[row] = mixed.logp[i];
    answers.lse[row] = mixed.lse[i];
    answers.row_state[2 * row] = mixed.row_state[2 * i];
    answers.row_state[2 * row + 1] = mixed.row_state[2 * i + 1];
  }
  return answers;
}

Answers score_padded(Runtime& runtime, const SampleRows& sample, const LogpOptions& options) {
  const std::int64_t stride = sample.columns + padding;
  const std::int64_t size = size_of(sample.dtype);
  auto memory = nan_memory(sample.dtype, 1 + sample.rows * stride);
  std::byte* const base = memory.data() + size; // one element beside where memory is aligned
  for (std::int64_t row = 0; row < sample.rows; ++row)
    std::memcpy(base + row * stride * size, sample.row(row), static_cast<std::size_t>(sample.row_bytes()));
  Answers answers(sample.rows);
  call(runtime, TensorView::strided(base, sample.dtype, {sample.rows, sample.columns}, {stride, 1}),
       TensorView::contiguous(sample.ids.data(), sample.id_dtype, {sample.rows}), options, answers, 0);
  return answers;
}

Answers score_wide(Runtime& runtime, const SampleRows& sample, const LogpOptions& options) {
  const std::int64_t wide = sample.columns + padding;
  auto memory = nan_memory(sample.dtype, sample.rows * wide);
  for (std::int64_t row = 0; row < sample.rows; ++row)
    std::memcpy(memory.data() + row * wide * size_of(sample.dtype), sample.row(row),
                static_cast<std::size_t>(sample.row_bytes()));
  LogpOptions with_vocab = options;
  if (with_vocab.vocab_size < 0) with_vocab.vocab_size = sample.columns;
  Answers answers(sample.rows);
  call(runtime, TensorView::contiguous(memory.data(), sample.dtype, {sample.rows, wide}),
       TensorView::contiguous(sample.ids.data(), sample.id_dtype, {sample.rows}), with_vocab, answers, 0);
  return answers;
}

Answers score_strided(Runtime& runtime, const SampleRows& sample, const LogpOptions& options) {
  std::int64_t batch = 4;
  while (sample.rows % batch != 0) --batch;
  const std::int64_t length = sample.rows / batch;
  const std::int64_t outer = (length + 1) * sample.columns;
  auto memory = nan_memory(sample.dtype, batch * outer);
  for (std::int64_t b = 0; b < batch; ++b)
    std::memcpy(memory.data() + b * outer * size_of(sample.dtype), sample.row(b * length),
                static_cast<std::size_t>(length * sample.row_bytes()));
  Answers answers(sample.rows);
  call(runtime,
       TensorView::strided(memory.data(), sample.dtype, {batch, length, sample.columns}, {outer, sample.columns, 1}),
       TensorView::contiguous(sample.ids.data(), sample.id_dtype, {batch, length}), options, answers, 0);
  return answers;
}

Answers score_sharded(Runtime& runtime, const SampleRows& sample, std::int64_t shards, const LogpOptions& options) {
  const auto cuts = uneven_cuts(sample.columns, shards);
  const auto ids = TensorView::contiguous(sample.ids.data(), sample.id_dtype, {sample.rows});
  DeviceCall device(runtime);
  std::vector<Shard> parts(static_cast<std::size_t>(shards));
  std::vector<ShardNodes> nodes;
  std::vector<float> target_logit(static_cast<std::size_t>(sample.rows), -std::numeric_limits<float>::infinity());
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const std::int64_t begin = cuts[s];
    const std::int64_t end = cuts[s + 1];
    const std::int64_t count = node_count(begin, end, sample.columns);
    parts[s].nodes.resize(static_cast<std::size_t>(sample.rows * count * 2));
    parts[s].target_logit.resize(static_cast<std::size_t>(sample.rows));
    LogpPartialArgs args;
    args.logits = TensorView::strided(sample.logits.data() + begin * size_of(sample.dtype), sample.dtype,
                                      {sample.rows, end - begin}, {sample.columns, 1});
    args.target_ids = ids;
    args.shard_begin = begin;
    args.shard_end = end;
    args.full_vocab = sample.columns;
    args.nodes = TensorView::contiguous(parts[s].nodes.data(), DType::int32, {sample.rows, count, 2});
    args.target_logit = TensorView::contiguous(parts[s].target_logit.data(), DType::float32, {sample.rows});
    args.options = options;
    nodes.push_back({begin, end, args.nodes});
    args.logits = device.in(args.logits);
    args.target_ids = device.in(args.target_ids);
    args.nodes = device.out(args.nodes);
    args.target_logit = device.out(args.target_logit);
    runtime.logp_partial(args);
    device.fetch();
    for (std::size_t i = 0; i < target_logit.size(); ++i)
      target_logit[i] = std::max(target_logit[i], parts[s].target_logit[i]);
  }
  Answers answers(sample.rows);
  LogpFinishArgs args;
  args.shards = nodes;
  args.full_vocab = sample.columns;
  args.target_ids = ids;
  args.target_logit = TensorView::contiguous(target_logit.data(), DType::float32, {sample.rows});
  args.logp = TensorView::contiguous(answers.logp.data(), DType::float32, {sample.rows});
  args.lse = TensorView::contiguous(answers.lse.data(), DType::float32, {sample.rows});
  args.row_state = TensorView::contiguous(answers.row_state.data(), DType::int32, {sample.rows, 2});
  args.options = options;
  for (ShardNodes& shard : nodes) shard.nodes = device.in(shard.nodes);
  args.target_ids = device.in(args.target_ids);
  args.target_logit = device.in(args.target_logit);
  for (TensorView* output : {&args.logp, &args.lse, &args.row_state}) *output = device.out(*output);
  runtime.logp_finish(args);
  device.fetch();
  return answers;
}

} // namespace bilogp::score
