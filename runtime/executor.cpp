#include "bilogp/executor.hpp"

namespace bilogp::inline v1 {

Executor::~Executor() = default;

} // namespace bilogp::inline v1
