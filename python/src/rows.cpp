// logp and its gradient.
#include <optional>
#include <string>
#include <string_view>

#include "bilogp/runtime.hpp"
#include "call.hpp"
#include "call_options.hpp"
#include "operators.hpp"
#include "outputs.hpp"
#include "tensor_argument.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

// The class bilogp.LogpResult, looked up once.
nb::object logp_result(nb::handle logp, nb::handle lse) {
  static PyObject* const type = nb::module_::import_("bilogp._results").attr("LogpResult").inc_ref().ptr();
  PyObject* result = PyObject_CallFunctionObjArgs(type, logp.ptr(), lse.ptr(), nullptr);
  if (result == nullptr) throw nb::python_error();
  return nb::steal(result);
}

struct Forward {
  nb::object logp, lse, row_state;
};

struct Wanted {
  bool lse;
  bool row_state;
  bool bad_ids_counted = false; // before
};

Forward forward(nb::handle logits_object, nb::handle ids_object, const GivenOptions& given, nb::handle out,
                const Wanted& wanted) {
  const TensorArgument logits("logits", logits_object);
  const TensorArgument ids("target_ids", ids_object);
  const CallOptions options(given, logits);
  const int leading = logits.view().rank > 0 ? logits.view().rank - 1 : 0;

  Forward results;
  results.logp = out.is_none() ? new_array(logits, {ids.view(), ids.view().rank}, DType::float32) : nb::borrow(out);
  if (wanted.lse) results.lse = new_array(logits, {logits.view(), leading}, DType::float32);
  if (wanted.row_state) results.row_state = new_array(logits, {logits.view(), leading, 2}, DType::int32);
  const TensorArgument logp(out.is_none() ? "logp" : "out", results.logp, Access::write);

  LogpArgs args{.logits = logits.view(),
                .target_ids = ids.view(),
                .logp = logp.view(),
                .options = options.options(),
                .stream = options.stream()};
  args.options.bad_ids_counted = wanted.bad_ids_counted;
  std::optional<TensorArgument> lse;
  std::optional<TensorArgument> row_state;
  if (wanted.lse) args.lse = lse.emplace("lse", results.lse, Access::write).view();
  if (wanted.row_state) args.row_state = row_state.emplace("row_state", results.row_state, Access::write).view();
  try {
    run(specialization_of(Operator::logp_forward, args.logits, args.target_ids, args.options), args.logits.device,
        [&args](Runtime& runtime) { runtime.logp(args); });
  } catch (const Error& error) {
    // Said of the caller's array under the caller's name.
    constexpr std::string_view own_name = "logp ";
    const std::string_view sentence = error.what();
    if (out.is_none() || !sentence.starts_with(own_name)) throw;
    throw Error(error.kind(), "out " + std::string(sentence.substr(own_name.size())));
  }
  return results;
}

nb::object logp(nb::handle logits, nb::handle target_ids, nb::handle ignore_index, nb::handle validate,
                nb::handle temperature, nb::handle vocab_size, nb::handle return_lse, nb::handle numerics,
                nb::handle inplace_backward, nb::handle out, nb::handle stream) {
  const bool with_lse = truth("return_lse", return_lse);
  truth("inplace_backward", inplace_backward); // says nothing where no gradient is recorded
  const GivenOptions given{ignore_index, validate, temperature, vocab_size, numerics, stream};
  Forward results = forward(logits, target_ids, given, out, {.lse = with_lse, .row_state = false});
  return with_lse ? logp_result(results.logp, results.lse) : std::move(results.logp);
}

nb::object logp_forward(nb::handle logits, nb::handle target_ids, nb::handle ignore_index, nb::handle validate,
                        nb::handle temperature, nb::handle vocab_size, nb::handle numerics, bool with_lse,
                        bool bad_ids_counted, nb::handle stream) {
  const GivenOptions given{ignore_index, validate, temperature, vocab_size, numerics, stream};
  Forward results = forward(logits, target_ids, given, nb::none(), {with_lse, true, bad_ids_counted});
  if (!with_lse) results.lse = nb::none();
  return nb::make_tuple(results.logp, results.lse, results.row_state);
}

// Where a gradient goes: over the logits, into the caller's array, or into a new one.
nb::object gradient_array(const TensorArgument& logits, bool inplace, nb::handle out) {
  if (inplace) return nb::borrow(logits.object());
  if (!out.is_none()) return nb::borrow(out);
  return new_array(logits, {logits.view(), logits.view().rank}, logits.view().dtype);
}

