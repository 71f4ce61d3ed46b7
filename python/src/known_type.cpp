#include "known_type.hpp"

#include <string>
#include <unordered_map>

namespace nb = nanobind;

namespace bilogp::python {
namespace {

const DlpackExchange* find_exchange(nb::handle type) {
  const nb::object capsule = nb::getattr(type, DlpackExchange::attribute, nb::none());
  if (PyCapsule_IsValid(capsule.ptr(), DlpackExchange::capsule_name) == 0) return nullptr;
  const auto* table =
      static_cast<const DlpackExchange*>(PyCapsule_GetPointer(capsule.ptr(), DlpackExchange::capsule_name));
  while (table != nullptr && table->version.major > 1) table = table->previous;
  return table != nullptr && table->version.major == 1 && table->view_from_python != nullptr ? table : nullptr;
}

bool derives_from_ndarray(nb::handle type) {
  const nb::object modules = nb::module_::import_("sys").attr("modules");
  const nb::object numpy = modules.attr("get")("numpy");
  if (numpy.is_none()) return false;
  return PyObject_IsSubclass(type.ptr(), nb::object(numpy.attr("ndarray")).ptr()) == 1;
}

} // namespace

const KnownType& known_type(PyObject* object) {
  static auto* types = new std::unordered_map<PyTypeObject*, KnownType>;
  PyTypeObject* const type = Py_TYPE(object);
  if (const auto found = types->find(type); found != types->end()) return found->second;
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  KnownType known;
  known.exchange = find_exchange(handle);
  known.has_array_interface = nb::hasattr(handle, "__array_struct__");
  known.is_numpy = derives_from_ndarray(handle);
  known.is_masked = known.is_numpy && nb::hasattr(handle, "mask");
  const nb::object name_of = nb::module_::import_("bilogp._families").attr("name_of");
  const auto family = nb::cast<std::string>(name_of(nb::handle(object)));
  known.is_torch = family == "torch";
  known.is_jax = family == "jax";
  Py_INCREF(reinterpret_cast<PyObject*>(type)); // so that no other type gets its address
  return types->emplace(type, known).first->second;
}

} // namespace bilogp::python
