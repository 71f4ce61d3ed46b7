#include "python_error.hpp"

#include <atomic>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>

#include "bilogp/error.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::invalid_argument:
    return "InvalidArgument";
  case ErrorKind::out_of_range:
    return "TargetOutOfRange";
  case ErrorKind::unsupported:
    return "Unsupported";
  case ErrorKind::compile_failed:
    return "CompileFailed";
  case ErrorKind::device:
    return "DeviceError";
  case ErrorKind::out_of_memory:
    return "OutOfMemory";
  case ErrorKind::io:
    return "FileError";
  case ErrorKind::cache:
    return "StoreError";
  }
  return "Error";
}

void raise(const char* name, const char* sentence) {
  const nb::object type = nb::module_::import_("bilogp.errors").attr(name);
  PyErr_SetString(type.ptr(), sentence);
}

// Two arguments of the library are one here.
std::string under_its_name(std::string_view sentence) {
  constexpr std::string_view per_row = "temperature_per_row ";
  return (sentence.starts_with(per_row) ? "temperature " : "") +
         std::string(sentence.substr(sentence.starts_with(per_row) ? per_row.size() : 0));
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(class_name(error.kind()), under_its_name(error.what()).c_str());
  } catch (const WrongType& error) {
    raise("WrongType", error.what());
  }
}

// Never destroyed: threads of the library outlive the module.
struct Queue {
  std::mutex mutex;
  std::deque<std::string> sentences;
  std::atomic<bool> filled = false;
};

Queue& queue() {
  static auto* instance = new Queue;
  return *instance;
}

void enqueue(std::string_view sentence) noexcept {
  try {
    const std::scoped_lock lock(queue().mutex);
    queue().sentences.emplace_back(sentence);
    queue().filled.store(true, std::memory_order_release);
  } catch (...) { // no memory for a warning
    return;
  }
}

std::deque<std::string> take_all() {
  const std::scoped_lock lock(queue().mutex);
  queue().filled.store(false, std::memory_order_relaxed);
  return std::exchange(queue().sentences, {});
}

} // namespace

void register_errors() {
  nb::register_exception_translator(translate);
}

void register_warnings() {
  set_log_callback(enqueue);
}

void deliver_warnings() {
  if (!queue().filled.load(std::memory_order_acquire)) return;
  const nb::object warn = nb::module_::import_("bilogp.errors").attr("warn");
  for (const std::string& sentence : take_all()) warn(sentence);
}

} // namespace bilogp::python
