// Files that are compiled into the library.
#pragma once

#include <string_view>

namespace qact::report {

std::string_view page_style();   // assets/page.css
std::string_view page_script();  // assets/page.js
std::string_view vega_bundle();  // Vega, Vega-Lite and Vega-Embed, see scripts/vega_bundle.py

}  // namespace qact::report
