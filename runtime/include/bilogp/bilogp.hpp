// Umbrella header of the bilogp C++ API.
#pragma once

#include "bilogp/error.hpp"
#include "bilogp/executor.hpp"
#include "bilogp/runtime.hpp"
#include "bilogp/specialization.hpp"
#include "bilogp/tensor.hpp"
#include "bilogp/version.hpp"
