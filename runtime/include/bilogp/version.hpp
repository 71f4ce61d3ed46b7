// Versions of the library, its binary interface and its arithmetic.
#pragma once

#include <string_view>

#include "bilogp/export.hpp"
#include "bilogp/specialization.hpp"

namespace bilogp::inline v1 {

// "0.1.0"
BILOGP_API std::string_view version() noexcept;

// Two results may be compared bit by bit only when their contract ids are equal: "bilogp.canon-1.portable".
BILOGP_API std::string_view contract_id(Numerics numerics = Numerics::portable);

} // namespace bilogp::inline v1
