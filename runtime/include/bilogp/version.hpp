// Versions of the library, its binary interface and its arithmetic.
#pragma once

#include <string>
#include <string_view>

#include "bilogp/export.hpp"
#include "bilogp/specialization.hpp"

namespace bilogp::inline v1 {

// "0.1.0"
BILOGP_API std::string_view version() noexcept;

// Two results may be compared bit by bit only when their contract ids are equal: "bilogp.canon-1.portable".
BILOGP_API std::string_view contract_id(Numerics numerics = Numerics::portable);
// The same for a target as Runtime::target() names it: "bilogp.canon-1.native.sm_90a".
BILOGP_API std::string contract_id(Numerics numerics, std::string_view target);

} // namespace bilogp::inline v1
