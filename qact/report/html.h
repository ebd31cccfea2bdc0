// Blocks as HTML.
#pragma once

#include <string>
#include <string_view>

#include "qact/report/sections.h"

namespace qact::report {

std::string escape(std::string_view text);

// JSON that is safe inside a script element: it never contains "</script".
std::string script_json(const nlohmann::ordered_json& value);

// Adjacent charts share a row where the page is wide enough.
std::string to_html(const std::vector<Block>& blocks);

}  // namespace qact::report
