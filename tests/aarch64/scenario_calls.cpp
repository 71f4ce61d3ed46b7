// The four operators of a scenario: argument structs as the library builds them, and expected results.
#include <bit>

#include "bilogp/specialization.hpp"
#include "tests/aarch64/scenario.hpp"

namespace bilogp::test {

using reference::Storage;

namespace {

DType dtype_of(Storage storage) {
  return storage == Storage::float32 ? DType::float32 : storage == Storage::float16 ? DType::float16 : DType::bfloat16;
}

std::uint64_t moved(std::uint64_t offset, std::int64_t columns, Storage storage) {
  return offset + static_cast<std::uint64_t>(columns) * (storage == Storage::float32 ? 4U : 2U);
}

} // namespace

void ScenarioCalls::add_forward(std::int64_t compiled_vocab) {
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  for (const Row& row : rows_) {
    logp.insert(logp.end(), row.answer.logp.begin(), row.answer.logp.end());
    lse.push_back(row.answer.lse);
  }
  const std::string title = name("forward");
  kernel::LogpForwardArguments a{};
  a.options = options(place_errors(ids_per_row, title + ", error words"));
  a.logits = offset_pointer<const void>(job_.place(stored_logits(), scenario_.misalignment));
  a.logits_strides = strides(row_stride());
  a.target_ids = offset_pointer<const void>(place_ids());
  a.id_strides = strides(ids_per_row);
  a.id_stride_k = 1;
  a.ids_per_row = ids_per_row;
  a.logp = offset_pointer<float>(place_words(title + ", logp", logp, ids_per_row));
  a.logp_strides = strides(ids_per_row);
  a.logp_stride_k = 1;
  a.lse = offset_pointer<float>(place_words(title + ", lse", lse, 1));
  a.lse_strides = strides(1);
  a.row_state = offset_pointer<kernel::i32>(place_states(true, title + ", row_state"));
  a.row_state_strides = strides(2);
  add_call(Operator::logp_forward, dtype_of(scenario_.storage), compiled_vocab, a,
           {a.options.temperature_rows, a.options.errors, a.logits, a.target_ids, a.logp, a.lse, a.row_state});
}

void ScenarioCalls::add_backward(bool in_place, const std::vector<std::int64_t>& ends) {
  const std::string title = name(in_place ? "backward in place" : "backward");
  const std::vector<char> logits = stored_logits();
  const auto row_length = static_cast<std::size_t>(row_stride());
  std::vector<float> gradients;
  for (const Row& row : rows_) gradients.push_back(row.grad_logp);

  kernel::LogpBackwardArguments a{};
  a.options = options(place_errors(1, title + ", error words"));
  const std::uint64_t grad =
      job_.place_output(title, scenario_.storage, logits, stored_gradients(), row_length, scenario_.misalignment);
  allow_nan_gradients(grad);
  a.grad_logits = offset_pointer<void>(grad);
  a.grad_strides = a.logits_strides = strides(row_stride());
  a.logits = in_place ? a.grad_logits : offset_pointer<void>(job_.place(logits, scenario_.misalignment));
  a.target_ids = offset_pointer<const void>(place_ids());
  a.id_strides = strides(ids_per_row);
  a.row_state = offset_pointer<const kernel::i32>(place_states(false, {}));
  a.row_state_strides = strides(2);
  a.grad_logp = offset_pointer<const float>(
      job_.place({reinterpret_cast<const char*>(gradients.data()), gradients.size() * sizeof(float)}));
  a.grad_logp_strides = strides(1);
  for (const std::int64_t end : ends) {
    a.column_begin = a.column_end;
    a.column_end = end;
    add_call(Operator::logp_backward, dtype_of(scenario_.storage), 0, a,
             {a.options.temperature_rows, a.options.errors, a.grad_logits, a.logits, a.target_ids, a.row_state,
              a.grad_logp});
  }
}

ScenarioCalls::Shard ScenarioCalls::add_partial(std::int64_t begin, std::int64_t end) {
  Shard shard{begin, end, 0, 0};
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> target_logits;
  for (const Row& row : rows_) {
    const auto part =
        std::span(row.logits).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    const auto list = reference::shard_nodes(part, begin, end, scenario_.columns, row.options);
    const bool ignored = row.ids.front() == row.options.ignore_index;
    for (const reference::Node& listed : list) {
      const reference::Node node = ignored ? reference::Node{} : listed;
      nodes.push_back(node.m_bits);
      nodes.push_back(static_cast<std::uint32_t>(node.E));
    }
    shard.node_count = list.size();
    target_logits.push_back(std::bit_cast<std::uint32_t>(target_logit(row, begin, end)));
  }
  const std::string title = name("partial [" + std::to_string(begin) + ", " + std::to_string(end) + ")");
  kernel::LogpPartialArguments a{};
  a.options = options(0);
  a.logits =
      offset_pointer<const void>(moved(job_.place(stored_logits(), scenario_.misalignment), begin, scenario_.storage));
  a.logits_strides = strides(row_stride());
  a.target_ids = offset_pointer<const void>(place_ids());
  a.id_strides = strides(ids_per_row);
  shard.nodes = place_words(title + ", nodes", nodes, 2 * shard.node_count);
  a.nodes = offset_pointer<kernel::i32>(shard.nodes);
  a.node_strides = strides(2 * static_cast<std::int64_t>(shard.node_count));
  a.node_stride_k = 2;
  const std::uint64_t target = place_words(title + ", target_logit", target_logits, 1);
  // Widening a float16 NaN may make it quiet.
  if (scenario_.storage == Storage::float16) job_.allow_any_nan(target, 4 * target_logits.size());
  a.target_logit = offset_pointer<float>(target);
  a.target_logit_strides = strides(1);
  a.shard_begin = begin;
  a.shard_end = end;
  a.full_vocab = scenario_.columns;
  add_call(Operator::logp_partial, dtype_of(scenario_.storage), 0, a,
           {a.options.temperature_rows, a.logits, a.target_ids, a.nodes, a.target_logit});
  return shard;
}

void ScenarioCalls::add_finish(const std::vector<Shard>& shards) {
  std::vector<std::uint32_t> logp;
  std::vector<std::uint32_t> lse;
  std::vector<std::uint32_t> states;
  std::vector<float> target_logits;
  for (const Row& row : rows_) {
    const auto answer = reference::score(row.logits, std::span(row.ids).first(1), row.options);
    logp.push_back(answer.logp.front());
    lse.push_back(answer.lse);
    states.push_back(answer.state.m_bits);
    states.push_back(static_cast<std::uint32_t>(answer.state.E));
    target_logits.push_back(target_logit(row, 0, scenario_.columns));
  }
  const std::string title = name("finish of " + std::to_string(shards.size()) + " shards");
  std::uint64_t list = 0; // the structs must lie side by side
  for (const Shard& shard : shards) {
    const kernel::ShardNodesArgument s{offset_pointer<const kernel::i32>(shard.nodes),
                                       strides(2 * static_cast<std::int64_t>(shard.node_count)), 2, shard.begin,
                                       shard.end};
    static_assert(sizeof s % 16 == 0);
    const std::uint64_t at = job_.place_arguments(s, {s.nodes});
    if (list == 0) list = at;
  }
  kernel::LogpFinishArguments a{};
  a.options = options(place_errors(1, title + ", error words"));
  a.shards = offset_pointer<const kernel::ShardNodesArgument>(list);
  a.shard_count = static_cast<kernel::i64>(shards.size());
  a.full_vocab = scenario_.columns;
  a.target_ids = offset_pointer<const void>(place_ids());
  a.id_strides = strides(ids_per_row);
  a.id_stride_k = a.ids_per_row = 1;
  a.target_logit = offset_pointer<const float>(
      job_.place({reinterpret_cast<const char*>(target_logits.data()), target_logits.size() * sizeof(float)}));
  a.target_logit_strides = strides(1);
  a.target_logit_stride_k = 1;
  a.logp = offset_pointer<float>(place_words(title + ", logp", logp, 1));
  a.logp_strides = a.lse_strides = strides(1);
  a.logp_stride_k = 1;
  a.lse = offset_pointer<float>(place_words(title + ", lse", lse, 1));
  a.row_state = offset_pointer<kernel::i32>(place_words(title + ", row_state", states, 2));
  a.row_state_strides = strides(2);
  add_call(Operator::logp_finish, DType::float32, 0, a,
           {a.options.temperature_rows, a.options.errors, a.shards, a.target_ids, a.target_logit, a.logp, a.lse,
            a.row_state});
}

void ScenarioCalls::add_shards(const std::vector<std::int64_t>& ends) {
  std::vector<Shard> shards;
  for (const std::int64_t end : ends) shards.push_back(add_partial(shards.empty() ? 0 : shards.back().end, end));
  add_finish(shards);
}

} // namespace bilogp::test
