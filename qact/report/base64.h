// Base64, for images inside the page.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace qact::report {

std::string base64(std::span<const uint8_t> bytes);

}  // namespace qact::report
