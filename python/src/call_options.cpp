#include "call_options.hpp"

#include <string>

#include "bilogp/error.hpp"
#include "python_error.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

Validate validate_of(nb::handle given) {
  if (given.is_none()) return Validate::automatic;
  if (given.ptr() == Py_True) return Validate::on;
  if (given.ptr() == Py_False) return Validate::off;
  throw WrongType("validate is " + nb::cast<std::string>(nb::repr(given)) + "; expected None, True or False");
}

bool is_number(nb::handle given) {
  return PyFloat_Check(given.ptr()) != 0 || PyLong_Check(given.ptr()) != 0;
}

// numpy's float64 is a float, its float32 a number of its own.
bool is_scalar(nb::handle given) {
  return is_number(given) || (nb::hasattr(given, "__float__") && !nb::hasattr(given, "__dlpack__"));
}

double number_of(nb::handle temperature) {
  const double number = PyFloat_AsDouble(temperature.ptr());
  if (number != -1 || PyErr_Occurred() == nullptr) return number;
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw nb::python_error();
  PyErr_Clear();
  throw Error(ErrorKind::invalid_argument, "temperature is too large; expected a number from 2^-20 to 2^20");
}

std::int64_t vocab_size_of(nb::handle given) {
  if (given.is_none()) return -1;
  const std::int64_t size = whole_number("vocab_size", given);
  if (size < 0)
    throw Error(ErrorKind::invalid_argument,
                "vocab_size is " + std::to_string(size) + "; expected a positive number, or None for all columns");
  return size;
}

Numerics numerics_of(nb::handle given) {
  static PyObject* const usual = PyUnicode_InternFromString("portable");
  if (given.ptr() == usual) return Numerics::portable;
  if (PyUnicode_Check(given.ptr()) == 0)
    throw WrongType("numerics is " + nb::cast<std::string>(nb::repr(given)) + "; expected \"portable\" or \"native\"");
  return numerics_named(nb::cast<std::string>(given));
}

void* stream_of(nb::handle given, const TensorArgument& logits) {
  if (!given.is_none()) {
    void* named = PyLong_AsVoidPtr(given.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return named;
  }
  const Device device = logits.view().device;
  if (device.type == DeviceType::cpu || logits.exchange() == nullptr) return nullptr;
  void* stream = nullptr;
  if (logits.exchange()->current_stream(static_cast<std::int32_t>(device.type), device.index, &stream) != 0)
    throw nb::python_error();
  return stream;
}

} // namespace

std::int64_t whole_number(const char* name, nb::handle given) {
  const nb::object index = nb::steal(PyNumber_Index(given.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw WrongType(std::string(name) + " is " + nb::cast<std::string>(nb::repr(given)) + "; expected a whole number");
  }
  const std::int64_t number = PyLong_AsLongLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw Error(ErrorKind::invalid_argument, std::string(name) + " is " + nb::cast<std::string>(nb::repr(given)) +
                                                 "; expected a number of at most 64 bits");
  }
  return number;
}

bool truth(const char* name, nb::handle given) {
  if (given.ptr() == Py_True) return true;
  if (given.ptr() == Py_False) return false;
  throw WrongType(std::string(name) + " is " + nb::cast<std::string>(nb::repr(given)) + "; expected True or False");
}

Numerics numerics_named(std::string_view name) {
  if (name == "portable") return Numerics::portable;
  if (name == "native") return Numerics::native;
  throw Error(ErrorKind::invalid_argument,
              "numerics is \"" + std::string(name) + "\"; expected \"portable\" or \"native\"");
}

CallOptions::CallOptions(const GivenOptions& given, const TensorArgument& logits) {
  options_.ignore_index = whole_number("ignore_index", given.ignore_index);
  options_.validate = validate_of(given.validate);
  options_.vocab_size = vocab_size_of(given.vocab_size);
  options_.numerics = numerics_of(given.numerics);
  if (is_scalar(given.temperature)) {
    options_.temperature = number_of(given.temperature);
  } else {
    temperature_.emplace("temperature", given.temperature);
    options_.temperature_per_row = temperature_->view();
  }
  stream_ = stream_of(given.stream, logits);
}

} // namespace bilogp::python
