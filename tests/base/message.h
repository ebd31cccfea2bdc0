// What a call that must fail says.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

namespace qact {

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

inline void expect_in(const std::string& part, const std::string& message) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

}  // namespace qact