nb::object logp_backward(nb::handle logits_object, nb::handle ids_object, nb::handle state_object,
                         nb::handle grad_object, nb::handle ignore_index, nb::handle validate, nb::handle temperature,
                         nb::handle vocab_size, nb::handle numerics, nb::handle inplace_object, nb::handle out,
                         nb::handle shard_begin, nb::handle full_vocab, nb::handle stream) {
  const bool inplace = truth("inplace", inplace_object);
  const TensorArgument logits("logits", logits_object, inplace ? Access::write : Access::read);
  const TensorArgument ids("target_ids", ids_object);
  const TensorArgument row_state("row_state", state_object);
  const TensorArgument grad_logp("grad_logp", grad_object);
  const CallOptions options({ignore_index, validate, temperature, vocab_size, numerics, stream}, logits);
  nb::object result = gradient_array(logits, inplace, out);
  const TensorArgument grad_logits(out.is_none() ? "grad_logits" : "out", result, Access::write);

  LogpBackwardArgs args{.logits = logits.view(),
                        .target_ids = ids.view(),
                        .row_state = row_state.view(),
                        .grad_logp = grad_logp.view(),
                        .grad_logits = grad_logits.view(),
                        .in_place = inplace,
                        .shard_begin = whole_number("shard_begin", shard_begin),
                        .full_vocab = whole_number("full_vocab", full_vocab),
                        .options = options.options(),
                        .stream = options.stream()};
  args.options.bad_ids_counted = true; // by the pass that made the row state
  run(specialization_of(Operator::logp_backward, args.logits, args.target_ids, args.options), args.logits.device,
      [&args](Runtime& runtime) { runtime.logp_backward(args); });
  return result;
}

nb::object logp_with_gradient(nb::handle logits_object, nb::handle ids_object, nb::handle grad_object,
                              nb::handle ignore_index, nb::handle validate, nb::handle temperature,
                              nb::handle vocab_size, nb::handle numerics, nb::handle inplace_object, nb::handle out,
                              nb::handle stream) {
  const bool inplace = truth("inplace", inplace_object);
  const TensorArgument logits("logits", logits_object, inplace ? Access::write : Access::read);
  const TensorArgument ids("target_ids", ids_object);
  const TensorArgument grad_logp("grad_logp", grad_object);
  const CallOptions options({ignore_index, validate, temperature, vocab_size, numerics, stream}, logits);
  const int leading = logits.view().rank > 0 ? logits.view().rank - 1 : 0;
  const nb::object logp_object = new_array(logits, {logits.view(), leading}, DType::float32);
  const nb::object lse_object = new_array(logits, {logits.view(), leading}, DType::float32);
  const nb::object gradient = gradient_array(logits, inplace, out);
  const TensorArgument logp("logp", logp_object, Access::write);
  const TensorArgument lse("lse", lse_object, Access::write);
  const TensorArgument grad_logits(out.is_none() ? "grad_logits" : "out", gradient, Access::write);

  const LogpGradientArgs args{.logits = logits.view(),
                              .target_ids = ids.view(),
                              .grad_logp = grad_logp.view(),
                              .logp = logp.view(),
                              .lse = lse.view(),
                              .grad_logits = grad_logits.view(),
                              .in_place = inplace,
                              .options = options.options(),
                              .stream = options.stream()};
  run(specialization_of(Operator::logp_with_gradient, args.logits, args.target_ids, args.options), args.logits.device,
      [&args](Runtime& runtime) { runtime.logp_with_gradient(args); });
  return nb::make_tuple(logp_object, lse_object, gradient);
}

} // namespace

void bind_rows(nb::module_& module) {
  using nb::arg;
  module.def("logp", logp, arg("logits").none(), arg("target_ids").none(), arg("ignore_index").none(),
             arg("validate").none(), arg("temperature").none(), arg("vocab_size").none(), arg("return_lse").none(),
             arg("numerics").none(), arg("inplace_backward").none(), arg("out").none(),
             arg("stream").none() = nb::none());
  module.def("logp_forward", logp_forward, arg("logits").none(), arg("target_ids").none(), arg("ignore_index").none(),
             arg("validate").none(), arg("temperature").none(), arg("vocab_size").none(), arg("numerics").none(),
             arg("with_lse"), arg("bad_ids_counted") = false, arg("stream").none() = nb::none());
  module.def("logp_backward", logp_backward, arg("logits").none(), arg("target_ids").none(), arg("row_state").none(),
             arg("grad_logp").none(), arg("ignore_index").none(), arg("validate").none(), arg("temperature").none(),
             arg("vocab_size").none(), arg("numerics").none(), arg("inplace").none(), arg("out").none(),
             arg("shard_begin").none(), arg("full_vocab").none(), arg("stream").none() = nb::none());
  module.def("logp_with_gradient", logp_with_gradient, arg("logits").none(), arg("target_ids").none(),
             arg("grad_logp").none(), arg("ignore_index").none(), arg("validate").none(), arg("temperature").none(),
             arg("vocab_size").none(), arg("numerics").none(), arg("inplace").none(), arg("out").none(),
             arg("stream").none() = nb::none());
}

} // namespace bilogp::python
