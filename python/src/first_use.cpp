#include "first_use.hpp"

#include <string>
#include <unordered_set>

namespace nb = nanobind;

namespace bilogp::python {
namespace {

// Guarded by the GIL.
std::unordered_set<std::uint64_t>& used() {
  static auto* instance = new std::unordered_set<std::uint64_t>;
  return *instance;
}

std::uint64_t key_of(const Specialization& spec, const Device& device) {
  std::uint64_t key = static_cast<std::uint64_t>(spec.vocab_size) << 28;
  key |= static_cast<std::uint64_t>(device.index & 0xffff) << 12;
  key |= static_cast<std::uint64_t>(device.type) << 8;
  key |= static_cast<std::uint64_t>(spec.op) << 5;
  key |= static_cast<std::uint64_t>(spec.logits_dtype) << 2;
  key |= static_cast<std::uint64_t>(spec.id_dtype == DType::int64 ? 2 : 0);
  return key | static_cast<std::uint64_t>(spec.numerics);
}

} // namespace

FirstUse::FirstUse(const Specialization& spec, const Device& device) : key_(key_of(spec, device)) {
  if (used().contains(key_)) return;
  watch_ = nb::module_::import_("bilogp._progress").attr("watch")(nb::str(describe(spec).c_str()));
}

FirstUse::~FirstUse() {
  if (!watch_.is_valid()) return;
  // Whatever is raised already goes first; and a destructor raises nothing of its own.
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const nb::object done = nb::steal(PyObject_CallMethod(watch_.ptr(), "close", nullptr));
  if (!done.is_valid()) PyErr_WriteUnraisable(watch_.ptr());
  PyErr_Restore(type, value, trace);
}

void FirstUse::succeeded() {
  if (watch_.is_valid()) used().insert(key_);
}

} // namespace bilogp::python
