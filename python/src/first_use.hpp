// The first call that needs a kernel may compile it for a while: such a call is told to bilogp._progress, which shows
// it when it lasts. Every other call pays one look into a table of numbers.
#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

#include "bilogp/specialization.hpp"
#include "bilogp/tensor.hpp"

namespace bilogp::python {

class FirstUse {
public:
  // With the GIL held, as for the destructor.
  FirstUse(const Specialization& spec, const Device& device);
  ~FirstUse();
  FirstUse(const FirstUse&) = delete;
  FirstUse& operator=(const FirstUse&) = delete;

  void succeeded();

private:
  std::uint64_t key_;
  nanobind::object watch_;
};

} // namespace bilogp::python
