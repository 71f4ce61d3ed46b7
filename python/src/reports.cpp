// Warming up, and what the library says of itself. Reports leave as plain dicts; bilogp/_results.py gives them a face.
#include <string>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bilogp/runtime.hpp"
#include "bilogp/version.hpp"
#include "call_options.hpp"
#include "operators.hpp"
#include "python_error.hpp"
#include "without_gil.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

nb::dict kernel_dict(const KernelInfo& kernel) {
  nb::dict dict;
  dict["kernel"] = describe(kernel.specialization);
  dict["target"] = kernel.target;
  dict["compiler"] = kernel.compiler;
  dict["origin"] = to_string(kernel.origin);
  dict["seconds"] = kernel.seconds;
  dict["image_bytes"] = kernel.image_bytes;
  return dict;
}

nb::list kernel_list(const std::vector<KernelInfo>& kernels) {
  nb::list list;
  for (const KernelInfo& kernel : kernels) list.append(kernel_dict(kernel));
  return list;
}

template<class Value> Value named(const char* what, std::string_view name, std::initializer_list<Value> values) {
  std::string known;
  for (const Value value : values) {
    if (to_string(value) == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(to_string(value));
  }
  throw Error(ErrorKind::invalid_argument,
              std::string(what) + " \"" + std::string(name) + "\" is unknown; expected one of " + known);
}

nb::list warmup(const std::string& target, std::string_view operation, std::string_view dtype,
                std::string_view id_dtype, std::int64_t vocab_size, std::string_view numerics) {
  const Specialization spec{named("the operator", operation,
                                  {Operator::logp_forward, Operator::logp_backward, Operator::logp_partial,
                                   Operator::logp_finish, Operator::logp_with_gradient}),
                            named("the dtype", dtype, {DType::float32, DType::float16, DType::bfloat16}),
                            named("the id dtype", id_dtype, {DType::int32, DType::int64}), vocab_size,
                            numerics_named(numerics)};
  WarmupReport report;
  {
    const WithoutGil released;
    report = Runtime::get(target).warmup({&spec, 1});
  }
  deliver_warnings();
  return kernel_list(report.kernels);
}

nb::tuple take_errors(int device_type, int device_index) {
  TargetErrors errors;
  {
    const WithoutGil released;
    errors = Runtime::get("auto").take_errors({static_cast<DeviceType>(device_type), device_index});
  }
  return nb::make_tuple(errors.count, errors.first_row, errors.first_id);
}

// The target of this machine's devices, or why there is none.
nb::dict back_end_dict(const char* name) {
  nb::dict dict;
  dict["name"] = name;
  try {
    std::string target;
    {
      const WithoutGil released;
      target = Runtime::get(name).target();
    }
    dict["available"] = true;
    dict["target"] = target;
    dict["reason"] = "";
  } catch (const Error& error) {
    dict["available"] = false;
    dict["target"] = nb::none();
    dict["reason"] = error.what();
  }
  return dict;
}

nb::list back_ends() {
  nb::list list;
  for (const char* const name : {"cpu", "cuda", "hip"}) list.append(back_end_dict(name));
  return list;
}

} // namespace

void bind_reports(nb::module_& module) {
  using nb::arg;
  module.def("warmup", warmup, arg("target"), arg("operator"), arg("dtype"), arg("id_dtype"), arg("vocab_size"),
             arg("numerics"));
  module.def("take_errors", take_errors, arg("device_type"), arg("device_index"));
  module.def("back_ends", back_ends);
  module.def("loaded_kernels", [] { return kernel_list(Runtime::loaded_kernels()); });
  module.def("known_targets", &Runtime::known_targets);
  module.def("set_num_threads", &Runtime::set_num_threads, arg("threads"));
  module.def("num_threads", &Runtime::num_threads);
  module.def("version", [] { return std::string(version()); });
  module.def(
      "contract_id",
      [](std::string_view numerics, std::string_view target) { return contract_id(numerics_named(numerics), target); },
      arg("numerics"), arg("target"));
}

} // namespace bilogp::python
