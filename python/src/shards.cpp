// logp over shards of the vocabulary.
#include <vector>

#include <nanobind/stl/vector.h>

#include "bilogp/runtime.hpp"
#include "call.hpp"
#include "call_options.hpp"
#include "operators.hpp"
#include "outputs.hpp"
#include "tensor_argument.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

nb::object logp_partial(nb::handle logits_object, nb::handle ids_object, nb::handle begin_object,
                        nb::handle vocab_object, nb::handle ignore_index, nb::handle validate, nb::handle temperature,
                        nb::handle vocab_size, nb::handle numerics, nb::handle stream) {
  const std::int64_t shard_begin = whole_number("shard_begin", begin_object);
  const std::int64_t full_vocab = whole_number("full_vocab", vocab_object);
  const TensorArgument logits("logits", logits_object);
  const TensorArgument ids("target_ids", ids_object);
  const CallOptions options({ignore_index, validate, temperature, vocab_size, numerics, stream}, logits);
  const int rank = logits.view().rank;
  if (rank < 1) throw Error(ErrorKind::invalid_argument, "logits has 0 dimensions; expected at least 2, [..., V]");
  const std::int64_t shard_end = shard_begin + logits.view().shape[rank - 1];
  const std::int64_t nodes_per_row = node_count(shard_begin, shard_end, full_vocab);

  // nodes are [..., K, 2]: the shape of the rows and K first, as a model for the result's.
  TensorView rows_and_nodes = logits.view();
  rows_and_nodes.shape[rank - 1] = nodes_per_row;
  nb::object nodes_object = new_array(logits, {rows_and_nodes, rank, 2}, DType::int32);
  nb::object target_object = new_array(logits, {logits.view(), rank - 1}, DType::float32);
  const TensorArgument nodes("nodes", nodes_object, Access::write);
  const TensorArgument target_logit("target_logit", target_object, Access::write);

  const LogpPartialArgs args{.logits = logits.view(),
                             .target_ids = ids.view(),
                             .shard_begin = shard_begin,
                             .shard_end = shard_end,
                             .full_vocab = full_vocab,
                             .nodes = nodes.view(),
                             .target_logit = target_logit.view(),
                             .options = options.options(),
                             .stream = options.stream()};
  run(specialization_of(Operator::logp_partial, args.logits, args.target_ids, args.options), args.logits.device,
      [&args](Runtime& runtime) { runtime.logp_partial(args); });
  return nb::make_tuple(nodes_object, target_object);
}

nb::object logp_finish(const std::vector<std::int64_t>& begins, const std::vector<std::int64_t>& ends,
                       const std::vector<nb::object>& node_objects, std::int64_t full_vocab, nb::handle ids_object,
                       nb::handle target_object, nb::handle ignore_index, nb::handle validate, nb::handle temperature,
                       nb::handle vocab_size, nb::handle numerics, nb::handle stream) {
  const TensorArgument ids("target_ids", ids_object);
  const TensorArgument target_logit("target_logit", target_object);
  std::vector<TensorArgument> nodes;
  std::vector<ShardNodes> shards;
  for (std::size_t i = 0; i < node_objects.size(); ++i) {
    nodes.emplace_back("nodes", node_objects[i]);
    shards.push_back({begins[i], ends[i], nodes.back().view()});
  }
  const CallOptions options({ignore_index, validate, temperature, vocab_size, numerics, stream}, target_logit);
  const int rank = target_logit.view().rank;
  const OutputShape rows{target_logit.view(), rank};
  nb::object logp_object = new_array(target_logit, rows, DType::float32);
  nb::object lse_object = new_array(target_logit, rows, DType::float32);
  nb::object state_object = new_array(target_logit, {target_logit.view(), rank, 2}, DType::int32);
  const TensorArgument logp("logp", logp_object, Access::write);
  const TensorArgument lse("lse", lse_object, Access::write);
  const TensorArgument row_state("row_state", state_object, Access::write);

  const LogpFinishArgs args{.shards = shards,
                            .full_vocab = full_vocab,
                            .target_ids = ids.view(),
                            .target_logit = target_logit.view(),
                            .logp = logp.view(),
                            .lse = lse.view(),
                            .row_state = row_state.view(),
                            .options = options.options(),
                            .stream = options.stream()};
  run(specialization_of(Operator::logp_finish, {}, args.target_ids, args.options), args.target_logit.device,
      [&args](Runtime& runtime) { runtime.logp_finish(args); });
  return nb::make_tuple(logp_object, lse_object, state_object);
}

} // namespace

void bind_shards(nb::module_& module) {
  using nb::arg;
  module.def("node_count", &node_count, arg("begin"), arg("end"), arg("full_vocab"));
  module.def("logp_partial", logp_partial, arg("logits").none(), arg("target_ids").none(), arg("shard_begin").none(),
             arg("full_vocab").none(), arg("ignore_index").none(), arg("validate").none(), arg("temperature").none(),
             arg("vocab_size").none(), arg("numerics").none(), arg("stream").none() = nb::none());
  module.def("logp_finish", logp_finish, arg("begins"), arg("ends"), arg("nodes"), arg("full_vocab"),
             arg("target_ids").none(), arg("target_logit").none(), arg("ignore_index").none(), arg("validate").none(),
             arg("temperature").none(), arg("vocab_size").none(), arg("numerics").none(),
             arg("stream").none() = nb::none());
}

} // namespace bilogp::python
