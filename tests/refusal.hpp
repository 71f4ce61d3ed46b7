// What a call refuses, in the words that its caller gets.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "bilogp/error.hpp"

namespace bilogp::test {

// What `call` threw, as "KIND: SENTENCE"; "nothing thrown" when it did not. Other exceptions pass.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(to_string(error.kind())) + ": " + error.what();
  }
  return "nothing thrown";
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

} // namespace bilogp::test
