// The message of a call that must throw.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace qact {

inline const std::string kNothingThrown = "nothing was thrown";

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return kNothingThrown;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline void expect_in(const std::string& part, const std::string& message) {
  EXPECT_TRUE(contains(message, part)) << message;
}

}  // namespace qact
