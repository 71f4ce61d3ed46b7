// What marks a symbol as part of the shared library's interface; everything else is hidden.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define BILOGP_API __attribute__((visibility("default")))
#else
#define BILOGP_API
#endif
